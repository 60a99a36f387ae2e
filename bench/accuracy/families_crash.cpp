// The end of memory and what follows: the process is gone, and mostly starts again and leaks again.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "families.hpp"
#include "families_tables.hpp"
#include "stage.hpp"

namespace vramtrack::accuracy {
namespace {

/// A program that leaks all that is free within `life_s` from `onset_s` after its start, and what comes after.
struct Scene {
  Stage stage;
  double life_s = 0;
  double onset_s = 0;
};

Scene scene_of(Draw& draw, Trace& trace, bool restarts) {
  Scene s;
  s.life_s = draw.log_uniform(2700, draw.by_split(6.0, 9.0) * 3600);
  s.onset_s = draw.chance(0.5) ? 0 : draw.log_uniform(300, 0.5 * s.life_s + 600);
  const double lives = restarts ? draw.uniform(2.3, 3.4) : 1;
  s.stage = roomy_stage(draw, lives * (s.onset_s + s.life_s) + (restarts ? 0 : draw.uniform(1, 4) * 3600), false, 0.25);
  s.onset_s = std::max(s.onset_s, s.stage.load_s);
  s.stage.command = "python serve.py";
  trace.restart_after_s = restarts ? draw.log_uniform(5, 600) : 1e9;
  if (restarts) s.stage.program_keys = fmt::format("restart_after_s = {:.0f}\n", *trace.restart_after_s);
  return s;
}

void finish(Draw& draw, Trace& trace, const Scene& s, Pattern pattern) {
  trace.capacity_bytes = s.stage.capacity_bytes;
  trace.label = {true, pattern, Pattern::cyclic, s.onset_s, s.stage.free_bytes / s.life_s, kVictim, s.life_s};
  trace.toml = write_scenario(draw, s.stage, trace.seed, trace.family);
}

void add_leak(Draw& draw, Scene& s, bool steps) {
  if (steps) {
    const double times = draw.whole(12, 60);
    s.stage.shape("staircase", fmt::format("step_bytes = {:.0f}\nevery_s = {:.1f}\nintervals = \"jittered\"\nonset_s "
                                           "= {:.0f}",
                                           s.stage.free_bytes / times, s.life_s / times, s.onset_s));
  } else {
    s.stage.shape("linear",
                  fmt::format("rate_bytes_per_s = {:.1f}\nonset_s = {:.0f}", s.stage.free_bytes / s.life_s, s.onset_s));
  }
}

void crash_and_restart(Draw& draw, Trace& trace) {
  Scene s = scene_of(draw, trace, true);
  add_leak(draw, s, false);
  finish(draw, trace, s, Pattern::gradual_leak);
}

void crash_in_steps(Draw& draw, Trace& trace) {
  Scene s = scene_of(draw, trace, true);
  add_leak(draw, s, true);
  finish(draw, trace, s, Pattern::step_increase);
}

void crash_for_good(Draw& draw, Trace& trace) {
  Scene s = scene_of(draw, trace, false);
  add_leak(draw, s, draw.chance(0.3));
  finish(draw, trace, s, Pattern::gradual_leak);
}

}  // namespace

std::span<const Family> crash_families() {
  static constexpr std::array kFamilies{
      Family{"crash_and_restart", "a straight leak, life after life", true, false, crash_and_restart, Group::crash},
      Family{"crash_in_steps", "the same, in steps", true, false, crash_in_steps, Group::crash},
      Family{"crash_for_good", "nobody starts it again", true, false, crash_for_good, Group::crash},
  };
  return kFamilies;
}

}  // namespace vramtrack::accuracy
