#include "live/pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace vramtrack {

Pipeline::Pipeline(const Config& config, Catalog& catalog, std::size_t max_ended_series)
    : config_(config), catalog_(catalog), max_ended_series_(max_ended_series) {
  new_engine();
}

void Pipeline::new_engine() {
  changes_.clear();
  engine_ = std::make_unique<Engine>(config_, catalog_, max_ended_series_);
  engine_->on_alert([this](const AlertChange& change) {
    // At once: the store needs the alert's series, which may be forgotten next.
    if (store_) check_store(store_->record(change.alert));
    changes_.push_back(change);
  });
}

bool Pipeline::record_into(const StoreConfig& store, Timestamp now) {
  auto opened = Store::open(store, catalog_, now);
  if (!opened) {
    warn(fmt::format("not recording: {}; watching continues without it (pass --no-record to silence this)",
                     opened.error().message));
    return false;
  }
  store_ = std::move(*opened);
  record_start(now);
  return true;
}

void Pipeline::record_start(Timestamp now) {
  // A replay begins anew here, as this watch does.
  Batch started;
  started.events.push_back(Event{.time = now, .kind = Event::Kind::watch_started});
  if (store_) check_store(store_->append(started));
}

void Pipeline::begin_anew(Timestamp now) {
  new_engine();
  record_start(now);
}

void Pipeline::take(const Batch& tick) {
  ++counts_.ticks;
  counts_.samples += tick.samples.size();
  if (store_) {
    check_store(store_->append(tick));
    for (const std::string& notice : store_->take_notices()) warn(notice);
  }
  engine_->ingest(tick);
  engine_->finish();
  for (const Listener& listener : listeners_)
    if (listener.event)
      for (const Event& event : tick.events) listener.event(event);
  if (!changes_.empty()) tell_changes();
  for (const Listener& listener : listeners_)
    if (listener.tick) listener.tick(tick);
}

void Pipeline::tell_changes() {
  const auto view = engine_->view();
  for (const AlertChange& change : changes_) {
    if (change.news == AlertNews::raised) ++counts_.raised;
    if (change.news == AlertNews::cleared) ++counts_.cleared;
    const auto series = std::find_if(view->series.begin(), view->series.end(),
                                     [&](const SeriesView& s) { return s.id == change.alert.series; });
    if (series == view->series.end()) continue;
    for (const Listener& listener : listeners_)
      if (listener.alert) listener.alert({*view, *series, change.alert, change.news});
  }
  changes_.clear();
}

void Pipeline::flush() {
  if (store_) check_store(store_->flush());
}

/// The store itself says each cause once.
void Pipeline::check_store(const Status& status) const {
  if (!status) warn("recording: " + status.error().message);
}

void Pipeline::warn(const std::string& text) const {
  for (const Listener& listener : listeners_)
    if (listener.warning) listener.warning(text);
}

std::string alert_counts(const Pipeline::Counts& counts) {
  if (counts.raised == 0) return "no alert";
  return fmt::format("{} alert{} raised, {} cleared", counts.raised, counts.raised == 1 ? "" : "s", counts.cleared);
}

}  // namespace vramtrack
