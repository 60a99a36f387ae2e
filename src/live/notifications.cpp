#include "live/notifications.hpp"

#include <fmt/format.h>

#include "host/host_name.hpp"
#include "report/json.hpp"
#include "report/status.hpp"

namespace vramtrack {
namespace {

/// An end that waits longer looks like a hang.
constexpr double kLastAttempt_s = 3;

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

act::Note note_of(const View& view, const SeriesView& series, const Alert& alert, AlertNews news, Timestamp now) {
  act::Note note;
  note.news = news;
  note.key = series.key;
  if (series.verdict.suspect) {
    note.suspect_pid = series.verdict.suspect->pid;
    note.suspect_start_ticks = series.verdict.suspect->pid_start_ticks;
  }
  note.severity = alert.severity;
  // Seconds since a simulation's start are no date for anybody.
  note.time = view.clock_is_relative      ? now
              : news == AlertNews::raised ? alert.raised
                                          : alert.cleared.value_or(view.time);
  note.text = alert_lines(view, series, alert, news, {});
  while (!note.text.empty() && note.text.back() == '\n') note.text.pop_back();
  note.json = alert_json(view, series, alert, news);
  while (!note.json.empty() && note.json.back() == '\n') note.json.pop_back();
  return note;
}

Listener notifying(act::Notifier& notifier, Warn warn) {
  Listener listener;
  listener.alert = [&notifier](const AlertTold& told) {
    notifier.tell(note_of(told.view, told.series, told.alert, told.news, notifier.now()));
  };
  listener.tick = [&notifier, warn = std::move(warn)](const Batch&) {
    for (const std::string& text : notifier.take_warnings()) warn(text);
  };
  return listener;
}

bool finish_notifications(act::Notifier& notifier, bool kept, const Warn& warn) {
  const std::size_t left = notifier.settle(kLastAttempt_s);
  for (const std::string& warning : notifier.take_warnings()) warn(warning);
  if (left > 0)
    warn(fmt::format("{} notification{} not delivered{}", left, left == 1 ? " was" : "s were",
                     kept ? ", kept for the next watch" : ""));
  return left == 0 && notifier.counts().dropped == 0;
}

}  // namespace vramtrack
