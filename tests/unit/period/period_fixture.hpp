// A synthetic period with one of everything, for the tests of its formats and figures.
#pragma once

#include "period/period.hpp"

namespace vramtrack {

inline constexpr std::uint64_t kGiB = 1ULL << 30U;
/// 2026-01-05T08:00:00Z
inline const Timestamp kBegin{std::chrono::seconds{1767600000}};

inline Timestamp minutes_in(double minutes) {
  return kBegin + from_seconds(minutes * 60);
}

/// `minutes` points of one minute: bytes(minute).
template <class Bytes>
std::vector<HistoryPoint> minute_points(int minutes, Bytes bytes, int from = 0) {
  std::vector<HistoryPoint> out;
  for (int m = from; m < minutes; ++m) {
    HistoryPoint p;
    p.start = minutes_in(m);
    p.mean = bytes(m);
    p.min = static_cast<std::uint64_t>(p.mean * 0.99);
    p.max = static_cast<std::uint64_t>(p.mean * 1.01);
    p.count = 60;
    out.push_back(p);
  }
  return out;
}

inline PeriodSeries device_series(int index, std::vector<HistoryPoint> history) {
  PeriodSeries s;
  s.view.key = {Metric::device_used, "GPU-" + std::to_string(index), 0, 0};
  s.view.device.id = s.view.key.device_id;
  s.view.device.index = index;
  s.view.device.name = "NVIDIA A10";
  s.view.device.capacity_bytes = 24 * kGiB;
  s.view.samples = 3600;
  s.view.interval_s = 1;
  s.view.first = kBegin;
  s.view.last = minutes_in(60);
  if (!history.empty()) s.view.used_bytes = static_cast<std::uint64_t>(history.back().mean);
  s.view.verdict.finding.detector = "judge";
  s.view.verdict.finding.state = State::steady;
  s.first_seen = kBegin;
  s.seen_from_start = true;
  s.history = std::move(history);
  return s;
}

inline PeriodSeries process_series(int index, std::uint32_t pid, std::string command,
                                   std::vector<HistoryPoint> history) {
  PeriodSeries s = device_series(index, std::move(history));
  s.view.key = {Metric::process_used, s.view.key.device_id, pid, pid * 10ULL};
  ProcessInfo p;
  p.pid = pid;
  p.start_ticks = pid * 10ULL;
  p.command = std::move(command);
  p.user = "alice";
  s.view.process = p;
  s.first_seen = s.history.empty() ? kBegin : s.history.front().start;
  s.seen_from_start = false;
  return s;
}

/// A leak found 20 minutes in, which exhausts memory `eta_s` after the hour.
inline void make_leak(PeriodSeries& s, const Interval& eta_s) {
  Finding& f = s.view.verdict.finding;
  f.leak = true;
  f.state = State::leaking;
  f.pattern = Pattern::gradual_leak;
  f.confidence = 0.93;
  f.growth_bytes_per_s = {1.9 * 1048576, 2.0 * 1048576, 2.1 * 1048576};
  f.r_squared = 0.99;
  f.oom_in_s = eta_s;
  f.onset = minutes_in(10);
  f.because = "floor rose 5.9 GiB in 50 min";
  s.view.verdict.severity = Severity::critical;
  Alert a;
  a.raised = minutes_in(20);
  a.severity = Severity::critical;
  a.finding = f;
  a.finding.oom_in_s = Interval{3000, 4000, 6000};
  s.alerts.push_back({a, false});
}

/// One hour, two GPUs: pid 4242 leaks on the first; on the second, 3 GiB are left behind when pid 7 ends.
inline PeriodReport example_report(const std::string& command = "python train.py --config a.yaml") {
  PeriodReport r;
  r.files = {"gpu.csv", "apps.csv"};
  r.is_log = true;
  r.first = kBegin;
  r.last = minutes_in(60);
  r.samples = 14400;
  r.bucket_s = 60;
  r.rules.usd_per_gpu_hour = 2.5;
  const auto leak = [](int m) { return 8.0 * static_cast<double>(kGiB) + std::max(0, m - 10) * 120.0 * 1048576; };
  r.series.push_back(
      device_series(0, minute_points(60, [&](int m) { return leak(m) + 0.4 * static_cast<double>(kGiB); })));
  r.series.push_back(
      device_series(1, minute_points(60, [](int m) { return (m < 30 ? 10.0 : 3.0) * static_cast<double>(kGiB); })));
  r.series.push_back(process_series(0, 4242, command, minute_points(60, leak, 5)));
  r.series.push_back(
      process_series(1, 7, "vllm serve", minute_points(30, [](int) { return 9.8 * static_cast<double>(kGiB); })));
  make_leak(r.series[0], {2400, 3000, 3900});
  make_leak(r.series[2], {2400, 3000, 3900});
  r.series[0].view.verdict.suspect = Suspect{4242, 42420, command, 1.0};
  r.series[0].view.verdict.framework = "PyTorch";
  r.series[0].view.verdict.causes = {"losses kept with their graph"};
  r.series[0].view.verdict.advice = {"loss.item()"};
  r.series[2].view.process->slurm_job = "1234.0";
  r.series[3].view.ended = true;
  r.notices.push_back({minutes_in(30), "XID 31 on GPU 1"});
  r.acts.push_back({minutes_in(42), "training", "checkpoint", "done", "pid 4242 (python train.py, alice)",
                    "SIGUSR1 was sent", "floor rose 1.2 GiB in 10 min", false});
  r.acts.push_back({minutes_in(44), "training", "kill", "would", "pid 4242 (python train.py, alice)", "send SIGKILL",
                    "floor rose 1.4 GiB in 12 min", true});
  r.warnings = {"the log gives no time zone: this machine's was taken"};
  reckon(r);
  return r;
}

}  // namespace vramtrack
