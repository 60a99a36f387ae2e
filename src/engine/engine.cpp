#include "engine/engine.hpp"

#include <algorithm>
#include <utility>

#include "core/series_text.hpp"
#include "core/units.hpp"
#include "engine/engine_core.hpp"
#include "engine/sibling_summary.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kMaxNotices = 64;

}  // namespace

void Engine::Core::take(const Sample& sample) {
  if (series.find(sample.series) == nullptr)
    if (const SeriesKey& key = catalog.key(sample.series); is_fact(key.metric)) return take_fact(sample, key);
  if (tick_open && sample.time > tick) complete_tick();
  tick = std::max(tick, sample.time);
  tick_open = true;
  SeriesState& known = state(sample.series);
  SeriesState& s = known.ended && sample.time > known.ended_at ? revive(sample.series) : known;
  endings.notice_fall(s, sample);
  if (s.key.metric == Metric::host_anonymous) {
    hosts.take(s.key, sample.bytes);
    if (s.device->shares_host_memory) s.device->remainder.also(s.id, sample.bytes);
  }
  if (s.key.pid != 0 && s.samples > 0 && s.last_bytes != sample.bytes && !is_of_host(s.key.metric))
    stalls.memory_changed(process_key(s.key), sample.time);
  if (!s.observe(sample)) return;
  if (runs) runs->observe(s, sample);
  touched.push_back(s.id);
  knows_allocators |= is_of_allocator(s.key.metric);
  if (s.key.metric == Metric::device_used) s.device->remainder.read(sample.time, sample.bytes);
  if (s.key.metric == Metric::process_used) s.device->remainder.list(s.id, sample.time, sample.bytes);
  if (is_of_host(s.key.metric) && s.samples == 1) describe_kind(s);
  if (s.key.metric == Metric::process_used && s.samples == 1) {
    s.device->living.insert(s.id);
    describe_kind(s);
    if (s.device->used != nullptr) s.device->runs.came(sample.time);
  }
  if (s.alerting() != s.leaks() || s.suspecting() != s.leaks()) queue(s);
}

void Engine::Core::queue(SeriesState& s) {
  if (s.queued) return;
  s.queued = true;
  undecided.push_back(s.id);
}

void Engine::Core::complete_tick() {
  tick_open = false;
  refresh_catalog();
  endings.conclude_falls();
  derive_remainders();
  for (const SeriesId id : touched)
    if (SeriesState* s = series.find(id); s != nullptr && s->is_total()) endings.note_run(*s);
  refresh_limits();
  if (runs) runs->complete_tick(touched);
  siblings.complete_tick(touched);
  for (const SeriesId id : touched)
    if (SeriesState* const s = series.find(id); s != nullptr && s->key.metric == Metric::process_used) follow_runs(*s);
  if (config.alert.headroom) watch_headroom();
  for (const SeriesId id : touched)
    if (SeriesState* const s = series.find(id); s != nullptr) follow_standstill(*s);
  touched.clear();
  decide_all();
  report_changes();
}

void Engine::Core::decide_all() {
  if (undecided.empty()) return;
  deciding.clear();
  deciding.swap(undecided);
  for (std::size_t i = 0, n = deciding.size(); i < n; ++i)
    if (const SeriesState* s = series.find(deciding[i]); s != nullptr) review_total(*s);
  deciding.insert(deciding.end(), undecided.begin(), undecided.end());
  undecided.clear();
  // A device is decided from its parts, so they come first. A part that begins or ceases to leak adds its device.
  for (const SeriesId id : deciding)
    if (SeriesState* s = series.find(id); s != nullptr && s->key.metric != Metric::device_used) decide(*s);
  deciding.insert(deciding.end(), undecided.begin(), undecided.end());
  undecided.clear();
  for (const SeriesId id : deciding)
    if (SeriesState* s = series.find(id); s != nullptr && s->key.metric == Metric::device_used) decide(*s);
  for (const SeriesId id : deciding) {
    SeriesState* const s = series.find(id);
    if (s == nullptr) continue;
    s->queued = !s->ended && (s->leaks() || s->alert() != nullptr || s->suspicion() != nullptr || wants_leak(*s) ||
                              wants_suspicion(*s));
    if (s->queued) undecided.push_back(id);
  }
}

/// A container gives the same pid to each of its runs, and a log identifies a process by its pid alone.
SeriesState& Engine::Core::revive(SeriesId id) {
  std::erase(ended, id);
  walls.forget(id);
  return series.begin_anew(id, catalog, config, ignore);
}

Announce Engine::Core::announcer() {
  return [this](Alert& alert, AlertNews news) { announce(alert, news); };
}

/// Takes in what changed in the catalog since the last time, and no more.
void Engine::Core::refresh_catalog() {
  if (catalog.revision() == catalog_revision) return;
  catalog.devices_since(catalog_revision, [&](const DeviceInfo& device) { series.refresh(device); });
  catalog.processes_since(catalog_revision, [&](const ProcessInfo& process) {
    series.for_process({process.pid, process.start_ticks, process.host}, [&](SeriesState& s) {
      if (!s.ended) s.ignored = ignore.match(process);
      describe_kind(s);
      siblings.describe(s);
      if (runs) runs->describe(s);
    });
  });
  catalog_revision = catalog.revision();
}

void Engine::Core::refresh_limits() {
  for (const SeriesId id : touched)
    if (SeriesState* s = series.find(id); s != nullptr) refresh_limit(*s);
  apply_limits();
}

void Engine::Core::refresh_limit(SeriesState& s) const {
  if (s.ended || s.samples == 0) return;
  // Allocated memory first grows into the reserved memory.
  const SeriesState* const reserved = s.key.metric == Metric::allocator_allocated ? allocator_of(s).reserved : nullptr;
  const auto wall = walls.nearest(s);
  s.refresh_limit(reserved != nullptr ? std::optional(reserved->last_bytes) : std::nullopt,
                  wall ? std::optional(wall->end_bytes) : hosts.end_bytes(s));
}

void Engine::Core::take_limit(const Event& event) {
  if (event.device_id == kHostMemory) {
    host_limits_moved.insert({event.pid, event.pid_start_ticks, event.host});
    return hosts.take_limit(event);
  }
  limits_moved.insert({event.device_id, event.host});
  if (event.pid != 0 || !event.text.empty()) return walls.take(event);
  DeviceInfo info;
  info.id = event.device_id;
  info.host = event.host;
  info.capacity_bytes = event.capacity_bytes;
  catalog.describe(info);
}

/// What an event reports about where memory ends holds from then on: no sample may follow.
void Engine::Core::apply_limits() {
  if (limits_moved.empty() && host_limits_moved.empty()) return;
  refresh_catalog();
  const auto refresh = [this](SeriesState& s) { refresh_limit(s); };
  for (const DeviceKey& device : std::exchange(limits_moved, {})) series.for_device(device, refresh);
  for (const ProcessKey& process : std::exchange(host_limits_moved, {})) series.for_process(process, refresh);
}

/// Walls of an earlier watch ended with it: this one learns the present ones from its sources.
void Engine::Core::forget_limits() {
  walls.lift_all();
  hosts.lift_all();
  series.for_each([this](SeriesState& s) { refresh_limit(s); });
}

void Engine::Core::watch_headroom() {
  for (const SeriesId id : touched)
    if (const SeriesState* const s = series.find(id);
        s != nullptr && s->key.metric == Metric::process_used && !s->ignored)
      headrooms.take(id, headroom(*s), scale, ends_by(*s), tick, announcer());
}

std::optional<Headroom> Engine::Core::headroom(const SeriesState& s) const {
  return headroom_of(s, series, walls, runs ? &*runs : nullptr, config.detection.min_growth_mb * kMiB);
}

/// What ends a process ends all of its series; which memory ran out is known before any of them ends.
void Engine::Core::end_process(const Event& event) {
  const ProcessKey process{event.pid, event.pid_start_ticks, event.host};
  held.erase(process);
  std::vector<SeriesState*> ending;
  series.for_process(process, [&](SeriesState& s) {
    if (!s.ended && (event.device_id.empty() || s.key.device_id == event.device_id)) ending.push_back(&s);
  });
  std::optional<EndKind> reported;
  if (event.ran_out_of_memory) reported = EndKind::out_of_memory;
  bool by_host = event.killed_by_host || hosts.was_killed(process);
  bool is_known = false;
  for (const SeriesState* const s : ending) {
    by_host = by_host || (!reported && endings.host_ran_out(*s));
    is_known = is_known || s->alert() != nullptr;  // the alert reports its end
  }
  if (by_host) reported = EndKind::host_out_of_memory;
  for (SeriesState* const s : ending) {
    end(*s, reported);
    if (!by_host || is_known || s->ignored || s->key.metric != Metric::process_used) continue;
    is_known = true;
    Alert& alert = hosts.raise(*s, tick, scale);
    Alert raised = alert;
    raised.cleared.reset();
    raised.ended = AlertEnd::standing;
    announce(raised, AlertNews::raised);
    alert.incident = raised.incident;
    announce(alert, AlertNews::cleared);
  }
  if (event.device_id.empty()) stalls.end(process, event.time, announcer());
  report_changes();  // of series that may be forgotten next
  forget_oldest_ended();
}

void Engine::Core::end(SeriesState& s, std::optional<EndKind> reported) {
  std::string left;
  const std::optional<MemoryWall> its_wall = wall(s);
  // As last reported, including the wall, which the series itself does not have.
  const std::string because = its_wall && s.detector && grows(s.finding()) ? verdict(s).finding.because : std::string();
  if (s.key.metric == Metric::process_used) {
    remember_run(s);
    left = still_holding.left_for(s, catalog);
  }
  endings.process_ends(s, reported);
  s.ended_at = tick;
  const End& end = *s.last_found.end;
  walls.end(s, end.how == EndKind::ended                ? std::nullopt
               : end.how == EndKind::host_out_of_memory ? wall_of_host(s)
                                                        : its_wall);
  if (!because.empty()) s.last_found.finding.because = because;
  if (end.how == EndKind::out_of_memory) s.last_found.finding.because += left;
  clear(s, with_its_run(end, scale));
  if (Alert* suspicion = s.suspicion()) {
    suspicion->cleared = tick;
    with_its_run(end, scale).write_to(*suspicion);
  }
  headrooms.end(s.id, tick, announcer());
  siblings.leave(s.id);
  if (runs) runs->ended(s);
  ended.push_back(s.id);
  if (s.key.metric == Metric::host_anonymous) s.device->remainder.also(s.id, 0);
  s.device->process_ended = tick;
  s.device->living.erase(s.id);
  if (s.key.metric == Metric::process_used) s.device->remainder.end(s.id, tick, s.release_s());
}

void Engine::Core::add_notice(Notice notice) {
  notices.push_back(std::move(notice));
  if (notices.size() > kMaxNotices) notices.pop_front();
}

void Engine::Core::apply(const Event& event) {
  if (tick_open && event.time > tick) complete_tick();
  tick = std::max(tick, event.time);
  if (event.kind != Event::Kind::capacity) apply_limits();
  const DeviceKey device{event.device_id, event.host};
  switch (event.kind) {
    case Event::Kind::process_ended:
      if (event.pid == 0) return endings.take_end(event);
      return end_process(event);
    case Event::Kind::device_lost:
    case Event::Kind::device_resumed: {
      const auto pause = [&](SeriesState& s) {
        s.paused = event.kind == Event::Kind::device_lost;
        s.load = {};
        s.device->health.reset();  // it described the time before
        s.device->utilisation_ratio.reset();
        s.device->gauges = {};
      };
      if (event.device_id.empty())
        series.for_host(event.host, pause);
      else
        series.for_device(device, pause);
      break;
    }
    case Event::Kind::capacity:
      return take_limit(event);
    case Event::Kind::lifetimes:
      series.for_process({event.pid, event.pid_start_ticks, event.host}, [&](SeriesState& s) {
        const bool is_memory = s.key.metric == Metric::process_used || s.key.metric == Metric::probe_live;
        if (is_memory && !s.ended) s.ensure_facts().lifetimes().take(event.time, event.sites);
      });
      return;
    case Event::Kind::watch_started:
      held.clear();  // what it holds is reported again; the code that replays a store starts over here, or continues
      return forget_limits();
    case Event::Kind::held:
      held.try_emplace({event.pid, event.pid_start_ticks, event.host}, Hold{event.time, event.text});
      break;
    case Event::Kind::let_go:
      held.erase({event.pid, event.pid_start_ticks, event.host});
      break;
    case Event::Kind::xid:
      if (const auto id = catalog.find({Metric::device_used, event.device_id, 0, 0, event.host}))
        state(*id).device->last_xid = LastXid{event.time, event.xid, event.text};
      break;
    case Event::Kind::out_of_memory:
      still_holding.take(event, series);
      endings.take_out_of_memory(event);
      break;
    case Event::Kind::host_out_of_memory:
      if (event.pid != 0) hosts.killed({event.pid, event.pid_start_ticks, event.host}, event.time);
      break;
    case Event::Kind::mark:
      return marks.take(event);
    case Event::Kind::note:
      break;
  }
  if (!event.text.empty()) add_notice({event.time, event.text});
}

void Engine::Core::forget_oldest_ended() {
  while (ended.size() > max_ended_series) {
    const SeriesId oldest = ended.front();
    ended.pop_front();
    if (runs) runs->forget(oldest);
    stalls.forget(oldest);
    unreleased.forget(oldest);
    headrooms.forget(oldest);
    still_holding.forget(oldest);
    walls.forget(oldest);
    marks.forget(process_key(catalog.key(oldest)));
    hosts.forget_alerts(oldest);
    hosts.forget(process_key(catalog.key(oldest)));
    retire_facts(catalog.key(oldest));
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
  if (!core_->tick_open) core_->apply_limits();
  for (const DeviceReading& reading : batch.readings)
    if (const auto id = core_->catalog.find({Metric::device_used, reading.device_id, 0, 0, reading.host})) {
      DeviceState& device = *core_->state(*id).device;
      device.utilisation_ratio = reading.gpu_utilisation_ratio;
      device.gauges = reading.gauges;
      if (reading.health) device.health = reading.health;
      // The gauge is read more often, and there is only one temperature.
      if (device.health && device.gauges.temperature_celsius)
        device.health->temperature_celsius = device.gauges.temperature_celsius;
    }
  for (const ProcessReading& reading : batch.loads)
    if (SeriesState* s = core_->series.find(reading.series)) {
      s->load = reading.load;
      s->has_run = s->has_run || reading.load.gpu_ratio.value_or(0) > 0;
    }
  core_->stalls.take(batch, core_->announcer());
  core_->report_changes();
}

void Engine::finish() {
  if (core_->tick_open) core_->complete_tick();
}

void Engine::end_of_recording() {
  finish();
  core_->series.for_each([&](SeriesState& s) {
    if (s.ended || !s.detector || s.suspicion() == nullptr || core_->others_give_back(s)) return;
    const SeriesState& line = s.line();
    if (!line.detector->confirm_at_end() && (&line == &s || !line.detector->alerting())) return;
    s.reviewed.reset();
    core_->decide(s);
  });
  // A device is decided from its parts, which may come after it.
  core_->series.for_each([&](SeriesState& s) {
    if (s.ended || s.key.metric != Metric::device_used || s.suspicion() == nullptr) return;
    s.reviewed.reset();
    core_->decide(s);
  });
  core_->endings.end_of_recording();
  core_->report_changes();
}

void Engine::remember(ProgramMemory memory) {
  if (core_->runs)
    core_->runs->use(std::move(memory));
  else
    core_->runs.emplace(std::move(memory), core_->catalog, core_->series);
}

void Engine::adopt(const Alert& alert) {
  const Alert named = core_->named(alert);
  if (core_->adopt(named)) core_->go_on(named, true, {});
}

void Engine::recall(const Alert& alert, Timestamp until) {
  core_->go_on(core_->named(alert), false, until);
}

/// Alerts recorded before incidents existed name none.
Alert Engine::Core::named(Alert alert) const {
  if (alert.incident.empty() && catalog.holds(alert.series))
    alert.incident = alert_id(catalog.key(alert.series), alert.raised);
  return alert;
}

void Engine::Core::go_on(Alert alert, bool stands, Timestamp until) {
  if (!catalog.holds(alert.series)) return;
  const SeriesKey key = catalog.key(alert.series);
  std::vector<SeriesKey> leaking = incidents.adopt(key, alert, stands, until, work_of(key, alert));
  leaking.push_back(key);
  if (alert.kind == AlertKind::leak) rename(leaking, alert.incident);
}

/// Whether it stands here.
bool Engine::Core::adopt(const Alert& alert) {
  if (alert.kind == AlertKind::stall) return stalls.adopt(alert);
  if (alert.kind == AlertKind::unreleased) return unreleased.adopt(alert);
  if (alert.kind == AlertKind::headroom) return headrooms.adopt(alert);
  if (alert.kind == AlertKind::host_out_of_memory) return false;  // it was over when it was raised
  SeriesState* const s = series.find(alert.series);
  if (s == nullptr || !s->leaks()) return false;
  if (s->alert() == nullptr) {
    // It was raised because of something that the samples still recorded do not show.
    if (s->suspicion() != nullptr) s->suspicions.pop_back();
    s->alerts.push_back(alert);
    return true;
  }
  Alert& own = *s->alert();
  if (alert.raised > own.raised) return true;
  const Severity severity = std::max(own.severity, alert.severity);
  own = alert;
  own.severity = severity;
  return true;
}

void Engine::set_past_days(SeriesId id, const std::vector<std::pair<Timestamp, double>>& hour_floors) {
  if (core_->runs) core_->runs->set_past_days(id, hour_floors);
}

void Engine::set_ceiling(SeriesId id, double bytes) {
  core_->state(id).ceiling_bytes = bytes;
}

void Engine::set_busy(SeriesId id, Timestamp time, double ratio) {
  core_->state(id).ensure_facts().busy(time, ratio);
}

void Engine::share_siblings(std::function<std::string(const std::string&)> hash) {
  core_->siblings.hash_with(std::move(hash));
}

std::vector<SiblingSummary> Engine::siblings() const {
  return core_->siblings.summaries();
}

void Engine::set_remote_siblings(const std::vector<SiblingSummary>& theirs) {
  core_->siblings.set_remote_siblings(theirs);
}

void Engine::end_runs() {
  if (core_->runs) core_->runs->end_all();
}

void Engine::on_alert(std::function<void(const AlertChange&)> callback) {
  core_->callback = std::move(callback);
}

bool Engine::leaks(SeriesId series) const {
  const SeriesState* const s = core_->series.find(series);
  return s != nullptr && s->leaks();
}

std::uint64_t Engine::series_visits() const {
  return core_->series.visits();
}

}  // namespace vramtrack
