// A machine on which process 4242 leaks on GPU-1, and the alert about it.
#pragma once

#include <string>

#include "act/ladder.hpp"
#include "core/view.hpp"

namespace vramtrack::actuate {

inline Timestamp at(double seconds) {
  return Timestamp{} + std::chrono::hours(24 * 365) + from_seconds(seconds);
}

inline act::Claim alert_of(const std::string& node, const std::string& fingerprint = "ab") {
  act::Claim one;
  one.fingerprint = fingerprint;
  one.starts_at = at(0);
  one.labels = {{"alertname", "GpuMemoryLeak"},
                {"instance", node + ":9474"},
                {"Hostname", node},
                {"UUID", "GPU-1"},
                {"pid", "4242"},
                {"slurm_job_id", "7"},
                {"framework", "the alert's"}};
  return one;
}

/// Its climb, before anything confirms it.
inline act::Climb climb_of(const act::Claim& claim) {
  act::Climb climb;
  climb.id = claim.id();
  climb.phase = act::Climb::Phase::claimed;
  climb.claim = claim;
  return climb;
}

/// As served by that machine's agent: its series have no host. Device first.
inline View leaking_view(std::uint64_t used_bytes = 8'000'000'000) {
  SeriesView device;
  device.key.metric = Metric::device_used;
  device.key.device_id = device.device.id = "GPU-1";
  device.device.index = 0;
  device.used_bytes = 1'000'000'000 + used_bytes;
  SeriesView process = device;
  process.key.metric = Metric::process_used;
  process.key.pid = 4242;
  process.key.pid_start_ticks = 777;
  process.used_bytes = used_bytes;
  process.process.emplace();
  process.process->pid = 4242;
  process.process->start_ticks = 777;
  process.process->user = "alice";
  process.process->command = "python train.py";
  process.process->slurm_job = "7.batch";
  process.process->framework = "PyTorch";
  Alert alert;
  alert.raised = at(-60);
  alert.severity = process.verdict.severity = Severity::warning;
  alert.finding.pattern = process.verdict.finding.pattern = Pattern::gradual_leak;
  process.verdict.finding.because = "it grows";
  process.alerts = {alert};
  View view;
  view.time = at(0);
  device.last = process.last = view.time;
  view.series = {device, process};
  return view;
}

/// The process has ended; `left_bytes` of its memory have not been released.
inline View empty_view(std::uint64_t left_bytes = 0) {
  View view = leaking_view();
  view.series.pop_back();
  view.series[0].used_bytes = 1'000'000'000 + left_bytes;
  return view;
}

}  // namespace vramtrack::actuate
