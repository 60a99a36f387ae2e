#include "agent/sampler.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "source/sim/sim.hpp"

namespace vramtrack::agent {
namespace {

using std::chrono::steady_clock;

double seconds_since(steady_clock::time_point begin) {
  return std::chrono::duration<double>(steady_clock::now() - begin).count();
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

std::uint64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  in >> size >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

AgentSampler::AgentSampler(const Config& config, std::unique_ptr<Catalog> catalog, std::vector<LiveSource> sources,
                           std::optional<sim::Scenario> scenario, AgentHooks hooks)
    : config_(config),
      catalog_(std::move(catalog)),
      sources_(std::move(sources)),
      scenario_(std::move(scenario)),
      hooks_(std::move(hooks)),
      last_(clock_.now()) {
  for (const LiveSource& live : sources_) source_costs_.push_back({std::string(live.name)});
  if (scenario_) source_costs_.push_back({"simulation"});
  begin_anew();
}

AgentSampler::~AgentSampler() = default;

void AgentSampler::begin_anew() {
  engine_ = std::make_unique<Engine>(config_, *catalog_, kMaxEndedSeries);
  engine_->on_alert([this](const AlertChange& change) {
    if (store_) tell_store(store_->record(change.alert));
    changes_.push_back(change);
  });
  if (scenario_) {
    // Dates, not seconds since a start: a page and a store want to know when. The next run follows the last.
    scenario_->start = last_;
    simulation_ = sim::make_simulation(*scenario_, *catalog_);
  }
  Batch started;
  started.events.push_back(Event{.time = last_, .kind = Event::Kind::watch_started});
  if (store_) tell_store(store_->append(started));
}

bool AgentSampler::record_into(const StoreConfig& store) {
  auto opened = Store::open(store, *catalog_, last_);
  if (!opened) {
    hooks_.warn(
        fmt::format("not recording: {}; going on without it, and without a past to show", opened.error().message));
    return false;
  }
  store_ = std::move(*opened);
  Batch started;
  started.events.push_back(Event{.time = last_, .kind = Event::Kind::watch_started});
  tell_store(store_->append(started));
  return true;
}

void AgentSampler::tell_store(const Status& status) {
  if (!status) hooks_.warn("recording: " + status.error().message);
}

double AgentSampler::period_s() const {
  return scenario_ ? scenario_->period_s : config_.watch.interval_seconds;
}

void AgentSampler::poll_sources() {
  const Timestamp now = clock_.now();
  if (clock_.take_set_back()) hooks_.warn(std::string(kClockSetBack));
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    LiveSource& live = sources_[i];
    const auto begin = steady_clock::now();
    poll_live(live, now, batch_, hooks_.warn);
    source_costs_[i].poll_s += seconds_since(begin);
    ++source_costs_[i].polls;
    if (!live.error.empty()) ++source_costs_[i].failed_polls;
    tell_new(live.source->notes(), live.told, hooks_.warn);
  }
}

/// False when the simulated machine's time is over.
bool AgentSampler::poll_simulation() {
  const auto begin = steady_clock::now();
  const Result<Progress> polled = simulation_->poll({}, batch_);
  source_costs_.back().poll_s += seconds_since(begin);
  ++source_costs_.back().polls;
  for (const Sample& sample : batch_.samples) last_ = std::max(last_, sample.time);
  return polled && *polled == Progress::more;
}

void AgentSampler::take() {
  const auto begin = steady_clock::now();
  if (store_) {
    tell_store(store_->append(batch_));
    for (const std::string& notice : store_->take_notices()) hooks_.warn(notice);
  }
  engine_->ingest(batch_);
  engine_->finish();
  cost_.samples += batch_.samples.size();
  cost_.observe_s += seconds_since(begin);
  for (const Event& event : batch_.events) hooks_.event(event);
  if (changes_.empty()) return;
  const auto view = engine_->view();
  for (const AlertChange& change : changes_) {
    const auto series = std::find_if(view->series.begin(), view->series.end(),
                                     [&](const SeriesView& s) { return s.id == change.alert.series; });
    if (series != view->series.end()) hooks_.alert(*view, *series, change.alert, change.news);
  }
  changes_.clear();
}

void AgentSampler::tick(bool late) {
  batch_.clear();
  ++cost_.polls;
  if (late) ++cost_.late_polls;
  if (!simulation_) {
    poll_sources();
    take();
    return;
  }
  const bool goes_on = poll_simulation();
  take();
  if (goes_on) return;
  last_ += from_seconds(scenario_->period_s);
  begin_anew();
}

void AgentSampler::finish() {
  if (store_) tell_store(store_->flush());
}

OwnCost AgentSampler::cost() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  cost_.cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  cost_.resident_bytes = resident_bytes();
  cost_.recording = store_ != nullptr;
  cost_.sources = source_costs_;
  if (store_ && steady_clock::now() >= next_size_) {
    next_size_ = steady_clock::now() + std::chrono::seconds(10);
    cost_.store_bytes = 0;
    for (const char* part : {"", "-wal"}) {  // what was committed last is in the log beside the file
      struct stat info {};
      if (::stat((store_->path() + part).c_str(), &info) == 0)
        cost_.store_bytes += static_cast<std::uint64_t>(info.st_size);
    }
  }
  return cost_;
}

}  // namespace vramtrack::agent
