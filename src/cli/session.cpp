#include "cli/session.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/format.hpp"
#include "live/sources.hpp"
#include "report/json.hpp"
#include "report/status.hpp"

namespace vramtrack::cli {

Session::Session(const Config& config, Catalog& catalog, Console& console, bool json, bool in_place,
                 std::size_t max_ended_series)
    : catalog_(catalog),
      console_(console),
      config_(config),
      max_ended_series_(max_ended_series),
      block_(console),
      json_(json),
      in_place_(in_place && !json && console.is_terminal()) {
  begin_anew();
}

void Session::begin_anew() {
  engine_ = std::make_unique<Engine>(config_, catalog_, max_ended_series_);
  engine_->on_alert([this](const AlertChange& change) {
    if (on_alert_) on_alert_(change);  // at once: whoever records it needs its series, which may be forgotten next
    changes_.push_back(change);
  });
  shown_.reset();
}

void Session::print(const std::string& text) {
  block_.erase();
  console_.write(text);
}

void Session::print_event(const Event& event) {
  // That a process ended is in its alerts and in the table; the rest a person should read once.
  if (event.kind == Event::Kind::process_ended || event.text.empty()) return;
  if (json_)
    print(event_json(event, catalog_.clock_is_relative));
  else
    print(fmt::format("{}  {}\n", format_moment(event.time, catalog_.clock_is_relative), printable(event.text)));
}

void Session::take(const Batch& tick) {
  ++counts_.ticks;
  counts_.samples += tick.samples.size();
  engine_->ingest(tick);
  engine_->finish();
  for (const Event& event : tick.events) print_event(event);
  if (changes_.empty()) return;
  const auto view = engine_->view();
  for (const AlertChange& change : changes_) {
    if (change.news == AlertNews::raised) ++counts_.raised;
    if (change.news == AlertNews::cleared) ++counts_.cleared;
    const auto series = std::find_if(view->series.begin(), view->series.end(),
                                     [&](const SeriesView& s) { return s.id == change.alert.series; });
    if (series == view->series.end()) continue;
    if (on_news_) on_news_(*view, *series, change.alert, change.news);
    print(json_ ? alert_json(*view, *series, change.alert, change.news)
                : alert_lines(*view, *series, change.alert, change.news, console_.style()));
  }
  changes_.clear();
}

void Session::status() {
  const auto view = engine_->view();
  shown_ = view->time;
  if (json_)
    console_.write(find_report("json")->render(*view, {}));
  else if (in_place_)
    block_.draw(status_table(*view, console_.style()));
  else
    console_.write(status_table(*view, console_.style()));
}

void Session::last_status(bool explain) {
  block_.erase();
  const auto view = engine_->view(explain);
  const bool is_news = in_place_ || explain || shown_ != view->time;
  if (json_ && is_news)
    console_.write(find_report("json")->render(*view, {}));
  else if (explain)
    console_.write(find_report("text")->render(*view, console_.style()));
  else if (is_news)
    console_.write(status_table(*view, console_.style()));
}

void Session::tell_notes(const SourceNotes& notes, Told& told) {
  tell_new(notes, told, [this](const std::string& warning) {
    block_.erase();
    console_.warn(warning);
  });
}

std::string alert_counts(const Session::Counts& counts) {
  if (counts.raised == 0) return "no alert";
  return fmt::format("{} alert{} raised, {} cleared", counts.raised, counts.raised == 1 ? "" : "s", counts.cleared);
}

}  // namespace vramtrack::cli
