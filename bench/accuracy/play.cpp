#include "play.hpp"

#include <chrono>
#include <stdexcept>

#include "detect/detector.hpp"
#include "engine/engine.hpp"
#include "source/sim/sim.hpp"

namespace vramtrack::accuracy {
namespace {

constexpr int kLooks = 24;

double seconds_of(Timestamp time) {
  return seconds_between(Timestamp{}, time);
}

/// Feeds the engine and keeps the notes.
class Session {
 public:
  Session(const Trace& trace, const Config& config, Catalog& catalog)
      : trace_(trace), catalog_(catalog), engine_(config, catalog) {
    engine_.on_alert([this](const AlertChange& change) { note(change); });
  }

  void expect_duration(double duration_s) { look_every_s_ = duration_s / kLooks; }
  void device(std::string id) { device_ = std::move(id); }

  void ingest(const Batch& batch) {
    engine_.ingest(batch);
    for (const Sample& s : batch.samples) {
      now_s_ = seconds_of(s.time);
      const SeriesKey& key = catalog_.key(s.series);
      if (key.metric == Metric::device_used && key.device_id == device_)
        played_.points.push_back({now_s_, static_cast<double>(s.bytes)});
    }
    for (const Event& e : batch.events)
      if (trace_.label.leak && e.kind == Event::Kind::process_ended && e.pid == trace_.label.suspect_pid)
        played_.oom_s = seconds_of(e.time);
    if (raised_now_ && !played_.ours.suspect_right) look_at_suspect();
    raised_now_ = false;
    if (now_s_ >= next_look_s_) {
      next_look_s_ = now_s_ + look_every_s_;
      look();
    }
  }

  Played finish() {
    engine_.finish();
    played_.end_s = now_s_;
    if (standing_ > 0) played_.ours.alarms.push_back({raised_s_, now_s_});
    if (!played_.oom_s) look();
    return std::move(played_);
  }

  [[nodiscard]] bool over() const { return played_.oom_s.has_value(); }
  [[nodiscard]] double now_s() const { return now_s_; }

  /// The verdict at a share of the leak's life.
  void foretell(std::size_t i, double true_in_s) {
    EndForetold end{true_in_s, {}};
    if (const SeriesView* s = ours(engine_.view()); s != nullptr && s->verdict.finding.leak)
      end.said = s->verdict.finding.oom_in_s;
    played_.ours.ends[i] = end;
  }

 private:
  void note(const AlertChange& change) {
    if (change.news == AlertNews::escalated) return;
    const SeriesKey& key = catalog_.key(change.alert.series);
    if (key.device_id != device_) {
      played_.ours.false_elsewhere += change.news == AlertNews::raised ? 1 : 0;
      return;
    }
    if (change.news == AlertNews::raised) {
      if (standing_++ == 0) raised_s_ = seconds_of(change.alert.raised);
      raised_now_ = true;
      if (played_.ours.because.empty()) played_.ours.because = change.alert.finding.because;
    } else if (--standing_ == 0) {
      played_.ours.alarms.push_back({raised_s_, seconds_of(*change.alert.cleared)});
    }
  }

  const SeriesView* ours(std::shared_ptr<const View> view) {
    view_ = std::move(view);
    for (const SeriesView& s : view_->series)
      if (s.key.metric == Metric::device_used && s.key.device_id == device_) return &s;
    return nullptr;
  }

  void look_at_suspect() {
    if (!trace_.label.suspect_pid || now_s_ < trace_.label.onset_s) return;
    const SeriesView* s = ours(engine_.view());
    if (s != nullptr && s->verdict.suspect)
      played_.ours.suspect_right = s->verdict.suspect->pid == *trace_.label.suspect_pid;
  }

  void look() {
    const SeriesView* s = ours(engine_.view());
    if (s == nullptr) return;
    const Finding& f = s->verdict.finding;
    const bool leaking = trace_.label.leak && now_s_ >= trace_.label.onset_s;
    const bool rising = f.state == State::growing || f.state == State::leaking || f.state == State::slow_growth;
    played_.ours.looks.push_back({f.confidence, leaking, rising});
    if (leaking || !trace_.label.leak)
      played_.ours.highest_confidence = std::max(played_.ours.highest_confidence, f.confidence);
    if (f.leak && leaking) {
      played_.ours.pattern = f.pattern;
      played_.ours.growth_bytes_per_s = f.growth_bytes_per_s.mid;
    }
  }

  const Trace& trace_;
  Catalog& catalog_;
  Engine engine_;
  Played played_;
  std::shared_ptr<const View> view_;
  std::string device_;
  double now_s_ = 0;
  double look_every_s_ = 0;
  double next_look_s_ = 0;
  int standing_ = 0;
  double raised_s_ = 0;
  bool raised_now_ = false;
};

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

Played play_scenario(const Trace& trace, const Config& config) {
  auto scenario = sim::parse_scenario(trace.toml, trace.family);
  if (!scenario) throw std::runtime_error(scenario.error().message + "\n" + trace.toml);
  std::optional<double> oom_s;
  if (trace.label.leak) oom_s = time_of_oom(*scenario, trace.label.suspect_pid.value_or(0));
  Catalog catalog;
  Session session(trace, config, catalog);
  session.expect_duration(oom_s.value_or(scenario->duration_s));
  const auto source = sim::make_simulation(*scenario, catalog);
  if (!catalog.devices().empty()) session.device(catalog.devices().front().id);
  std::size_t share = 0;
  while (!session.over()) {
    Batch batch;
    const auto progress = source->poll({}, batch);
    if (catalog.devices().empty()) continue;
    session.device(catalog.devices().front().id);
    session.ingest(batch);
    while (oom_s && share < kLifeShares.size() &&
           session.now_s() >= trace.label.onset_s + kLifeShares[share] * (*oom_s - trace.label.onset_s)) {
      session.foretell(share++, *oom_s - session.now_s());
    }
    if (!progress || *progress == Progress::end) break;
  }
  return session.finish();
}

Played play_points(const Trace& trace, const Config& config) {
  Catalog catalog;
  DeviceInfo device;
  device.id = "gpu";
  device.index = 0;
  if (trace.capacity_bytes > 0) device.capacity_bytes = static_cast<std::uint64_t>(trace.capacity_bytes);
  catalog.describe(device);
  catalog.clock_is_relative = true;
  const SeriesId series = catalog.intern({Metric::device_used, "gpu", 0, 0});
  Session session(trace, config, catalog);
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

Played play(const Trace& trace, const Config& config) {
  Played played = trace.toml.empty() ? play_points(trace, config) : play_scenario(trace, config);
  if (trace.toml.empty() && trace.label.leak && trace.label.life_s == 0) played.oom_s = played.end_s;
  // What the detector alone costs, apart from the engine and the simulator.
  const auto detector = find_detector(config.detection.detector)->make(config.detection);
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
