// WaitingRoom: holds the connections for which there is no place. It reads their requests without a thread for each, so
// that /healthz is answered and /metrics admitted whatever the others do, and the rest is refused with a reason.
#pragma once

#include <poll.h>

#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "agent/server/fair_quota.hpp"
#include "agent/server/http.hpp"
#include "agent/server/peer.hpp"

namespace vramtrack::agent {

/// Used only by the accepting thread.
class WaitingRoom {
 public:
  using Clock = std::chrono::steady_clock;
  /// At 5,000 connections per second, each still has some 50 ms to request /healthz. One guest too many evicts the
  /// oldest guest of the peer that has the most.
  static constexpr std::size_t kMostGuests = 256;
  /// A genuine client sends its request as soon as it connects; a second is many round trips.
  static constexpr std::chrono::seconds kPatience{1};
  static constexpr std::size_t kMostHeadBytes = 8192;  ///< a scraper's head has a few hundred bytes

  struct Guest {
    int fd = -1;
    bool over_unix = false;
    Client client;
    FairQuota::Answer why = FairQuota::Answer::full;
    std::string begun;  ///< the part of its request that has been read
    Clock::time_point until;
    bool answered = false;  ///< further bytes are read and discarded, so that the answer arrives
  };
  struct House {
    std::function<Response(const Request&)> health;  ///< answers /healthz quickly, without waiting
    std::function<bool(Guest&)> metrics;             ///< takes over a guest that requests /metrics, with its fd
  };

  explicit WaitingRoom(House house) : house_(std::move(house)) {}
  ~WaitingRoom();
  WaitingRoom(const WaitingRoom&) = delete;
  WaitingRoom& operator=(const WaitingRoom&) = delete;

  /// Takes `guest` and its descriptor, which is connected and non-blocking.
  void enter(Guest guest, Clock::time_point now);
  /// Adds each guest's descriptor to those that poll() waits for.
  void add_to(std::vector<pollfd>& fds) const;
  /// Call after poll(), before another guest enters. Reads what has arrived, answers, and closes guests that have timed
  /// out. `polled`: as filled by add_to().
  void look(std::span<const pollfd> polled, Clock::time_point now);
  /// How long poll() may wait, in milliseconds; -1: indefinitely.
  [[nodiscard]] int patience_ms(Clock::time_point now) const;
  [[nodiscard]] std::size_t size() const { return guests_.size(); }

 private:
  using Guests = std::list<Guest>;
  /// Serves one guest; returns the next.
  Guests::iterator look(Guests::iterator guest, Clock::time_point now);
  void answer(Guest& guest, const Response& response, Clock::time_point now);
  void decide(Guest& guest, Clock::time_point now);
  void throw_one_out();
  Guests::iterator forget(Guests::iterator guest);

  House house_;
  Guests guests_;                              ///< the oldest first
  std::map<std::string, std::size_t> counts_;  ///< number of guests by the name of their peer
};

}  // namespace vramtrack::agent
