// Outbox: what is still to be told, and which incidents have been told of. Pure: no I/O, and time is handed in.
//
//   Note -> incident (one a leak, however many series show it) -> Message -> one queue a channel -> delivered
//
// A message stays until each channel has taken it, has refused it, or its time is over. Saved after each change and
// loaded at the next start, nothing that was taken in is lost and no incident is told twice. Docs:
// docs/notifications.md.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "act/note.hpp"
#include "core/result.hpp"

namespace vramtrack::act {

struct OutboxRules {
  Severity min_severity = Severity::watch;
  bool resolved = true;
  double max_per_hour = 30;
  double retry_s = 5;  ///< before the second attempt; doubled up to kMaxRetry_s
  double keep_s = 24 * 3600;
  bool kept = true;       ///< what waits outlives this program
  std::string host;       ///< named in every message
  std::string simulated;  ///< a scenario's name: said in every message; empty: this is real
};

/// One thing to tell. `id` is unique and the same at every attempt: receivers tell a repetition by it.
struct Message {
  std::string id;
  std::string incident;
  std::string event;  ///< "raised", "escalated", "resolved", "held_back", "act"
  Severity severity = Severity::watch;
  Timestamp queued;
  Timestamp time;  ///< of the alert, by the samples' clock
  std::string device;
  std::uint32_t pid = 0;
  std::string text;
  std::string alert_json;             ///< one object, or empty
  std::vector<std::string> channels;  ///< that have not taken it yet
  friend bool operator==(const Message&, const Message&) = default;
};

/// How an attempt ended.
struct Outcome {
  enum class Kind : std::uint8_t { delivered, retry, refused };
  Kind kind = Kind::retry;
  std::string why;  ///< unless delivered; names no secret part of an address
  std::optional<double> retry_after_s;
};

/// Not thread-safe.
class Outbox {
 public:
  static constexpr double kMaxRetry_s = 900;
  static constexpr std::size_t kMaxMessages = 256;
  static constexpr std::size_t kMaxIncidents = 1024;
  /// An incident of an earlier run that is not raised again for so long is over: whoever would have cleared it is gone.
  static constexpr double kForget_s = 3600;

  Outbox(OutboxRules rules, std::vector<std::string> channels);

  /// Takes what was saved. What names channels that are no more is given up; incidents of the earlier run stay told.
  /// An error says what is wrong with `text`; then nothing was taken.
  Status load(std::string_view text, Timestamp now);
  /// All of it, as JSON (vramtrack.outbox.v1).
  [[nodiscard]] std::string save() const;

  void take(const Note& note, Timestamp now);
  /// Messages given up for a channel: refused by its receiver, too old, or one too many.
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }
  /// What time brings: messages whose time is over, incidents that nobody raised again, what was held back.
  void tick(Timestamp now);

  /// The first message that `channel` has not taken, when its next attempt is due; the order of messages is kept.
  [[nodiscard]] const Message* due(std::string_view channel, Timestamp now) const;
  /// When due() or tick() will have something new to say, if nothing else happens.
  [[nodiscard]] std::optional<Timestamp> wake() const;
  /// What became of an attempt for the message of due().
  void settle(std::string_view channel, const std::string& id, const Outcome& outcome, Timestamp now);
  /// Attempts so far for the first message of `channel`.
  [[nodiscard]] int attempts(std::string_view channel) const;

  [[nodiscard]] const std::deque<Message>& messages() const { return messages_; }
  [[nodiscard]] std::size_t incidents() const { return incidents_.size(); }
  /// Bumped by every change that is worth saving.
  [[nodiscard]] std::uint64_t revision() const { return revision_; }
  /// What a person should know, each taken once: a receiver that does not answer, a message given up.
  std::vector<std::string> take_warnings();

 private:
  struct Incident {
    std::string id;
    std::vector<std::string> members;  ///< series whose alerts stand
    std::string device;
    std::string host;       ///< of device and process, as in SeriesKey::host
    std::uint32_t pid = 0;  ///< whom it is about; 0: nobody known
    std::uint64_t start_ticks = 0;
    Severity severity = Severity::watch;
    Timestamp opened;
    std::string headline;
    bool told = false;
    bool silenced =
        false;  ///< it would have been told of, but for a silence: it is when one of its notes comes without
    std::optional<Timestamp> unconfirmed;  ///< of an earlier run, not raised again since this time
  };
  struct Channel {
    std::string name;
    int attempts = 0;  ///< for its first message
    Timestamp not_before;
    std::string failing;  ///< why the last attempt failed; empty while it works
  };

  Channel* channel(std::string_view name);
  [[nodiscard]] const Channel* channel(std::string_view name) const;
  [[nodiscard]] const Message* first_of(std::string_view channel) const;
  std::deque<Incident>::iterator incident_of(const Note& note, const std::string& member);
  void open(const Note& note, const std::string& member, Timestamp now);
  void close(const std::deque<Incident>::iterator& incident, const Note& note, Timestamp now);
  void tell(Incident& incident, std::string_view event, const Note& note, Timestamp now, bool costs);
  void tell_held_back(Timestamp now);
  void put(Message message);
  void announce(const Note& note, Timestamp now);
  void refill(Timestamp now);
  void finished(Channel& channel, std::string_view id);
  void drop_taken();

  OutboxRules rules_;
  std::vector<Channel> channels_;
  std::deque<Message> messages_;
  std::deque<Incident> incidents_;
  double tokens_ = 0;
  Timestamp refilled_{};
  std::uint64_t held_back_ = 0;
  std::vector<std::string> held_headlines_;
  std::uint64_t next_ = 1;
  std::uint64_t revision_ = 0;
  std::uint64_t overflowed_ = 0;
  std::uint64_t dropped_ = 0;
  std::vector<std::string> warnings_;

  friend struct OutboxJson;
};

/// The bodies that are sent. `attempt` from 1.
std::string webhook_body(const Message& message, const OutboxRules& rules);
std::string slack_body(const Message& message, const OutboxRules& rules);
/// The first line of a message's text.
std::string_view headline(std::string_view text);

}  // namespace vramtrack::act
