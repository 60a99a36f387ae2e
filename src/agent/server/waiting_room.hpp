// WaitingRoom: the connections for which there is no place. Their requests are read without a thread for each, so that
// /healthz is answered and /metrics is let through whatever the others do, and the rest is refused with the reason.
#pragma once

#include <poll.h>

#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "agent/server/http.hpp"
#include "agent/server/peer.hpp"
#include "agent/server/shares.hpp"

namespace vramtrack::agent {

/// One thread: the one that accepts.
class WaitingRoom {
 public:
  using Clock = std::chrono::steady_clock;
  /// A flood of 5,000 connections a second leaves each of its own some 50 ms to ask for /healthz. One guest more throws
  /// out the oldest of the peer that has most.
  static constexpr std::size_t kMostGuests = 256;
  /// A client that means it sends its request with its connection: a second is many round trips.
  static constexpr std::chrono::seconds kPatience{1};
  static constexpr std::size_t kMostHeadBytes = 8192;  ///< a scraper's head has some hundred bytes

  struct Guest {
    int fd = -1;
    bool over_unix = false;
    Client client;
    Shares::Answer why = Shares::Answer::full;
    std::string begun;  ///< of its request
    Clock::time_point until;
    bool answered = false;  ///< what it still sends is read and dropped, so that the answer arrives
  };
  struct House {
    std::function<Response(const Request&)> health;  ///< answers /healthz; quick, waits for nobody
    std::function<bool(Guest&)> metrics;             ///< takes a guest that asks for /metrics over, with its fd
  };

  explicit WaitingRoom(House house) : house_(std::move(house)) {}
  ~WaitingRoom();
  WaitingRoom(const WaitingRoom&) = delete;
  WaitingRoom& operator=(const WaitingRoom&) = delete;

  /// Takes `guest` and its descriptor, which is connected and does not block.
  void enter(Guest guest, Clock::time_point now);
  /// What poll() is to wait for: adds a descriptor each.
  void add_to(std::vector<pollfd>& fds) const;
  /// After poll(), and before anybody else enters: reads what has come, answers, and closes those whose time is over.
  /// `polled`: as add_to() made it.
  void look(std::span<const pollfd> polled, Clock::time_point now);
  /// How long poll() may wait, in milliseconds; -1: indefinitely.
  [[nodiscard]] int patience_ms(Clock::time_point now) const;
  [[nodiscard]] std::size_t size() const { return guests_.size(); }

 private:
  using Guests = std::list<Guest>;
  /// Looks at one; the next one.
  Guests::iterator look(Guests::iterator guest, Clock::time_point now);
  void answer(Guest& guest, const Response& response, Clock::time_point now);
  void decide(Guest& guest, Clock::time_point now);
  void throw_one_out();
  Guests::iterator forget(Guests::iterator guest);

  House house_;
  Guests guests_;                              ///< the oldest first
  std::map<std::string, std::size_t> counts_;  ///< of guests, by their peers' names
};

}  // namespace vramtrack::agent
