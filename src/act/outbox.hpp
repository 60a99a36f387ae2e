// Outbox: which messages must still be sent, and which incidents have been reported. Pure: no I/O; time is a parameter.
//
//   Note -> incident (from Note::incident) -> Message -> one queue per channel -> delivered
//
// A message stays until each channel has accepted or refused it, or until it expires. The outbox is saved after each
// change and loaded at the next start, so no note is lost and no incident is reported twice. Docs:
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
  bool kept = true;       ///< waiting messages survive the end of this program
  std::string host;       ///< named in every message
  std::string simulated;  ///< a scenario's name, given in every message; empty: not simulated
};

/// One notification. `id` is unique and the same at every attempt: receivers recognise a repetition by it.
struct Message {
  std::string id;
  std::string incident;
  std::string event;  ///< "raised", "escalated", "resolved", "held_back", "act"
  Severity severity = Severity::watch;
  Timestamp queued;
  Timestamp time;  ///< the time of the alert, by the samples' clock
  std::string device;
  std::uint32_t pid = 0;
  bool ran_out = false;  ///< see Note
  std::string text;
  std::string alert_json;             ///< one object, or empty
  std::vector<std::string> channels;  ///< those that have not accepted it yet
  friend bool operator==(const Message&, const Message&) = default;
};

/// How an attempt ended.
struct Outcome {
  enum class Kind : std::uint8_t { delivered, retry, refused };
  Kind kind = Kind::retry;
  std::string why;  ///< unless delivered; contains no secret part of an address
  std::optional<double> retry_after_s;
};

/// Not thread-safe.
class Outbox {
 public:
  static constexpr double kMaxRetry_s = 900;
  static constexpr std::size_t kMaxMessages = 256;
  static constexpr std::size_t kMaxIncidents = 1024;
  static constexpr std::size_t kMaxAnnounced = 1024;
  /// An incident of an earlier run that is not raised again within this time has ended: nothing else would clear it.
  static constexpr double kForget_s = 3600;

  Outbox(OutboxRules rules, std::vector<std::string> channels);

  /// Loads a saved outbox. Messages for channels that no longer exist are dropped; incidents of the earlier run stay
  /// reported. An error states what is wrong with `text`; then nothing was loaded.
  Status load(std::string_view text, Timestamp now);
  /// The whole outbox, as JSON (vramtrack.outbox.v1).
  [[nodiscard]] std::string save() const;

  void take(const Note& note, Timestamp now);
  /// Messages dropped for a channel: refused by its receiver, too old, or too many.
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }
  /// Handles the passing of time: expired messages, incidents that were not raised again, messages that were held back.
  void tick(Timestamp now);

  /// The first message that `channel` has not accepted, if its next attempt is due; the order of messages is kept.
  [[nodiscard]] const Message* due(std::string_view channel, Timestamp now) const;
  /// When due() or tick() will next have something to do, if nothing else happens.
  [[nodiscard]] std::optional<Timestamp> wake() const;
  /// Records the result of an attempt to send the message of due().
  void take_outcome(std::string_view channel, const std::string& id, const Outcome& outcome, Timestamp now);
  /// Attempts so far for the first message of `channel`.
  [[nodiscard]] int attempts(std::string_view channel) const;

  [[nodiscard]] const std::deque<Message>& messages() const { return messages_; }
  [[nodiscard]] std::size_t incidents() const { return incidents_.size(); }
  /// Increases with every change that is worth saving.
  [[nodiscard]] std::uint64_t revision() const { return revision_; }
  /// Warnings for people, each returned once: a receiver that does not answer, a dropped message.
  std::vector<std::string> take_warnings();

 private:
  struct Incident {
    std::string id;
    std::string device;
    std::uint32_t pid = 0;  ///< the process concerned; 0: unknown
    Severity severity = Severity::watch;
    Timestamp opened;
    std::string headline;
    bool notified = false;
    bool silenced =
        false;  ///< not reported because of a silence; it is reported when one of its notes comes without a silence
    std::optional<Timestamp> unconfirmed;  ///< from an earlier run, not raised again since this time
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
  [[nodiscard]] static bool is_about(const Note& note, const Incident& incident);
  std::deque<Incident>::iterator incident_of(const Note& note);
  void open(const Note& note, Timestamp now);
  void close(const Note& note, Timestamp now);
  bool may_send(const Note& note);
  void queue(Incident& incident, std::string_view event, const Note& note, Timestamp now, bool costs);
  void queue_held_back(Timestamp now);
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
  std::deque<std::string> announced_;  ///< the ids of the acts last accepted
  std::uint64_t next_ = 1;
  std::uint64_t revision_ = 0;
  std::uint64_t overflowed_ = 0;
  std::uint64_t dropped_ = 0;
  std::vector<std::string> warnings_;

  friend struct OutboxJson;
};

/// The request bodies. `attempt` counts from 1.
std::string webhook_body(const Message& message, const OutboxRules& rules);
std::string slack_body(const Message& message, const OutboxRules& rules);
/// The first line of a message's text.
std::string_view headline(std::string_view text);

}  // namespace vramtrack::act
