// Notifier: sends notifications of alerts by webhook, chat, or program, without ever delaying the sampling.
//
//   notify() -> inbox -> keeper thread: Outbox, saved in the queue file -> one courier thread per channel -> receiver
//
// Delivery is at least once: a message is in the file before its first attempt and leaves it after it was accepted.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "act/note.hpp"
#include "core/config.hpp"
#include "core/result.hpp"
#include "core/time.hpp"

namespace vramtrack::act {

struct NotifierOptions {
  NotifyConfig config;
  std::string queue_path;          ///< empty: nothing survives a restart
  std::string host;                ///< named in the messages
  std::string simulated;           ///< a scenario's name; empty: real
  std::function<Timestamp()> now;  ///< the time of day, for waits; called from the notifier's threads
};

/// Where the queue of the store at `store_path` is.
std::string notify_queue_path(const std::string& store_path);
/// Whether [notify] names any receiver.
bool notifies(const NotifyConfig& config);

class Notifier {
 public:
  /// Starts the threads. REQUIRES: notifies(config), `now`. Errors: a bad address, a token that cannot be read, a queue
  /// file that cannot be written, or that another program's notifier uses (which then reports the same alerts), no
  /// memory or threads. A queue file that is damaged or cannot be read is put aside and reported by take_warnings(); it
  /// is an error if it cannot be put aside, because it would be overwritten.
  static Result<std::unique_ptr<Notifier>> open(const NotifierOptions& options);
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;
  /// Ends attempts in progress. What is not delivered stays in the file.
  ~Notifier();

  /// Takes one change of an alert. From any thread; never waits for a file or a receiver. Microseconds.
  void notify(Note note);

  /// Waits until everything has been delivered or given up, or an attempt of each has failed, but at most `at_most_s`.
  /// Returns the number of messages left. Call it before the end, so that the last alerts are tried at once.
  std::size_t flush(double at_most_s);

  /// The time of day, by NotifierOptions::now. From any thread.
  [[nodiscard]] Timestamp now() const;

  /// What a person should know, each taken once. From any thread.
  std::vector<std::string> take_warnings();

  struct Counts {
    std::uint64_t delivered = 0;  ///< to each channel
    std::uint64_t failed = 0;     ///< attempts
    std::uint64_t waiting = 0;    ///< messages in the queue
    std::uint64_t incidents = 0;  ///< active ones
    std::uint64_t dropped = 0;    ///< messages given up: refused by a receiver, too old, or too many
  };
  [[nodiscard]] Counts counts() const;

 private:
  struct Core;
  explicit Notifier(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace vramtrack::act
