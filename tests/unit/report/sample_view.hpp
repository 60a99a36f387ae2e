// A View as an engine might publish it: a leaking GPU with its process, and a steady one.
#pragma once

#include "core/view.hpp"

namespace vramtrack {

inline Timestamp at(double s) {
  return Timestamp{std::chrono::seconds{1767323045}} + from_seconds(s);
}  // 2026-01-02T03:04:05Z

inline constexpr std::uint64_t kGiB = 1ULL << 30;

inline Finding leak_finding() {
  Finding f;
  f.detector = "judge";
  f.leak = true;
  f.state = State::leaking;
  f.pattern = Pattern::gradual_leak;
  f.confidence = 0.97;
  f.growth_bytes_per_s = {800000.0, 873813.3333, 910000.0};
  f.r_squared = 0.982;
  f.oom_in_s = Interval{2280, 2820, 3900};
  f.onset = at(600);
  f.because = "floor and peak rose together over 38 min";
  return f;
}

inline SeriesView leaking_device() {
  SeriesView s;
  s.key = {Metric::device_used, "GPU-1", 0, 0};
  s.device = {"GPU-1", 0, "NVIDIA A10", "00000000:1d:00.0", "", 24 * kGiB};
  s.samples = 7200;
  s.first = at(0);
  s.last = at(7199);
  s.interval_s = 1;
  s.used_bytes = 12 * kGiB;
  s.peak_bytes = 13 * kGiB;
  s.verdict.severity = Severity::critical;
  s.verdict.finding = leak_finding();
  Finding other;
  other.detector = "linear_trend";
  other.state = State::growing;
  other.because = "slope below 1 MB/s";
  s.verdict.dissent = {other};
  s.verdict.suspect = Suspect{4242, 77, "python train.py", 0.96};
  s.verdict.framework = "PyTorch";
  s.verdict.causes = {"growing loss history"};
  s.verdict.advice = {"keep loss.item(), not the tensor"};
  Alert a;
  a.raised = at(1500);
  a.severity = Severity::critical;
  a.finding = leak_finding();
  s.alerts = {a};
  return s;
}

/// Everything that the driver reports for a data-centre GPU, which is at its power cap.
inline DeviceHealth healthy_gpu() {
  DeviceHealth h;
  h.time = at(7190);
  h.temperature_celsius = 71;
  h.ecc_enabled = true;
  h.ecc_since_load = {2, 0};
  h.ecc_lifetime = {40, 0};
  h.remapped_rows = 0;
  h.repair_pending = h.repair_failed = false;
  h.throttle = ThrottleSet{};
  h.throttle->add(Throttle::power_cap);
  h.hears_xids = true;
  return h;
}

inline SeriesView steady_process() {
  SeriesView s;
  s.key = {Metric::process_used, "GPU-1", 4243, 78};
  s.device = leaking_device().device;
  s.process = ProcessInfo{};
  s.process->pid = 4243;
  s.process->command = "python serve.py";
  s.process->user = "alice";
  s.samples = 7200;
  s.first = at(0);
  s.last = at(7199);
  s.interval_s = 1;
  s.used_bytes = 3 * kGiB;
  s.peak_bytes = 3 * kGiB;
  s.verdict.finding.detector = "judge";
  s.verdict.finding.state = State::steady;
  s.verdict.finding.confidence = 0.004;
  s.verdict.finding.because = "no growth";
  return s;
}

/// The conclusion about a worker that waits for a lock.
inline Stall lasting_stall() {
  Stall stall;
  stall.judgement = StallJudgement::stalled;
  stall.cause = StallCause::waits;
  stall.since = at(4599);
  stall.stalled_for_s = 2600;
  stall.confidence = 0.8;
  stall.held_bytes = 3 * kGiB;
  stall.evidence = {"it ran no kernel", "its main thread waits in futex_wait_queue"};
  return stall;
}

/// The alert that it raises.
inline Alert stall_alert() {
  Alert a;
  a.kind = AlertKind::stall;
  a.raised = at(6399);
  a.finding.detector = "stalls";
  a.finding.state = State::steady;
  a.finding.stage = Stage::confirmed;
  a.finding.confidence = 0.8;
  a.finding.onset = at(4599);
  a.finding.because = "it ran no kernel; its main thread waits in futex_wait_queue";
  return a;
}

inline View sample_view() {
  View v;
  v.time = at(7199);
  v.files = {"gpu.csv"};
  v.series = {leaking_device(), steady_process()};
  v.skipped_lines = 2;
  v.first_skipped = {"gpu.csv:17: expected 4 fields, found 3", "gpu.csv:99: '[N/A]' is no size"};
  v.warnings = {"times are taken as local; say --timezone UTC if they are not"};
  return v;
}

}  // namespace vramtrack
