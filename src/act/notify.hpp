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
  std::function<Timestamp()> now;  ///< the wall clock, for waits; called from the notifier's threads
};

/// The path of the notification queue for the store at `store_path`.
std::string notify_queue_path(const std::string& store_path);
/// Whether [notify] configures any receiver.
bool notifies(const NotifyConfig& config);

class Notifier {
 public:
  /// Starts the threads. REQUIRES: notifies(config), `now`. Errors: a bad address, a token that cannot be read, a queue
  /// file that is not writable or that another program's notifier uses (which then sends the same alerts), no memory or
  /// threads. A queue file that is damaged or unreadable is set aside, and take_warnings() reports it; it is an error
  /// if that fails, because the file would be overwritten.
  static Result<std::unique_ptr<Notifier>> open(const NotifierOptions& options);
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;
  /// Ends attempts in progress. Undelivered messages stay in the file.
  ~Notifier();

  /// Accepts one change of an alert. Any thread. Takes microseconds: never waits for a file or a receiver.
  void notify(Note note);

  /// Waits until every message has been delivered, dropped, or tried once without success, but at most `at_most_s`.
  /// Returns the number of messages left. Call it before the end, so that the last alerts are tried at once.
  std::size_t flush(double at_most_s);

  /// The time of day, from NotifierOptions::now. Any thread.
  [[nodiscard]] Timestamp now() const;

  /// Warnings for people, each returned once. Any thread.
  std::vector<std::string> take_warnings();

  struct Counts {
    std::uint64_t delivered = 0;  ///< to each channel
    std::uint64_t failed = 0;     ///< attempts
    std::uint64_t waiting = 0;    ///< messages in the queue
    std::uint64_t incidents = 0;  ///< active ones
    std::uint64_t dropped = 0;    ///< messages dropped: refused by a receiver, too old, or too many
  };
  [[nodiscard]] Counts counts() const;

 private:
  struct Core;
  explicit Notifier(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace vramtrack::act
