// Jobs of eight ranks, each on its own device, all seen by one watch. The trace is about one of the devices.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "families.hpp"
#include "families_tables.hpp"
#include "stage.hpp"

namespace vramtrack::accuracy {
namespace {

constexpr int kRanks = 8;

/// A job of which the shapes to come are in every rank, unless they say `only_rank`.
Stage job_of(Draw& draw, double duration_s) {
  // Neighbours would be on the first device alone.
  Stage stage = roomy_stage(draw, duration_s, false, 0.25);
  while (!stage.tail.empty()) stage = roomy_stage(draw, duration_s, false, 0.25);
  const std::string device = "\n" + stage.device;
  for (int i = 1; i < kRanks; ++i) stage.device += device;
  stage.command = "torchrun train_ddp.py";
  stage.program_keys = "devices = [0, 1, 2, 3, 4, 5, 6, 7]\none_per_device = true\n";
  return stage;
}

void finish(Draw& draw, Trace& trace, const Stage& stage) {
  trace.capacity_bytes = stage.capacity_bytes;
  trace.toml = write_scenario(draw, stage, trace.seed, trace.family);
}

struct Plan {
  double onset_s = 0;
  double life_s = 0;
};

Plan plan(Draw& draw) {
  Plan p;
  p.life_s = draw.log_uniform(draw.by_split(2700.0, 2000.0), draw.by_split(10.0, 16.0) * 3600);
  if (draw.chance(0.67)) p.onset_s = draw.log_uniform(300, std::max(1200.0, 0.6 * p.life_s));
  return p;
}

/// One rank leaks where `only` is set, else all do.
void leak(Draw& draw, Trace& trace, bool steps, bool only) {
  const Plan p = plan(draw);
  Stage stage = job_of(draw, p.onset_s + 1.25 * p.life_s);
  const double onset_s = std::max(p.onset_s, stage.load_s);
  const int rank = only ? draw.whole(0, kRanks - 1) : 0;
  const std::string where = only ? fmt::format("\nonly_rank = {}", rank) : "";
  if (steps) {
    const double times = draw.whole(12, 60);
    stage.shape("staircase", fmt::format("step_bytes = {:.0f}\nevery_s = {:.1f}\nintervals = \"jittered\"\nonset_s = "
                                         "{:.0f}{}",
                                         stage.free_bytes / times, p.life_s / times, onset_s, where));
  } else {
    stage.shape("linear", fmt::format("rate_bytes_per_s = {:.1f}\nonset_s = {:.0f}{}", stage.free_bytes / p.life_s,
                                      onset_s, where));
  }
  trace.label.leak = true;
  trace.label.pattern = steps ? Pattern::step_increase : Pattern::gradual_leak;
  trace.label.also = steps ? Pattern::gradual_leak : stage.swings ? Pattern::cyclic : Pattern::none;
  trace.label.onset_s = onset_s;
  trace.label.growth_bytes_per_s = stage.free_bytes / p.life_s;
  trace.label.suspect_pid = kVictim + static_cast<std::uint32_t>(rank);
  trace.label.life_s = p.life_s;
  trace.label.device = static_cast<std::size_t>(rank);
  trace.label.on_all_devices = !only;
  finish(draw, trace, stage);
}

void one_rank(Draw& draw, Trace& trace) {
  leak(draw, trace, false, true);
}
void one_rank_in_steps(Draw& draw, Trace& trace) {
  leak(draw, trace, true, true);
}
void all_ranks(Draw& draw, Trace& trace) {
  leak(draw, trace, draw.chance(0.3), false);
}

double hours(Draw& draw) {
  return draw.log_uniform(2 * 3600.0, draw.by_split(16 * 3600.0, 30 * 3600.0));
}

/// All ranks rise alike, and settle alike: straight and far, or more and more slowly.
void ranks_warm_up(Draw& draw, Trace& trace) {
  Stage stage = job_of(draw, hours(draw));
  const double share = draw.uniform(0.2, 0.85);
  const char* form = draw.pick({"linear", "exponential", "log"});
  if (form[1] == 'i') trace.straight_share = share;
  stage.shape("warm_up",
              fmt::format("bytes = {:.0f}\nover_s = {:.0f}\nform = \"{}\"\nonset_s = {:.0f}", stage.free_bytes * share,
                          draw.log_uniform(300, 0.5 * stage.duration_s), form, stage.load_s));
  finish(draw, trace, stage);
}

/// Rank 0 gathers: it holds more than the others, and evaluates alone.
void rank_0_holds_more(Draw& draw, Trace& trace) {
  Stage stage = job_of(draw, hours(draw));
  const double every_s = draw.log_uniform(600, 7200);
  stage.shape("settle",
              fmt::format("bytes = {:.0f}\nsteps = 3\nover_s = {:.0f}\nonset_s = {:.0f}\nonly_rank = 0",
                          stage.free_bytes * draw.uniform(0.05, 0.3), draw.log_uniform(60, 3600), stage.load_s));
  stage.shape("evaluation",
              fmt::format("bytes = {:.0f}\nevery_s = {:.0f}\nlasts_s = {:.0f}\nonly_rank = 0",
                          stage.free_bytes * draw.uniform(0.05, 0.3), every_s, every_s * draw.uniform(0.03, 0.2)));
  finish(draw, trace, stage);
}

/// The longest sample so far, in each rank another one.
void ranks_run_to_maximum(Draw& draw, Trace& trace) {
  Stage stage = job_of(draw, hours(draw));
  stage.shape("running_max", fmt::format("typical_bytes = {:.0f}\nevery_s = {:.1f}\nsigma = {:.2f}\nmax_bytes = {:.0f}",
                                         0.2 * stage.free_bytes, draw.log_uniform(1, 30), draw.uniform(0.1, 0.4),
                                         0.9 * stage.free_bytes));
  finish(draw, trace, stage);
}

}  // namespace

std::span<const Family> rank_families() {
  static constexpr std::array kFamilies{
      Family{"one_rank", "one rank of eight leaks", true, false, one_rank, Group::ranks},
      Family{"one_rank_in_steps", "one rank of eight leaks, in steps", true, false, one_rank_in_steps, Group::ranks},
      Family{"all_ranks", "all eight leak alike", true, false, all_ranks, Group::ranks},
      Family{"ranks_warm_up", "all eight warm up alike", false, false, ranks_warm_up, Group::ranks},
      Family{"rank_0_holds_more", "rank 0 gathers and evaluates", false, false, rank_0_holds_more, Group::ranks},
      Family{"ranks_run_to_maximum", "the longest sample so far", false, false, ranks_run_to_maximum, Group::ranks},
  };
  return kFamilies;
}

}  // namespace vramtrack::accuracy
