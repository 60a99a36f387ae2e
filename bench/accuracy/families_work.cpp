// Leaks that follow the work or the lack of it, and leaks as an allocator's segments show them, with the healthy
// programs that look like them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "families.hpp"
#include "families_tables.hpp"
#include "stage.hpp"

namespace vramtrack::accuracy {
namespace {

struct Scene {
  Stage stage;
  double life_s = 0;
  double onset_s = 0;
};

Scene scene_of(Draw& draw, double shortest_s, double longest_s) {
  Scene s;
  s.life_s = draw.log_uniform(shortest_s, longest_s);
  const double wait_s = draw.chance(0.4) ? 0 : draw.log_uniform(600, 2 * 3600.0);
  s.stage = roomy_stage(draw, wait_s + 1.4 * s.life_s, true, 0.25);
  s.onset_s = std::max(wait_s, s.stage.load_s);
  return s;
}

void finish(Draw& draw, Trace& trace, const Scene& s, Pattern pattern, Pattern also,
            std::optional<double> rate = std::nullopt) {
  trace.capacity_bytes = s.stage.capacity_bytes;
  trace.label = {true, pattern, also, s.onset_s, rate, kVictim, s.life_s};
  trace.toml = write_scenario(draw, s.stage, trace.seed, trace.family);
}

void finish(Draw& draw, Trace& trace, const Stage& stage) {
  trace.capacity_bytes = stage.capacity_bytes;
  trace.toml = write_scenario(draw, stage, trace.seed, trace.family);
}

/// Grows at `rate` from `from_s` to `to_s`.
void leak_between(Stage& stage, double rate_bytes_per_s, double from_s, double to_s) {
  stage.shape("linear", fmt::format("rate_bytes_per_s = {:.1f}\nonset_s = {:.0f}\nuntil_s = {:.0f}", rate_bytes_per_s,
                                    from_s, to_s));
}

/// Requests by day and few by night: what is in use follows the load, and so does the rate of the leak.
void grows_with_load(Draw& draw, Trace& trace) {
  Scene s = scene_of(draw, 20 * 3600.0, draw.by_split(3.0, 4.0) * 86400);
  const double in_use = s.stage.free_bytes * draw.uniform(0.1, 0.3);
  const double peak_s = draw.uniform(0, 86400);
  s.stage.shape("diurnal", fmt::format("high_bytes = {:.0f}\npeak_s = {:.0f}", in_use, peak_s));
  const double left = s.stage.free_bytes - in_use;
  const double step_s = 3600;
  const auto load = [&](double t) {
    return 0.54 + 0.46 * std::cos(2 * std::numbers::pi * (s.onset_s + t + 0.5 * step_s - peak_s) / 86400);
  };
  double served = 0;
  for (double t = 0; t < s.life_s; t += step_s) served += load(t) * std::min(step_s, s.life_s - t);
  for (double t = 0; t < 1.4 * s.life_s; t += step_s)
    leak_between(s.stage, left / served * load(t), s.onset_s + t, s.onset_s + t + step_s);
  finish(draw, trace, s, Pattern::gradual_leak, Pattern::cyclic);
}

/// Bursts of requests some minutes long; each request of them leaks, and nothing does between them.
void grows_with_bursts(Draw& draw, Trace& trace) {
  Scene s = scene_of(draw, 3600, draw.by_split(14.0, 24.0) * 3600);
  const double in_use = s.stage.free_bytes * draw.uniform(0.1, 0.35);
  const double bursts = draw.uniform(8, 40);
  const double left = s.stage.free_bytes - in_use;
  const double mean_s = s.life_s / bursts;
  double leaked = 0;
  for (double t = s.onset_s; leaked < 1.2 * left; t += mean_s * draw.uniform(0.5, 1.5)) {
    const double lasts_s = mean_s * draw.uniform(0.1, 0.45);
    const double bytes = left / bursts * draw.uniform(0.4, 1.6);
    s.stage.shape("constant", fmt::format("bytes = {:.0f}\nonset_s = {:.0f}\nrelease_s = {:.0f}",
                                          in_use * draw.uniform(0.5, 1), t, t + lasts_s));
    leak_between(s.stage, bytes / lasts_s, t, t + lasts_s);
    leaked += bytes;
  }
  finish(draw, trace, s, Pattern::gradual_leak, Pattern::step_increase);
}

/// A poller that leaks while nothing is to be done; jobs of some minutes interrupt it.
void leaks_while_idle(Draw& draw, Trace& trace) {
  Scene s = scene_of(draw, 3600, draw.by_split(14.0, 24.0) * 3600);
  const double job = s.stage.free_bytes * draw.uniform(0.1, 0.35);
  const double left = s.stage.free_bytes - job;
  const double cycle_s = s.life_s / draw.uniform(5, 30);
  const double idle = draw.uniform(0.4, 0.9);
  for (double t = s.onset_s; t < s.onset_s + 1.4 * s.life_s; t += cycle_s) {
    leak_between(s.stage, left / s.life_s / idle, t, t + idle * cycle_s);
    s.stage.shape("constant", fmt::format("bytes = {:.0f}\nonset_s = {:.0f}\nrelease_s = {:.0f}",
                                          job * draw.uniform(0.6, 1), t + idle * cycle_s, t + 0.98 * cycle_s));
  }
  finish(draw, trace, s, Pattern::gradual_leak, Pattern::cyclic);
}

/// Small tensors leak; the device sees a segment of `segment_bytes` whenever the last one is full.
void segments(Draw& draw, Trace& trace, double segment_bytes) {
  Scene s = scene_of(draw, 3600, draw.by_split(16.0, 28.0) * 3600);
  const double swing = s.stage.free_bytes * draw.uniform(0.02, 0.2);
  s.stage.shape("sawtooth", fmt::format("amplitude_bytes = {:.0f}\nperiod_s = {:.1f}\nperiod_spread = 0.2\n"
                                        "amplitude_spread = 0.2",
                                        swing, draw.log_uniform(5, 600)));
  const double left = s.stage.free_bytes - 1.2 * swing;
  s.stage.shape("staircase", fmt::format("step_bytes = {:.0f}\nevery_s = {:.2f}\nintervals = \"jittered\"\nonset_s = "
                                         "{:.0f}",
                                         segment_bytes, s.life_s * segment_bytes / left, s.onset_s));
  finish(draw, trace, s, Pattern::gradual_leak, Pattern::step_increase, left / s.life_s);
}

void segments_of_2_mib(Draw& draw, Trace& trace) {
  segments(draw, trace, 2 * kMiB);
}
void segments_of_20_mib(Draw& draw, Trace& trace) {
  segments(draw, trace, 20 * kMiB);
}

/// Large tensors: each its own segment, rounded up to 2 MiB, at random times, beside segments of 20 MiB.
void segments_mixed(Draw& draw, Trace& trace) {
  Scene s = scene_of(draw, 3600, draw.by_split(16.0, 28.0) * 3600);
  const double left = s.stage.free_bytes;
  const double large = left * draw.uniform(0.3, 0.7);
  const double tensor = std::ceil(draw.log_uniform(24, 400) / 2) * 2 * kMiB;
  s.stage.shape("requests", fmt::format("requests_per_s = {:.7f}\nleak_bytes = {:.0f}\nsizes = \"fixed\"\nonset_s = "
                                        "{:.0f}",
                                        large / s.life_s / tensor, tensor, s.onset_s));
  s.stage.shape("staircase", fmt::format("step_bytes = {:.0f}\nevery_s = {:.2f}\nintervals = \"random\"\nonset_s = "
                                         "{:.0f}",
                                         20 * kMiB, s.life_s * 20 * kMiB / (left - large), s.onset_s));
  finish(draw, trace, s, Pattern::gradual_leak, Pattern::step_increase, left / s.life_s);
}

double some_hours(Draw& draw) {
  return draw.log_uniform(3 * 3600.0, draw.by_split(24 * 3600.0, 40 * 3600.0));
}

/// Jobs and idle time take turns, and nothing stays of a job.
void jobs_and_idle(Draw& draw, Trace& trace) {
  Stage stage = roomy_stage(draw, some_hours(draw), true, 0.25);
  const double job = stage.free_bytes * draw.uniform(0.15, 0.7);
  const double mean_s = draw.log_uniform(300, 0.15 * stage.duration_s);
  for (double t = stage.load_s; t < stage.duration_s; t += mean_s * draw.uniform(0.5, 1.5)) {
    const double lasts_s = mean_s * draw.uniform(0.1, 0.45);
    stage.shape("constant", fmt::format("bytes = {:.0f}\nonset_s = {:.0f}\nrelease_s = {:.0f}",
                                        job * draw.uniform(0.5, 1), t, t + lasts_s));
  }
  finish(draw, trace, stage);
}

/// A caching allocator that finds its level: segments of 2 and 20 MiB and of whole tensors, more and more rarely.
void segments_settle(Draw& draw, Trace& trace) {
  Stage stage = roomy_stage(draw, some_hours(draw), false, 0.25);
  stage.shape("fragmentation",
              fmt::format("bytes = {:.0f}\nover_s = {:.0f}\nsteps = {}\nonset_s = {:.0f}",
                          stage.free_bytes * draw.uniform(0.02, 0.3), draw.log_uniform(1200, 0.5 * stage.duration_s),
                          draw.whole(20, 60), stage.load_s));
  stage.shape("staircase", fmt::format("step_bytes = {:.0f}\nevery_s = {:.0f}\nintervals = \"random\"\nsteps = {}",
                                       20 * kMiB, draw.log_uniform(120, 3600), draw.whole(3, 12)));
  finish(draw, trace, stage);
}

}  // namespace

std::span<const Family> work_families() {
  static constexpr std::array kFamilies{
      Family{"grows_with_load", "as fast as the day's load", true, false, grows_with_load, Group::work},
      Family{"grows_with_bursts", "in bursts of requests only", true, false, grows_with_bursts, Group::work},
      Family{"leaks_while_idle", "between jobs only", true, false, leaks_while_idle, Group::work},
      Family{"segments_of_2_mib", "a small segment at a time", true, false, segments_of_2_mib, Group::work},
      Family{"segments_of_20_mib", "a segment of 20 MiB at a time", true, false, segments_of_20_mib, Group::work},
      Family{"segments_mixed", "whole tensors and segments of 20 MiB", true, false, segments_mixed, Group::work},
      Family{"jobs_and_idle", "jobs of which nothing stays", false, false, jobs_and_idle, Group::work},
      Family{"segments_settle", "segments, ever more rarely", false, false, segments_settle, Group::work},
  };
  return kFamilies;
}

}  // namespace vramtrack::accuracy
