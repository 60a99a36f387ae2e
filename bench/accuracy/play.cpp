#include "play.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "detect/detector.hpp"
#include "session.hpp"

namespace vramtrack::accuracy {
namespace {

/// When the leaking program will die, by playing the scenario alone.
std::optional<double> time_of_oom(const sim::Scenario& scenario, std::uint32_t pid) {
  Catalog catalog;
  const auto source = sim::make_simulation(scenario, catalog);
  for (;;) {
    Batch batch;
    const auto progress = source->poll({}, batch);
    for (const Event& e : batch.events)
      if (e.kind == Event::Kind::process_ended && e.pid == pid) return seconds_of(e.time);
    if (!progress || *progress == Progress::end) return std::nullopt;
  }
}

Played play_scenario(const Trace& trace, const Config& config, Past past) {
  std::shared_ptr<const sim::Scenario> scenario = trace.scenario;
  if (scenario == nullptr) {
    auto parsed = sim::parse_scenario(trace.toml, trace.family);
    if (!parsed) throw std::runtime_error(parsed.error().message + "\n" + trace.toml);
    scenario = std::make_shared<const sim::Scenario>(std::move(*parsed));
  }
  std::optional<double> oom_s;
  if (trace.label.leak) oom_s = time_of_oom(*scenario, trace.label.suspect_pid.value_or(0));
  Catalog catalog;
  Session session(trace, config, catalog, past);
  session.expect_duration(trace.restart_after_s ? scenario->duration_s : oom_s.value_or(scenario->duration_s));
  const auto source = sim::make_simulation(*scenario, catalog);
  session.device(catalog.devices()[trace.label.device].id);
  std::size_t share = 0;
  while (!session.over()) {
    Batch batch;
    const auto progress = source->poll({}, batch);
    session.ingest(batch);
    while (oom_s && share < kLifeShares.size() &&
           session.now_s() >= trace.label.onset_s + kLifeShares[share] * (*oom_s - trace.label.onset_s)) {
      session.foretell(share, *oom_s - session.now_s());
      ++share;
    }
    if (!progress || *progress == Progress::end) break;
  }
  return session.finish();
}

Played play_points(const Trace& trace, const Config& config, Past past) {
  Catalog catalog;
  DeviceInfo device;
  device.id = "gpu";
  device.index = 0;
  if (trace.capacity_bytes > 0) device.capacity_bytes = static_cast<std::uint64_t>(trace.capacity_bytes);
  catalog.describe(device);
  catalog.clock_is_relative = true;
  const SeriesId series = catalog.intern({Metric::device_used, "gpu", 0, 0});
  Session session(trace, config, catalog, past);
  session.device("gpu");
  const double end_s = trace.points.empty() ? 0 : trace.points.back().t_s;
  session.expect_duration(end_s);
  std::size_t share = 0;
  // A recording with a leak added ends where memory does.
  for (const Point& p : trace.points) {
    Batch batch;
    batch.samples.push_back({Timestamp{from_seconds(p.t_s)}, series, static_cast<std::uint64_t>(p.used_bytes)});
    session.ingest(batch);
    while (trace.label.leak && share < kLifeShares.size() &&
           p.t_s >= trace.label.onset_s + kLifeShares[share] * (end_s - trace.label.onset_s))
      session.foretell(share++, end_s - p.t_s);
  }
  return session.finish();
}

}  // namespace

Played play(const Trace& trace, const Config& config, const Past& past) {
  const bool recorded = !trace.points.empty();
  Played played = recorded ? play_points(trace, config, past) : play_scenario(trace, config, past);
  if (recorded && trace.label.leak && trace.label.life_s == 0) played.oom_s = played.end_s;
  if (trace.scenario) return played;
  // What the detector alone costs, apart from the engine and the simulator.
  const auto detector = find_detector(config.detection.detector)->make(config.detection, kSecondsAndBytes);
  if (trace.capacity_bytes > 0) detector->set_limit(trace.capacity_bytes);
  const auto begun = std::chrono::steady_clock::now();
  for (const Point& p : played.points) detector->observe(Timestamp{from_seconds(p.t_s)}, p.used_bytes);
  played.ours.seconds_spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return played;
}

Outcome play_rival(const RivalInfo& info, const Trace& trace, const std::vector<Point>& points) {
  Outcome outcome;
  const auto rival = info.make(trace.capacity_bytes);
  bool on = false;
  double raised_s = 0;
  const auto begun = std::chrono::steady_clock::now();
  for (const Point& p : points) {
    rival->observe(p.t_s, p.used_bytes);
    const bool alarming = rival->alarming();
    if (alarming == on) continue;
    on = alarming;
    if (on)
      raised_s = p.t_s;
    else
      outcome.alarms.push_back({raised_s, p.t_s});
  }
  outcome.seconds_spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  if (on) outcome.alarms.push_back({raised_s, points.back().t_s});
  return outcome;
}

}  // namespace vramtrack::accuracy
