// Views and models made by hand, so that screens do not change when a detector does.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "top/model.hpp"

namespace vramtrack::top {

/// 2026-01-05T08:50:00Z
inline Timestamp test_now() {
  return Timestamp{std::chrono::seconds{1767603000}};
}
inline Timestamp ago(double seconds) {
  return test_now() - from_seconds(seconds);
}

inline SeriesView device(int index, double used_gib, double capacity_gib = 80,
                         const std::string& name = "NVIDIA H100") {
  SeriesView s;
  s.key = {Metric::device_used, "GPU-" + std::to_string(index), 0, 0};
  s.device.id = s.key.device_id;
  s.device.index = index;
  s.device.name = name;
  s.device.capacity_bytes = static_cast<std::uint64_t>(capacity_gib * kGiB);
  s.samples = 3000;
  s.first = ago(3000);
  s.last = test_now();
  s.interval_s = 1;
  s.used_bytes = static_cast<std::uint64_t>(used_gib * kGiB);
  s.peak_bytes = s.used_bytes;
  s.verdict.time = test_now();
  s.verdict.finding.detector = "judge";
  s.verdict.finding.state = State::steady;
  s.verdict.finding.confidence = 0.02;
  s.verdict.finding.because = "varies by 2 MiB around 12.0 GiB for 50 min";
  return s;
}

inline SeriesView process(int gpu, std::uint32_t pid, double used_gib, const std::string& command = "python train.py",
                          const std::string& user = "ada", const std::string& framework = "PyTorch") {
  SeriesView s = device(gpu, used_gib);
  s.key = {Metric::process_used, "GPU-" + std::to_string(gpu), pid, pid * 100ULL};
  ProcessInfo p;
  p.pid = pid;
  p.start_ticks = pid * 100ULL;
  p.command = command;
  p.user = user;
  p.framework = framework;
  s.process = p;
  return s;
}

/// Makes it leak since 40 min ago, with memory running out in 24 minutes.
inline SeriesView leaking(SeriesView s, double mib_per_min = 119, Severity severity = Severity::critical) {
  Finding& f = s.verdict.finding;
  f.leak = true;
  f.state = State::leaking;
  f.pattern = Pattern::gradual_leak;
  f.confidence = 0.88;
  const double rate = mib_per_min * kMiB / 60;
  f.growth_bytes_per_s = {rate * 0.94, rate, rate * 1.02};
  f.r_squared = 0.991;
  f.oom_in_s = Interval{19 * 60, 24 * 60, 30 * 60};
  f.onset = ago(2400);
  s.level_bytes = static_cast<double>(s.used_bytes) + 0.46 * 64 * kMiB;  // the middle of ramp()'s saw
  f.because =
      "floor rose 4.6 GiB in 40 min (119.0 MiB/min), 42 new highs in 42 spans of 80 s; odds of this by chance: 1 "
      "in 235826; not "
      "slowing";
  s.verdict.severity = severity;
  s.verdict.framework = "PyTorch";
  s.verdict.causes = {"retained computation graphs", "growing loss history"};
  s.verdict.advice = {"keep loss.item() or loss.detach(), never the loss itself"};
  Alert alert;
  alert.raised = ago(1800);
  alert.severity = severity;
  alert.finding = f;
  alert.finding.oom_in_s = Interval{40 * 60, 54 * 60, 70 * 60};
  s.alerts.push_back(alert);
  Finding other = f;
  other.detector = "spike";
  other.leak = false;
  other.state = State::steady;
  other.because = "no rise of 20 % within 30 s";
  s.verdict.dissent.push_back(other);
  return s;
}

/// Adds the gauges of a GPU; a data-centre GPU has no fan.
inline SeriesView with_gauges(SeriesView s, double busy = 0.87, double celsius = 64, std::optional<double> fan = {}) {
  s.utilisation_ratio = busy;
  s.gauges = {busy / 2, celsius, 80 + 600 * busy, 700, fan};
  return s;
}
inline SeriesView with_load(SeriesView s, double gpu = 0.87) {
  s.load = {gpu, 1.04, static_cast<std::uint64_t>(5.5 * kGiB)};
  return s;
}

/// Adds what a healthy data centre GPU reports.
inline SeriesView with_health(SeriesView s, double celsius = 71) {
  DeviceHealth h;
  h.time = ago(4);
  h.temperature_celsius = celsius;
  h.ecc_enabled = true;
  h.ecc_since_load = {0, 0};
  h.ecc_lifetime = {12, 0};
  h.remapped_rows = 0;
  h.repair_pending = h.repair_failed = false;
  h.throttle = ThrottleSet{};
  h.throttle->add(Throttle::power_cap);
  h.hears_xids = true;
  s.health = h;
  return s;
}

inline void suspect(SeriesView& device, const SeriesView& process) {
  device.verdict.suspect = Suspect{process.key.pid, process.key.pid_start_ticks, process.process->command, 1.0};
}

/// A ramp with a sawtooth on it that ends at the present use.
inline std::vector<Point> ramp(double end_bytes, double bytes_per_s, Timestamp from, Timestamp to, std::size_t most) {
  std::vector<Point> points;
  for (int i = 0; i < 600; ++i) {
    const Timestamp time = ago(3000 - 5 * i);
    const double bytes = std::max(0.0, end_bytes - bytes_per_s * (3000 - 5 * i)) + 64 * kMiB * (i % 9) / 9;
    points.push_back({time, time, bytes, bytes, bytes, 1});
  }
  return resample(points, from, to, most);
}

inline Model model_of(View view) {
  Model m;
  view.time = test_now();
  m.view = std::make_shared<const View>(std::move(view));
  m.source = "nvml";
  m.interval_s = 1;
  const auto shown = m.view;
  m.feed.history = [shown](const SeriesKey& key, Timestamp from, Timestamp to, std::size_t most) {
    for (const SeriesView& s : shown->series)
      if (s.key == key)
        return ramp(static_cast<double>(s.used_bytes), s.verdict.finding.growth_bytes_per_s.mid, from, to, most);
    return std::vector<Point>();
  };
  return m;
}

/// One GPU with a leak beside a server, as in the README.
inline View one_gpu() {
  View view;
  SeriesView gpu = leaking(device(0, 20.2, 24, "NVIDIA GeForce RTX 4090"));
  SeriesView trainer = leaking(process(0, 4242, 9.3, "python train.py --config resnet50.yaml"));
  const SeriesView server =
      process(0, 2000, 10.5, "vllm serve meta-llama/Llama-3.2-3B --gpu-memory-utilization 0.45", "serve", "vLLM");
  trainer.process->slurm_job = "1234";
  suspect(gpu, trainer);
  gpu = with_gauges(with_health(gpu, 64), 0.87, 64, 0.46);
  gpu.gauges.power_watts = 398;
  gpu.gauges.power_limit_watts = 450;
  trainer = with_load(trainer);
  gpu.health->ecc_enabled = false;  // a gaming card
  gpu.health->ecc_since_load = gpu.health->ecc_lifetime = {};
  gpu.last_xid = LastXid{ago(600), 31, "XID 31: a program accessed unmapped GPU memory"};
  view.series = {gpu, server, trainer};
  view.notices.push_back({ago(600), gpu.last_xid->text});
  return view;
}

/// A run's answer for a program that leaks at one line.
inline SitesNow probed_sites() {
  SitesNow now;
  now.state = SitesNow::State::known;
  SitesReport& report = now.report;
  report.program = "python train.py --config resnet50.yaml";
  report.duration_s = 3000;
  report.leak = report.can_tell = true;
  report.because = "1 site kept growing to the end of 45,210 events";
  report.growth_bytes_per_s = 2.1 * kMiB;
  const auto site = [](bool leak, const char* name, double mib, std::int64_t count, double mib_per_s) {
    MemorySite s;
    s.leak = leak;
    s.site = name;
    s.call = "cuMemAlloc";
    s.live_bytes = static_cast<std::int64_t>(mib * kMiB);
    s.live_count = count;
    s.growth_bytes_per_s = mib_per_s * kMiB;
    return s;
  };
  report.sites = {site(true, "train.py:57 train_step", 5040, 5632, 2.1),
                  site(false, "resnet.py:12 load_model", 3100, 291, 0),
                  site(false, "optim/adam.py:88 step", 1020.5, 582, 0)};
  report.sites_left_out = 3;
  return now;
}

/// A GPU that has become unhealthy: too hot, with lost data and a hardware XID.
inline View ill_gpu() {
  View view;
  SeriesView gpu = with_health(device(0, 61.5), 93);
  gpu.health->throttle->add(Throttle::thermal_hardware);
  gpu.health->ecc_since_load = {37, 2};
  gpu.health->repair_pending = true;
  gpu.health->remapped_rows = 1;
  gpu.last_xid = LastXid{ago(1200), 48, "XID 48: an uncorrectable memory error"};
  SeriesView other = with_health(device(1, 20));
  view.series = {gpu, other, process(0, 4242, 60.9)};
  view.notices.push_back({ago(1200), gpu.last_xid->text});
  return view;
}

/// Eight GPUs with eight processes each; GPU 2 and 5 leak.
inline View eight_gpus() {
  View view;
  std::vector<SeriesView> processes;
  constexpr std::array<const char*, 4> kUsers = {"ada", "bob", "carol", "dan"};
  constexpr std::array<const char*, 4> kFrameworks = {"PyTorch", "vLLM", "JAX", "TensorFlow"};
  for (int g = 0; g < 8; ++g) {
    SeriesView gpu = with_gauges(with_health(device(g, 20 + 3 * g), 55 + g), 0.1 * g, 55 + g);
    if (g == 6) gpu.gauges = {};  // this one reports nothing
    if (g == 6) gpu.utilisation_ratio.reset();
    if (g == 3) gpu.health->throttle->add(Throttle::thermal_software);
    for (int p = 0; p < 8; ++p) {
      const auto n = static_cast<std::size_t>(p % 4);
      SeriesView one =
          process(g, static_cast<std::uint32_t>(4000 + 100 * g + p), 2 + (g * p) % 3,
                  "python train_" + std::to_string(p) + ".py --rank " + std::to_string(g), kUsers[n], kFrameworks[n]);
      if (p % 2 == 0) one = with_load(one, 0.1 * g);
      if (p == 3 && g == 2) {
        one = leaking(one, 150, Severity::critical);
        gpu = leaking(gpu, 150, Severity::critical);
        suspect(gpu, one);
      }
      if (p == 1 && g == 5) {
        one = leaking(one, 20, Severity::warning);
        gpu = leaking(gpu, 20, Severity::warning);
        gpu.verdict.finding.oom_in_s = Interval{5 * 3600, 6 * 3600, 9 * 3600};
        suspect(gpu, one);
      }
      processes.push_back(one);
    }
    view.series.push_back(gpu);
  }
  view.series.insert(view.series.end(), processes.begin(), processes.end());
  return view;
}

}  // namespace vramtrack::top
