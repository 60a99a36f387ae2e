#include "situations.hpp"

#include "core/end_words.hpp"
#include "core/units.hpp"

namespace vramtrack::surfaces {
namespace {

constexpr auto kCapacity = static_cast<std::uint64_t>(24 * kGiB);

/// 2026-01-05T10:00:00Z
Timestamp now() {
  return Timestamp{std::chrono::seconds{1767607200}};
}
Timestamp ago(double minutes) {
  return now() - from_seconds(minutes * 60);
}

SeriesView device(double used_gib) {
  SeriesView s;
  s.id = SeriesId{0};
  s.key = {Metric::device_used, "GPU-8f2c1f9e", 0, 0};
  s.device.id = s.key.device_id;
  s.device.index = 0;
  s.device.name = "NVIDIA A10";
  s.device.capacity_bytes = kCapacity;
  s.samples = 7200;
  s.first = ago(120);
  s.last = now();
  s.interval_s = 1;
  s.used_bytes = static_cast<std::uint64_t>(used_gib * kGiB);
  s.peak_bytes = kCapacity;
  s.verdict.time = now();
  s.verdict.finding.detector = "judge";
  s.verdict.finding.state = State::steady;
  s.verdict.finding.because = "varies by 2 MiB for 50 min";
  return s;
}

SeriesView process(std::uint32_t pid, double used_gib) {
  SeriesView s = device(used_gib);
  s.id = SeriesId{pid};
  s.key = {Metric::process_used, "GPU-8f2c1f9e", pid, pid * 10ULL};
  s.process.emplace();
  s.process->pid = pid;
  s.process->start_ticks = pid * 10ULL;
  s.process->user = "alice";
  s.process->name = "python";
  s.process->command = "python train.py";
  return s;
}

void grow(SeriesView& s) {
  Finding& f = s.verdict.finding;
  f.state = State::growing;
  f.confidence = 0.5;
  f.growth_bytes_per_s = {1.9 * kMiB, 2.0 * kMiB, 2.1 * kMiB};
  f.r_squared = 0.97;
  f.onset = ago(20);
  f.oom_if_growth_continues_s = 7200;
  f.because = "floor rose 2.4 GiB in 20 min";
  s.level_bytes = static_cast<double>(s.used_bytes);
}

Alert leak_alert(const SeriesView& s) {
  Alert a;
  a.series = s.id;
  a.raised = ago(60);
  a.severity = Severity::critical;
  a.finding = s.verdict.finding;
  a.finding.leak = true;
  a.finding.state = State::leaking;
  a.finding.stage = Stage::confirmed;
  a.finding.pattern = Pattern::gradual_leak;
  a.finding.confidence = 0.97;
  a.finding.growth_bytes_per_s = {1.9 * kMiB, 2.0 * kMiB, 2.1 * kMiB};
  a.finding.oom_in_s = Interval{1800, 2400, 3000};
  a.finding.onset = ago(80);
  a.finding.because = "floor rose 9.4 GiB in 80 min";
  return a;
}

void leak(SeriesView& s) {
  Alert alert = leak_alert(s);
  s.verdict.finding = alert.finding;
  s.verdict.finding.oom_in_s = Interval{1140, 1440, 1800};
  s.verdict.severity = Severity::critical;
  s.level_bytes = static_cast<double>(s.used_bytes);
  s.alerts = {std::move(alert)};
}

/// The run of pid 4242 ended half an hour ago.
void end(SeriesView& s, EndKind how, double at_gib) {
  End e;
  e.how = how;
  e.time = ago(30);
  e.pid = 4242;
  e.pid_start_ticks = 42420;
  e.command = "python train.py";
  e.used_bytes = static_cast<std::uint64_t>(at_gib * kGiB);
  s.verdict.end = e;
}

void run_out_of_memory(SeriesView& s) {
  end(s, EndKind::out_of_memory, 23.9);
  s.verdict.end->growth_bytes_per_s = 2.0 * kMiB;
  s.verdict.end->onset = ago(80);
  Alert alert = leak_alert(s);
  alert.cleared = ago(30);
  alert.ended = AlertEnd::process_ended;
  alert.end_reason = reason_of_end(*s.verdict.end, kSecondsAndBytes);
  alert.end_kind = EndKind::out_of_memory;
  s.alerts = {std::move(alert)};
}

View view_of(std::vector<SeriesView> series) {
  View view;
  view.time = now();
  view.series = std::move(series);
  return view;
}

SeriesView dead_process(EndKind how) {
  SeriesView s = process(4242, 9);
  s.ended = true;
  s.last = ago(30);
  end(s, how, 9);
  return s;
}

}  // namespace

std::vector<Situation> situations() {
  std::vector<Situation> out;
  out.push_back({"steady", view_of({device(12), process(4242, 11.6)}), {}});

  SeriesView growing = device(14);
  SeriesView grower = process(4242, 13.6);
  grow(growing);
  grow(grower);
  growing.verdict.suspect = Suspect{4242, 42420, "python train.py", 0.99};
  out.push_back({"growing", view_of({growing, grower}), {}});

  SeriesView leaking = device(20);
  SeriesView leaker = process(4242, 19.6);
  leak(leaking);
  leak(leaker);
  leaking.verdict.suspect = Suspect{4242, 42420, "python train.py", 0.99};
  leaking.verdict.framework = "PyTorch";
  leaking.verdict.causes = {"losses kept with their graph"};
  leaking.verdict.advice = {"keep loss.item(), never the loss itself"};
  out.push_back({"leaking", view_of({leaking, leaker}), AlertNews::raised});

  SeriesView crashed = device(0.4);
  SeriesView victim = dead_process(EndKind::out_of_memory);
  run_out_of_memory(crashed);
  out.push_back({"ended by out-of-memory, steady now", view_of({crashed, victim}), AlertNews::cleared});

  SeriesView again = device(4);
  SeriesView next = process(4300, 3.6);
  run_out_of_memory(again);
  grow(again);
  grow(next);
  out.push_back({"ended and growing again", view_of({again, victim, next}), AlertNews::cleared});

  SeriesView idle = device(0.4);
  end(idle, EndKind::ended, 9.4);
  out.push_back({"process ended", view_of({idle, dead_process(EndKind::ended)}), {}});
  return out;
}

}  // namespace vramtrack::surfaces
