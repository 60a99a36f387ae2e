#include "live/pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "act/ladder.hpp"
#include "core/units.hpp"
#include "live/resume.hpp"

namespace vramtrack {

namespace {

/// An incident of an earlier watch is over if nothing is raised for it again for this long.
constexpr std::chrono::hours kForget{1};

/// An alert must come early enough for the steps of the policies. (Their mistakes were reported with the
/// configuration.)
Config with_time_for_policies(Config config) {
  if (const auto policies = act::parse_policies(config.policies.toml, config.policies.name))
    config.detection.lead_time_minutes =
        std::max(config.detection.lead_time_minutes, act::Ladder::needs_s(*policies) / kSecondsPerMinute);
  return config;
}

}  // namespace

Pipeline::Pipeline(const Config& config, Catalog& catalog, std::size_t max_ended_series)
    : config_(with_time_for_policies(config)), catalog_(catalog), max_ended_series_(max_ended_series) {
  new_engine();
}

void Pipeline::new_engine() {
  changes_.clear();
  engine_ = std::make_unique<Engine>(config_, catalog_, max_ended_series_);
  view_.reset();
  if (memory_) engine_->remember(*memory_);
  engine_->on_alert([this](const AlertChange& change) { add_change(change); });
}

void Pipeline::add_change(const AlertChange& change) {
  if (resuming_) return;
  // Immediately: the store needs the alert's series, which may be forgotten next.
  if (store_) check_store(store_->record(change.alert));
  if (store_)
    for (const Alert& alert : change.renamed) check_store(store_->record(alert));
  changes_.push_back(change);
}

void Pipeline::record_into(std::unique_ptr<Store> store, Timestamp now) {
  store_ = std::move(store);
  record_start(now);
}

void Pipeline::remember(std::optional<ProgramMemory> memory) {
  const bool had_any = memory_.has_value();
  memory_ = std::move(memory);
  if (memory_)
    engine_->remember(*memory_);
  else if (had_any)
    new_engine();
}

bool Pipeline::resume(const std::string& path, Timestamp now) {
  auto reader = StoreReader::open(path);
  if (!reader) return false;
  resuming_ = true;
  // Runs that ended then are already remembered.
  const std::optional<ProgramMemory> memory = memory_;
  if (memory_) memory_->put = [](const ProgramIdentity&, const Program&) {};
  new_engine();
  const auto any = read_end(
      **reader, catalog_, now, [this] { new_engine(); }, [this](const Batch& batch) { engine_->ingest(batch); });
  engine_->finish();
  // Processes that a policy held in the earlier watch are reported again, if it still holds them.
  Batch over;
  over.events.push_back(Event{.time = engine_->view()->time, .kind = Event::Kind::watch_started});
  engine_->ingest(over);
  resumed_ = any && *any;
  memory_ = memory;
  resuming_ = false;
  if (!resumed_) new_engine();
  if (const auto alerts = (*reader)->alerts(catalog_))
    for (const Alert& alert : *alerts) {
      if (alert.cleared) continue;
      if (resumed_) engine_->adopt(alert);
      engine_->recall(alert, now + kForget);
    }
  if (memory_) engine_->remember(*memory_);
  return resumed_;
}

void Pipeline::read_days_of(const std::string& path, Timestamp now) {
  if (auto reader = StoreReader::open(path))
    read_days(**reader, catalog_, now, *engine_->view(),
              [this](SeriesId id, const auto& floors) { engine_->set_past_days(id, floors); });
  view_.reset();
}

void Pipeline::record_start(Timestamp now) {
  // From here, a replay starts over, as this watch does, or continues.
  Event start;
  start.time = now;
  start.kind = Event::Kind::watch_started;
  start.went_on = resumed_;
  start.knew_runs = memory_.has_value();
  Batch started;
  started.events.push_back(std::move(start));
  if (store_) check_store(store_->append(started));
}

void Pipeline::begin_anew(Timestamp now) {
  resumed_ = false;
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
  view_.reset();
  for (const Listener& listener : listeners_)
    if (listener.event)
      for (const Event& event : tick.events)
        if (event.kind != Event::Kind::lifetimes) listener.event(event);  // part of what is judged, not news
  if (!changes_.empty()) report_changes();
  for (const Listener& listener : listeners_)
    if (listener.tick) listener.tick(tick);
}

void Pipeline::end_of_recording() {
  engine_->end_of_recording();
  view_.reset();
  if (!changes_.empty()) report_changes();
}

std::shared_ptr<const View> Pipeline::view(bool explain) const {
  if (explain) return new_view(true);
  if (view_ == nullptr) view_ = new_view(false);
  return view_;
}

std::shared_ptr<const View> Pipeline::new_view(bool explain) const {
  std::shared_ptr<View> view = engine_->view(explain);
  view->files = files_;
  if (store_ && !store_->failing().empty()) view->warnings.push_back("not recording: " + store_->failing());
  view->warnings.insert(view->warnings.end(), source_warnings_.begin(), source_warnings_.end());
  return view;
}

void Pipeline::report_changes() {
  const auto view = this->view();
  for (const AlertChange& change : changes_) {
    const auto series = std::find_if(view->series.begin(), view->series.end(),
                                     [&](const SeriesView& s) { return s.id == change.alert.series; });
    if (series == view->series.end()) continue;
    if (change.incident.news == AlertNews::raised) ++counts_.raised;
    if (change.incident.news == AlertNews::cleared) ++counts_.cleared;
    for (const Listener& listener : listeners_)
      if (listener.alert) listener.alert({*view, *series, change.alert, change.news, change.incident});
  }
  changes_.clear();
}

void Pipeline::flush() {
  if (store_) check_store(store_->flush());
}

/// The store itself reports each cause once.
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
