#include "engine/engine.hpp"

#include <algorithm>

#include "engine/engine_core.hpp"

namespace vramtrack {
namespace {

/// Memory that goes within this time of a process's end went with it: a driver takes up to a minute to free what a
/// large process held, and the fall is seen a poll later, or two where one is missed.
constexpr double kEndNoticed_s = 60;
constexpr double kEndNoticedPolls = 2;
constexpr std::size_t kMaxNotices = 64;

}  // namespace

void Engine::Core::take(const Sample& sample) {
  if (tick_open && sample.time > tick) complete_tick();
  tick = std::max(tick, sample.time);
  tick_open = true;
  SeriesState& s = state(sample.series);
  notice_fall(s, sample);
  if (!s.observe(sample)) return;
  touched.push_back(s.id);
  if (s.detector->alerting() != s.alerting && !s.queued) {
    s.queued = true;
    undecided.push_back(s.id);
  }
}

void Engine::Core::complete_tick() {
  tick_open = false;
  refresh_catalog();
  conclude_falls();
  for (const SeriesId id : touched)
    if (SeriesState* s = series.find(id); s != nullptr && s->key.metric == Metric::device_used) s->note_run();
  refresh_limits();
  touched.clear();
  if (undecided.empty()) return;
  deciding.clear();
  deciding.swap(undecided);
  // Processes first: whether one of them grows decides what a device's growth means.
  for (const bool processes : {true, false})
    for (const SeriesId id : deciding)
      if (SeriesState* s = series.find(id); s != nullptr && (s->key.pid != 0) == processes) decide(*s);
  for (const SeriesId id : deciding) {
    SeriesState* const s = series.find(id);
    if (s == nullptr) continue;
    s->queued = !s->ended && (s->alerting || (s->detector && s->detector->alerting()));
    if (s->queued) undecided.push_back(id);
  }
}

void Engine::Core::decide(SeriesState& s) {
  if (!s.detector || s.ended) return;
  const bool wants = s.detector->alerting();
  if (s.alerting && !wants) return clear(s, s.detector->last_end(), s.detector->last_end_reason());
  if (!wants || s.ignored) return;
  // Looked at again only now and then: a finding costs microseconds, and neither severity nor the
  // process set needs finer time than this.
  constexpr Duration kReview = std::chrono::seconds{60};
  if (s.reviewed && tick - *s.reviewed < kReview) return;
  s.reviewed = tick;
  const Verdict v = verdict(s);
  if (!s.alerting) {
    if (!v.finding.leak) return;  // held: the process set explains it
    s.alerting = true;
    s.alerts.push_back(Alert{s.id, tick, {}, AlertEnd::standing, v.severity, v.finding, {}});
    if (s.alerts.size() > SeriesState::kMaxAlerts) s.alerts.erase(s.alerts.begin());
    if (callback) callback({s.alerts.back(), AlertNews::raised});
    return;
  }
  if (!v.finding.leak) return clear(s, AlertEnd::withdrawn, v.finding.because);
  if (v.severity > s.alerts.back().severity) {
    s.alerts.back().severity = v.severity;
    if (callback) callback({s.alerts.back(), AlertNews::escalated});
  }
}

void Engine::Core::clear(SeriesState& s, AlertEnd end, std::string reason) {
  s.alerting = false;
  s.reviewed.reset();
  // What looks like the program giving memory back is, on a device, a program that has just ended.
  if (end == AlertEnd::withdrawn && s.process_ended &&
      seconds_between(*s.process_ended, tick) <= kEndNoticed_s + kEndNoticedPolls * s.period.median_s()) {
    end = AlertEnd::released;
    reason = "a process on the device ended and its memory was released";
  }
  Alert& alert = s.alerts.back();
  alert.cleared = tick;
  alert.ended = end;
  alert.end_reason = std::move(reason);
  if (callback) callback({alert, AlertNews::cleared});
}

/// What changed in the catalog since the last time, and no more.
void Engine::Core::refresh_catalog() {
  if (catalog.revision() == catalog_revision) return;
  catalog.devices_since(catalog_revision, [&](const DeviceInfo& device) { series.refresh(device); });
  catalog.processes_since(catalog_revision, [&](const ProcessInfo& process) {
    series.for_process({process.pid, process.start_ticks, process.host}, [&](SeriesState& s) {
      if (!s.ended) s.ignored = ignore.match(process);
    });
  });
  catalog_revision = catalog.revision();
}

void Engine::Core::refresh_limits() {
  for (const SeriesId id : touched)
    if (SeriesState* s = series.find(id); s != nullptr && !s->ended) s->refresh_limit();
}

void Engine::Core::end(SeriesState& s, const std::string& said) {
  process_ends(s, said);
  if (s.alerting) clear(s, AlertEnd::process_ended, "the process has ended");
  ended.push_back(s.id);
  if (SeriesState* device = series.device_of(s).used) device->process_ended = tick;
}

void Engine::Core::apply(const Event& event) {
  if (tick_open && event.time > tick) complete_tick();
  tick = std::max(tick, event.time);
  const DeviceKey device{event.device_id, event.host};
  switch (event.kind) {
    case Event::Kind::process_ended:
      series.for_process({event.pid, event.pid_start_ticks, event.host}, [&](SeriesState& s) {
        if (!s.ended && (event.device_id.empty() || s.key.device_id == event.device_id)) end(s, event.text);
      });
      forget_oldest_ended();
      return;
    case Event::Kind::device_lost:
    case Event::Kind::device_resumed: {
      const auto pause = [&](SeriesState& s) {
        s.paused = event.kind == Event::Kind::device_lost;
        s.health.reset();  // it was of before
      };
      if (event.device_id.empty())
        series.for_host(event.host, pause);
      else
        series.for_device(device, pause);
      break;
    }
    case Event::Kind::capacity: {
      DeviceInfo info;
      info.id = event.device_id;
      info.host = event.host;
      info.capacity_bytes = event.code;
      catalog.describe(info);
      return;
    }
    case Event::Kind::watch_started:
      return;  // whoever replays a store begins anew here
    case Event::Kind::xid:
      if (const auto id = catalog.find({Metric::device_used, event.device_id, 0, 0, event.host}))
        state(*id).last_xid = LastXid{event.time, event.code, event.text};
      break;
    case Event::Kind::note:
      break;
  }
  if (!event.text.empty()) notices.push_back({event.time, event.text});
  if (notices.size() > kMaxNotices) notices.pop_front();
}

void Engine::Core::forget_oldest_ended() {
  while (ended.size() > max_ended_series) {
    const SeriesId oldest = ended.front();
    ended.pop_front();
    series.forget(oldest);
    catalog.retire(oldest);
  }
}

Engine::Engine(const Config& config, Catalog& catalog, std::size_t max_ended_series)
    : core_(std::make_unique<Core>(config, catalog, max_ended_series)) {}
Engine::~Engine() = default;

void Engine::ingest(const Batch& batch) {
  std::size_t next_event = 0;
  const auto apply_until = [&](Timestamp time) {
    while (next_event < batch.events.size() && batch.events[next_event].time <= time)
      core_->apply(batch.events[next_event++]);
  };
  for (const Sample& sample : batch.samples) {
    if (next_event < batch.events.size()) apply_until(sample.time);
    core_->take(sample);
  }
  while (next_event < batch.events.size()) core_->apply(batch.events[next_event++]);
  for (const DeviceReading& reading : batch.readings)
    if (const auto id = core_->catalog.find({Metric::device_used, reading.device_id, 0, 0, reading.host})) {
      SeriesState& s = core_->state(*id);
      s.utilisation_ratio = reading.gpu_utilisation_ratio;
      if (reading.health) s.health = reading.health;
    }
}

void Engine::finish() {
  if (core_->tick_open) core_->complete_tick();
}

void Engine::on_alert(std::function<void(const AlertChange&)> callback) {
  core_->callback = std::move(callback);
}

std::uint64_t Engine::series_visits() const {
  return core_->series.visits();
}

}  // namespace vramtrack
