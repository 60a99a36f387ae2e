#include "live/notifications.hpp"

#include <fmt/format.h>

#include <chrono>
#include <map>

#include "core/end_words.hpp"
#include "host/host_name.hpp"
#include "report/json.hpp"
#include "report/status.hpp"
#include "report/view_json.hpp"

namespace vramtrack {
namespace {

/// Waiting longer at the end would look like a hang.
constexpr double kLastAttempt_s = 3;
/// A silence in the configuration does not end.
constexpr std::chrono::hours kLongestHeld{24 * 366};
constexpr std::size_t kMostHeld = 4096;  ///< as many as the notifier's own inbox

/// What is reported about an alert when its silence has ended: its latest change.
struct HeldNote {
  act::Note note;
  SilenceSubject subject;
  bool reported_before = false;  ///< a notification of it was sent, and one of its end is expected
};
using HeldNotes = std::map<std::string, HeldNote>;  // by name_of()

/// For the active alert: a series has at most one of each kind.
std::string name_of(const act::Note& note) {
  return std::string(to_string(note.kind)) + ' ' + series_key_text(note.key);
}

}  // namespace

std::unique_ptr<act::Notifier> open_notifier(const Config& config, const std::string& store_path,
                                             const std::string& simulated, std::function<Timestamp()> now,
                                             const Warn& warn) {
  if (!act::notifies(config.notify)) return nullptr;
  act::NotifierOptions options;
  options.config = config.notify;
  if (!store_path.empty()) options.queue_path = act::notify_queue_path(store_path);
  options.host = host_name();
  options.simulated = simulated;
  options.now = std::move(now);
  auto notifier = act::Notifier::open(options);
  if (notifier) return std::move(*notifier);
  warn(fmt::format("no notifications: {}; watching continues without them", notifier.error().message));
  return nullptr;
}

act::Note note_of(const AlertNotice& notice, Timestamp now) {
  const auto& [view, series, alert, news, incident] = notice;
  act::Note note;
  note.news = news;
  note.kind = alert.kind;
  note.key = series.key;
  note.incident = incident.id;
  note.also = incident.also;
  note.incident_is_over = incident.news == AlertNews::cleared;
  if (series.verdict.suspect) note.suspect_pid = series.verdict.suspect->pid;
  note.severity = alert.severity;
  note.ran_out = alert.end_kind && words_of_end(*alert.end_kind).is_bad;
  // Seconds since a simulation's start mean no date to anybody.
  note.time = view.clock_is_relative      ? now
              : news == AlertNews::raised ? alert.raised
                                          : alert.cleared.value_or(view.time);
  note.text = alert_lines(view, series, alert, news, {});
  while (!note.text.empty() && note.text.back() == '\n') note.text.pop_back();
  note.json = alert_json(view, series, alert, news);
  while (!note.json.empty() && note.json.back() == '\n') note.json.pop_back();
  return note;
}

Listener notifying(act::Notifier& notifier, Silences& silences, Warn warn) {
  const auto held = std::make_shared<HeldNotes>();
  Listener listener;
  listener.alert = [&notifier, &silences, held](const AlertNotice& notice) {
    const Timestamp now = notifier.now();
    act::Note note = note_of(notice, now);
    SilenceSubject subject = silence_subject(notice.view, notice.series);
    const auto silence = silences.covering(subject, now);
    if (!silence) {
      held->erase(name_of(note));
      return notifier.notify(std::move(note));
    }
    note.silenced = true;
    const auto known = held->find(name_of(note));
    const bool is_over = note.news == AlertNews::cleared;
    // Held notes are reported first: for an alert raised before the silence, that is another change than "raised".
    const bool reported_before = known != held->end() ? known->second.reported_before : note.news != AlertNews::raised;
    // No notification of it was or will be sent, so none of its end is expected.
    if (is_over && (!reported_before || silence->ends > now + kLongestHeld || held->size() >= kMostHeld)) {
      if (known != held->end()) held->erase(known);
      return notifier.notify(std::move(note));
    }
    if (!is_over) notifier.notify(note);
    // The first notification contains everything that was reported about it.
    if (note.news == AlertNews::escalated && known != held->end())
      note.text = known->second.note.text + '\n' + note.text;
    held->insert_or_assign(name_of(note), HeldNote{note, std::move(subject), reported_before});
  };
  listener.tick = [&notifier, &silences, held, warn = std::move(warn)](const Batch&) {
    for (auto it = held->begin(); it != held->end();) {
      if (silences.covering(it->second.subject, notifier.now())) {
        ++it;
        continue;
      }
      it->second.note.silenced = false;
      notifier.notify(std::move(it->second.note));
      it = held->erase(it);
    }
    for (const std::string& text : notifier.take_warnings()) warn(text);
  };
  return listener;
}

bool finish_notifications(act::Notifier& notifier, bool kept, const Warn& warn) {
  const std::size_t left = notifier.flush(kLastAttempt_s);
  for (const std::string& warning : notifier.take_warnings()) warn(warning);
  if (left > 0)
    warn(fmt::format("{} notification{} not delivered{}", left, left == 1 ? " was" : "s were",
                     kept ? ", kept for the next watch" : ""));
  return left == 0 && notifier.counts().dropped == 0;
}

}  // namespace vramtrack
