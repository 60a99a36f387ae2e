// Leaking families: the shapes of public reports, and their rates.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "families.hpp"
#include "families_tables.hpp"
#include "stage.hpp"

namespace vramtrack::accuracy {
namespace {

/// When a leak begins and how long it takes to the end of memory.
struct Plan {
  double onset_s = 0;
  double life_s = 0;
};

/// A third begin with the program, the rest after some healthy while.
Plan plan(Draw& draw, double shortest_s, double longest_s) {
  Plan p;
  p.life_s = draw.log_uniform(shortest_s, longest_s);
  if (draw.chance(0.67)) p.onset_s = draw.log_uniform(300, std::max(1200.0, 0.6 * p.life_s));
  return p;
}

Plan usual(Draw& draw) {
  return draw.split == Split::tune ? plan(draw, 2700, 16 * 3600.0) : plan(draw, 2000, 30 * 3600.0);
}

Stage stage_for(Draw& draw, const Plan& p, bool quiet = false) {
  return roomy_stage(draw, p.onset_s + 1.25 * p.life_s, quiet, 0.2);
}

/// `onset_s` of a shape counts from its program's start, which is the trace's; the load comes first.
double onset_after_load(const Plan& p, const Stage& stage) {
  return std::max(p.onset_s, stage.load_s);
}

void finish(Draw& draw, Trace& trace, const Stage& stage, double life_s, double onset_s, Pattern pattern, Pattern also,
            std::optional<double> rate) {
  trace.capacity_bytes = stage.capacity_bytes;
  if (also == Pattern::none && stage.swings) also = Pattern::cyclic;
  trace.label = {true, pattern, also, onset_s, rate, kVictim, life_s};
  trace.toml = write_scenario(draw, stage, trace.seed, trace.family);
}

void linear_at(Draw& draw, Trace& trace, const Plan& p) {
  Stage stage = stage_for(draw, p);
  const double onset = onset_after_load(p, stage);
  const double rate = stage.free_bytes / p.life_s;
  stage.shape("linear", fmt::format("rate_bytes_per_s = {:.1f}\nonset_s = {:.0f}", rate, onset));
  finish(draw, trace, stage, p.life_s, onset, Pattern::gradual_leak, Pattern::none, rate);
}

void linear(Draw& draw, Trace& trace) {
  linear_at(draw, trace, usual(draw));
}

void from_start(Draw& draw, Trace& trace) {
  Plan p = usual(draw);
  p.onset_s = 0;
  linear_at(draw, trace, p);
}

void late(Draw& draw, Trace& trace) {
  Plan p = usual(draw);
  p.onset_s = draw.log_uniform(2 * 3600.0, 8 * 3600.0);
  linear_at(draw, trace, p);
}

/// The rates of public reports: 41 MiB/min (a model server), 4-8 MiB/min (an LLM server), and the documents' own.
void reported_rate(Draw& draw, Trace& trace) {
  const double rate = draw.pick({41.0, 4.0, 8.0, 12.4, 50.0, 30.0}) * kMiB / 60;
  Plan p;
  p.onset_s = draw.chance(0.5) ? 0 : draw.log_uniform(600, 4 * 3600.0);
  p.life_s = draw.uniform(6 * 3600.0, 24 * 3600.0);
  Stage stage = stage_for(draw, p);
  stage.duration_s = std::min(p.onset_s + 1.1 * stage.free_bytes / rate, 2.5 * 86400);
  while (stage.duration_s / stage.period_s > 20000) stage.period_s *= 2;
  const double onset = onset_after_load(p, stage);
  stage.shape("linear", fmt::format("rate_bytes_per_s = {:.1f}\nonset_s = {:.0f}", rate, onset));
  finish(draw, trace, stage, stage.free_bytes / rate, onset, Pattern::gradual_leak, Pattern::none, rate);
}

/// Megabytes a minute on a large card: the trace ends long before memory runs out.
void slow(Draw& draw, Trace& trace) {
  Plan p;
  p.onset_s = draw.chance(0.5) ? 0 : draw.log_uniform(600, 6 * 3600.0);
  const double life_s = draw.uniform(1.5, 5) * 86400;
  p.life_s = life_s * draw.uniform(0.5, 0.9);
  Stage stage = stage_for(draw, p);
  const double onset = onset_after_load(p, stage);
  const double rate = stage.free_bytes / life_s;
  stage.shape("linear", fmt::format("rate_bytes_per_s = {:.1f}\nonset_s = {:.0f}", rate, onset));
  finish(draw, trace, stage, life_s, onset, Pattern::gradual_leak, Pattern::none, rate);
}

void accelerating(Draw& draw, Trace& trace) {
  const Plan p = usual(draw);
  Stage stage = stage_for(draw, p);
  const double onset = onset_after_load(p, stage);
  stage.shape("accelerating",
              fmt::format("bytes = {:.0f}\nover_s = {:.0f}\npower = {:.2f}\nonset_s = {:.0f}", stage.free_bytes,
                          p.life_s, draw.uniform(1.3, draw.by_split(1.8, 2.0)), onset));
  finish(draw, trace, stage, p.life_s, onset, Pattern::gradual_leak, Pattern::none, {});
}

void stairs(Draw& draw, Trace& trace, const char* intervals, int fewest, int most) {
  const Plan p = usual(draw);
  Stage stage = stage_for(draw, p);
  const double onset = onset_after_load(p, stage);
  const double steps = draw.whole(fewest, most);
  stage.shape(
      "staircase",
      fmt::format("step_bytes = {:.0f}\nevery_s = {:.1f}\nintervals = \"{}\"\nstep_spread = {:.2f}\nonset_s = {:.0f}",
                  stage.free_bytes / steps, p.life_s / steps, intervals, draw.uniform(0, 0.3), onset));
  finish(draw, trace, stage, p.life_s, onset, Pattern::step_increase,
         steps > 24 ? Pattern::gradual_leak : Pattern::none, stage.free_bytes / p.life_s);
}

void regular_stairs(Draw& draw, Trace& trace) {
  stairs(draw, trace, "regular", draw.by_split(8, 6), draw.by_split(24, 40));
}
void epoch_stairs(Draw& draw, Trace& trace) {
  stairs(draw, trace, "jittered", draw.by_split(8, 7), draw.by_split(40, 60));
}
void random_stairs(Draw& draw, Trace& trace) {
  stairs(draw, trace, "random", 10, draw.by_split(30, 40));
}

void requests(Draw& draw, Trace& trace) {
  const Plan p = usual(draw);
  Stage stage = stage_for(draw, p);
  const double onset = onset_after_load(p, stage);
  const double leaks = draw.log_uniform(80, draw.by_split(1500.0, 4000.0));
  stage.shape("requests", fmt::format("requests_per_s = {:.6f}\nleak_bytes = {:.0f}\nonset_s = {:.0f}",
                                      leaks / p.life_s, stage.free_bytes / leaks, onset));
  finish(draw, trace, stage, p.life_s, onset, Pattern::gradual_leak, Pattern::step_increase,
         stage.free_bytes / p.life_s);
}

void rising_sawtooth(Draw& draw, Trace& trace) {
  const Plan p = usual(draw);
  Stage stage = stage_for(draw, p, true);
  const double onset = onset_after_load(p, stage);
  const double amplitude = stage.free_bytes * draw.uniform(0.1, draw.by_split(0.35, 0.45));
  const double rate = (stage.free_bytes - amplitude) / p.life_s;
  const double period_s = p.life_s / draw.uniform(draw.by_split(15.0, 12.0), draw.by_split(60.0, 100.0));
  const std::string keys = fmt::format(
      "amplitude_bytes = {:.0f}\nperiod_s = {:.0f}\nperiod_spread = {:.2f}\n"
      "amplitude_spread = {:.2f}",
      amplitude, period_s, draw.uniform(0, 0.2), draw.uniform(0, 0.1));
  stage.shape("sawtooth", keys);
  stage.shape("linear", fmt::format("rate_bytes_per_s = {:.1f}\nonset_s = {:.0f}", rate, onset));
  finish(draw, trace, stage, p.life_s, onset, Pattern::cyclic, Pattern::gradual_leak, rate);
}

/// Garbage is collected at a limit that stands still while ever more is kept.
void floor_only(Draw& draw, Trace& trace) {
  const Plan p = usual(draw);
  Stage stage = stage_for(draw, p, true);
  const double amplitude = stage.free_bytes * draw.uniform(0.4, 0.9);
  const double period_s = p.life_s / draw.uniform(20, 80);
  stage.shape("gc",
              fmt::format("threshold_bytes = {:.0f}\nrate_bytes_per_s = {:.0f}\nthreshold_spread = {:.2f}\n"
                          "leak_bytes = {:.0f}",
                          amplitude, amplitude / period_s, draw.uniform(0.01, 0.05), amplitude * period_s / p.life_s));
  finish(draw, trace, stage, p.life_s, 0, Pattern::cyclic, Pattern::gradual_leak, amplitude / p.life_s);
}

/// An evaluation of which part stays.
void spike_part_stays(Draw& draw, Trace& trace) {
  const Plan p = usual(draw);
  Stage stage = stage_for(draw, p, true);
  const double times = draw.uniform(draw.by_split(12.0, 10.0), draw.by_split(40.0, 60.0));
  const double every_s = p.life_s / times;
  const double bytes = stage.free_bytes * draw.uniform(0.05, 0.3);
  stage.shape("evaluation",
              fmt::format("bytes = {:.0f}\nevery_s = {:.0f}\nlasts_s = {:.0f}\nleak_bytes = {:.0f}", bytes, every_s,
                          every_s * draw.uniform(0.05, 0.2), (stage.free_bytes - bytes) / times));
  finish(draw, trace, stage, p.life_s, 0, Pattern::step_increase, Pattern::cyclic,
         (stage.free_bytes - bytes) / p.life_s);
}

void under_bursts(Draw& draw, Trace& trace) {
  const Plan p = usual(draw);
  Stage stage = stage_for(draw, p, true);
  const double onset = onset_after_load(p, stage);
  const double burst = stage.free_bytes * draw.uniform(0.15, 0.4);
  stage.shape("serving",
              fmt::format("request_bytes = {:.0f}\nrequests_per_s = {:.3f}\nservice_s = {:.1f}\n"
                          "burst_every_s = {:.0f}\nburst_lasts_s = {:.0f}\nburst_factor = 8\nmax_requests = 24",
                          burst / 24, draw.log_uniform(0.2, 1), draw.uniform(2, 6), draw.log_uniform(120, 900),
                          draw.log_uniform(10, 90)));
  const double rate = (stage.free_bytes - burst) / p.life_s;
  stage.shape("linear", fmt::format("rate_bytes_per_s = {:.1f}\nonset_s = {:.0f}", rate, onset));
  finish(draw, trace, stage, p.life_s, onset, Pattern::gradual_leak, Pattern::cyclic, rate);
}

void under_daily_load(Draw& draw, Trace& trace) {
  Plan p;
  p.life_s = draw.uniform(1.2, draw.by_split(2.5, 4.0)) * 86400;
  p.onset_s = draw.chance(0.5) ? 0 : draw.uniform(0.2, 1) * 86400;
  Stage stage = stage_for(draw, p, true);
  const double onset = onset_after_load(p, stage);
  const double day = stage.free_bytes * draw.uniform(0.1, 0.3);
  stage.shape("diurnal", fmt::format("high_bytes = {:.0f}\npeak_s = {:.0f}", day, draw.uniform(0, 86400)));
  const double rate = (stage.free_bytes - day) / p.life_s;
  stage.shape("linear", fmt::format("rate_bytes_per_s = {:.1f}\nonset_s = {:.0f}", rate, onset));
  finish(draw, trace, stage, p.life_s, onset, Pattern::gradual_leak, Pattern::none, rate);
}

void after_warm_up(Draw& draw, Trace& trace) {
  Plan p = usual(draw);
  p.onset_s = draw.log_uniform(1200, 2 * 3600.0);
  Stage stage = stage_for(draw, p);
  const double warm = stage.free_bytes * draw.uniform(0.1, 0.4);
  stage.shape("warm_up", fmt::format("bytes = {:.0f}\nover_s = {:.0f}\nform = \"{}\"", warm,
                                     p.onset_s * draw.uniform(0.05, 0.3), draw.pick({"exponential", "linear"})));
  const double onset = onset_after_load(p, stage);
  const double rate = (stage.free_bytes - warm) / p.life_s;
  stage.shape("linear", fmt::format("rate_bytes_per_s = {:.1f}\nonset_s = {:.0f}", rate, onset));
  finish(draw, trace, stage, p.life_s, onset, Pattern::gradual_leak, Pattern::none, rate);
}

/// Gives a tenth back now and then, and grows all the same.
void partial_release(Draw& draw, Trace& trace) {
  const Plan p = usual(draw);
  Stage stage = stage_for(draw, p, true);
  const double onset = onset_after_load(p, stage);
  const double share = draw.uniform(0.02, 0.05);
  stage.shape(
      "linear",
      fmt::format("rate_bytes_per_s = {:.1f}\nonset_s = {:.0f}\nrelease_every_s = {:.0f}\nrelease_share = {:.3f}",
                  1.6 * stage.free_bytes / p.life_s, onset, p.life_s / draw.uniform(15, 30), share));
  finish(draw, trace, stage, p.life_s, onset, Pattern::gradual_leak, Pattern::cyclic, {});
}

void tenants_beside(Draw& draw, Trace& trace) {
  const Plan p = usual(draw);
  Stage stage = stage_for(draw, p);
  const double onset = onset_after_load(p, stage);
  const double churn = 0.3 * stage.free_bytes;
  const double rate = (stage.free_bytes - churn) / p.life_s;
  const double lifetime_s = draw.log_uniform(600, 2 * 3600.0);
  stage.shape("linear", fmt::format("rate_bytes_per_s = {:.1f}\nonset_s = {:.0f}", rate, onset));
  stage.tail += fmt::format(
      "\n[[tenants]]\nname = \"jobs\"\ncommand = \"python job.py\"\nuser = \"carl\"\n"
      "arrivals_per_s = {:.7f}\nlifetime_s = {:.0f}\nmin_bytes = {:.0f}\nmax_bytes = {:.0f}\n",
      1.5 / lifetime_s, lifetime_s, 0.1 * churn, 0.4 * churn);
  finish(draw, trace, stage, p.life_s, onset, Pattern::gradual_leak, Pattern::unknown, rate);
}

// Of the test split only.

void concave(Draw& draw, Trace& trace) {
  const Plan p = usual(draw);
  Stage stage = stage_for(draw, p);
  const double onset = onset_after_load(p, stage);
  stage.shape("accelerating", fmt::format("bytes = {:.0f}\nover_s = {:.0f}\npower = {:.2f}\nonset_s = {:.0f}",
                                          stage.free_bytes, p.life_s, draw.uniform(0.7, 0.85), onset));
  finish(draw, trace, stage, p.life_s, onset, Pattern::gradual_leak, Pattern::none, {});
}

void adapters(Draw& draw, Trace& trace) {
  const Plan p = usual(draw);
  Stage stage = stage_for(draw, p, true);
  const double adapter = stage.free_bytes * draw.uniform(0.02, 0.06);
  const double swaps = draw.uniform(20, 80);
  stage.shape("lora", fmt::format("adapter_bytes = {:.0f}\nslots = 3\nevery_s = {:.0f}\nleak_bytes = {:.0f}", adapter,
                                  p.life_s / swaps, (stage.free_bytes - 6 * adapter) / swaps));
  finish(draw, trace, stage, p.life_s, 0, Pattern::step_increase, Pattern::gradual_leak, {});
}

void caught_oom(Draw& draw, Trace& trace) {
  const Plan p = usual(draw);
  Stage stage = stage_for(draw, p, true);
  const double onset = onset_after_load(p, stage);
  const double steps = draw.whole(12, 30);
  stage.shape("staircase",
              fmt::format("step_bytes = {:.0f}\nevery_s = {:.0f}\nintervals = \"random\"\nonset_s = {:.0f}",
                          0.7 * stage.free_bytes / steps, p.life_s / steps, onset));
  stage.shape("spike", fmt::format("bytes = {:.0f}\nhold_s = 30\nonset_s = {:.0f}", 0.2 * stage.free_bytes,
                                   onset + 0.3 * p.life_s));
  finish(draw, trace, stage, p.life_s, onset, Pattern::step_increase, Pattern::gradual_leak,
         0.7 * stage.free_bytes / p.life_s);
}

void two_programs(Draw& draw, Trace& trace) {
  const Plan p = usual(draw);
  Stage stage = stage_for(draw, p);
  const double onset = onset_after_load(p, stage);
  const double rate = stage.free_bytes / p.life_s;
  stage.shape("linear", fmt::format("rate_bytes_per_s = {:.1f}\nonset_s = {:.0f}", 0.8 * rate, onset));
  stage.tail += fmt::format(
      "\n[[process]]\nname = \"second\"\npid = 5151\ncommand = \"python second.py\"\n"
      "  [[process.shape]]\n  kind = \"linear\"\n  rate_bytes_per_s = {:.1f}\n  onset_s = {:.0f}\n",
      0.2 * rate, onset);
  finish(draw, trace, stage, p.life_s, onset, Pattern::gradual_leak, Pattern::none, rate);
}

}  // namespace

std::span<const Family> leaking_families() {
  static constexpr std::array kFamilies{
      Family{"linear", "a steady leak, from the start or after a while", true, false, linear},
      Family{"from_start", "a steady leak that begins with the program", true, false, from_start},
      Family{"late", "a steady leak after two to eight healthy hours", true, false, late},
      Family{"reported_rate", "4 to 50 MiB/min, the rates of public reports", true, false, reported_rate},
      Family{"slow", "megabytes a minute; the end is days away", true, false, slow},
      Family{"accelerating", "as a power of time, 1.3 to 2", true, false, accelerating},
      Family{"regular_stairs", "equal intervals", true, false, regular_stairs},
      Family{"epoch_stairs", "a step an epoch", true, false, epoch_stairs},
      Family{"random_stairs", "a step at random times", true, false, random_stairs},
      Family{"requests", "compound Poisson", true, false, requests},
      Family{"rising_sawtooth", "floor and peak rise", true, false, rising_sawtooth},
      Family{"floor_only", "garbage collected at a fixed limit, ever more kept", true, false, floor_only},
      Family{"spike_part_stays", "evaluations of which part stays", true, false, spike_part_stays},
      Family{"under_bursts", "a steady leak under bursty serving", true, false, under_bursts},
      Family{"under_daily_load", "a steady leak under day and night", true, false, under_daily_load},
      Family{"after_warm_up", "a warm-up that settles, then a leak", true, false, after_warm_up},
      Family{"partial_release", "a leak of which a little comes back now and then", true, false, partial_release},
      Family{"tenants_beside", "a leak beside jobs that come and go", true, false, tenants_beside},
      Family{"concave", "ever slower, and reaches the end all the same", true, true, concave},
      Family{"adapters", "adapter swaps that leak", true, true, adapters},
      Family{"caught_oom", "steps at random times, and a spike", true, true, caught_oom},
      Family{"two_programs", "two programs leak at once", true, true, two_programs},
  };
  return kFamilies;
}

}  // namespace vramtrack::accuracy
