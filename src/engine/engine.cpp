#include "engine/engine.hpp"

#include <algorithm>

#include "engine/engine_core.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kMaxNotices = 64;

}  // namespace

SeriesState* Engine::Core::state(SeriesId id) {
  const std::size_t index = index_of(id);
  if (index >= series.size()) series.resize(std::max(index + 1, catalog.size()));
  if (!series[index]) series[index] = std::make_unique<SeriesState>(id, catalog, config, ignore);
  return series[index].get();
}

void Engine::Core::take(const Sample& sample) {
  if (tick_open && sample.time > tick) complete_tick();
  tick = std::max(tick, sample.time);
  tick_open = true;
  SeriesState* s = state(sample.series);
  if (!s->observe(sample)) return;
  touched.push_back(s);
  if (s->detector->alerting() != s->alerting && !s->queued) {
    s->queued = true;
    undecided.push_back(s);
  }
}

void Engine::Core::complete_tick() {
  tick_open = false;
  refresh_limits();
  touched.clear();
  if (undecided.empty()) return;
  deciding.clear();
  deciding.swap(undecided);
  // Processes first: whether one of them grows decides what a device's growth means.
  for (const bool processes : {true, false})
    for (SeriesState* s : deciding)
      if ((s->key.pid != 0) == processes) decide(*s);
  for (SeriesState* s : deciding) {
    s->queued = !s->ended && (s->alerting || (s->detector && s->detector->alerting()));
    if (s->queued) undecided.push_back(s);
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
      seconds_between(*s.process_ended, tick) <= 60 + 2 * s.period.median_s()) {
    end = AlertEnd::released;
    reason = "a process on the device ended and its memory was released";
  }
  Alert& alert = s.alerts.back();
  alert.cleared = tick;
  alert.ended = end;
  alert.end_reason = std::move(reason);
  if (callback) callback({alert, AlertNews::cleared});
}

/// A device ends at its capacity less what the driver keeps; a process where its device does.
void Engine::Core::refresh_limits() {
  const auto at = [&](std::optional<SeriesId> id) {
    return id && index_of(*id) < series.size() ? series[index_of(*id)].get() : nullptr;
  };
  for (SeriesState* s : touched) {
    if (s->ended) continue;
    s->refresh_catalog(catalog, ignore);
    if (s->capacity_bytes) s->refresh_limit(at(s->device_used), at(s->device_reserved));
  }
}

SeriesState* Engine::Core::device_of(const SeriesState& s) const {
  const auto device = catalog.find({Metric::device_used, s.key.device_id, 0, 0});
  return device && index_of(*device) < series.size() ? series[index_of(*device)].get() : nullptr;
}

void Engine::Core::apply(const Event& event) {
  if (tick_open && event.time > tick) complete_tick();
  tick = std::max(tick, event.time);
  const auto matches = [&](const SeriesState& s) {
    return event.device_id.empty() || s.key.device_id == event.device_id;
  };
  switch (event.kind) {
    case Event::Kind::process_ended:
      for (auto& s : series)
        if (s && !s->ended && s->key.pid == event.pid && s->key.pid_start_ticks == event.pid_start_ticks &&
            matches(*s)) {
          s->end();
          if (s->alerting) clear(*s, AlertEnd::process_ended, "the process has ended");
          ended.push_back(s->id);
          if (SeriesState* device = device_of(*s)) device->process_ended = tick;
        }
      forget_oldest_ended();
      return;
    case Event::Kind::device_lost:
    case Event::Kind::device_resumed:
      for (auto& s : series)
        if (s && matches(*s)) {
          s->paused = event.kind == Event::Kind::device_lost;
          s->health.reset();  // it was of before
        }
      break;
    case Event::Kind::capacity: {
      DeviceInfo device;
      device.id = event.device_id;
      device.capacity_bytes = event.code;
      catalog.describe(device);
      return;
    }
    case Event::Kind::watch_started:
      return;  // whoever replays a store begins anew here
    case Event::Kind::xid:
      if (const auto id = catalog.find({Metric::device_used, event.device_id, 0, 0}))
        state(*id)->last_xid = LastXid{event.time, event.code, event.text};
      break;
    case Event::Kind::note:
      break;
  }
  if (!event.text.empty()) notices.push_back({event.time, event.text});
  if (notices.size() > kMaxNotices) notices.pop_front();
}

void Engine::Core::forget_oldest_ended() {
  while (ended.size() > max_ended_series) {
    const auto index = index_of(ended.front());
    ended.pop_front();
    std::erase(undecided, series[index].get());
    std::erase(touched, series[index].get());
    series[index].reset();
    catalog.retire(static_cast<SeriesId>(index));
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
    if (const auto id = core_->catalog.find({Metric::device_used, reading.device_id, 0, 0})) {
      SeriesState& s = *core_->state(*id);
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

}  // namespace vramtrack
