// Healthy families: everything that rises and is not a leak.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "families.hpp"
#include "families_tables.hpp"
#include "stage.hpp"

namespace vramtrack::accuracy {
namespace {

double length(Draw& draw) {
  return draw.log_uniform(2 * 3600.0, draw.by_split(30 * 3600.0, 48 * 3600.0));
}

Stage stage_for(Draw& draw, bool quiet = false, double duration_s = 0) {
  const double wanted = duration_s > 0 ? duration_s : length(draw);
  return roomy_stage(draw, wanted, quiet, 0.25);
}

void finish(Draw& draw, Trace& trace, const Stage& stage) {
  trace.capacity_bytes = stage.capacity_bytes;
  trace.toml = write_scenario(draw, stage, trace.seed, trace.family);
}

void at_work(Draw& draw, Trace& trace) {
  finish(draw, trace, stage_for(draw));
}

void warm_up(Draw& draw, Trace& trace, std::string_view form, double shortest_s, double longest_s) {
  Stage stage = stage_for(draw);
  const double share = draw.uniform(0.05, form == "linear" ? 0.9 : 0.75);
  if (form == "linear") trace.straight_share = share;
  stage.shape("warm_up",
              fmt::format("bytes = {:.0f}\nover_s = {:.0f}\nform = \"{}\"\nonset_s = {:.0f}", stage.free_bytes * share,
                          draw.log_uniform(shortest_s, longest_s), form, stage.load_s));
  finish(draw, trace, stage);
}

void warm_up_exponential(Draw& draw, Trace& trace) {
  warm_up(draw, trace, "exponential", 60, draw.by_split(2400.0, 3600.0));
}
void warm_up_log(Draw& draw, Trace& trace) {
  warm_up(draw, trace, "log", 600, draw.by_split(6.0, 10.0) * 3600);
}
void warm_up_linear(Draw& draw, Trace& trace) {
  warm_up(draw, trace, "linear", 60, draw.by_split(1.0, 3.0) * 3600);
}

void load_in_shards(Draw& draw, Trace& trace) {
  Stage stage = stage_for(draw);
  const double share = draw.uniform(0.2, 0.85);
  const int shards = draw.whole(4, 40);
  const double over_s = draw.log_uniform(60, draw.by_split(600.0, 900.0));
  // Few shards are steps, and what takes less than five minutes is not a ramp to be told from a leak.
  if (shards >= 8 && over_s >= 300) trace.straight_share = share;
  stage.shape("load", fmt::format("bytes = {:.0f}\nshards = {}\nover_s = {:.0f}\nonset_s = {:.0f}",
                                  stage.free_bytes * share, shards, over_s, stage.load_s));
  finish(draw, trace, stage);
}

void settling_steps(Draw& draw, Trace& trace) {
  Stage stage = stage_for(draw);
  stage.shape("settle", fmt::format("bytes = {:.0f}\nsteps = {}\nover_s = {:.0f}\nonset_s = {:.0f}",
                                    stage.free_bytes * draw.uniform(0.1, 0.8), draw.whole(2, 4),
                                    draw.log_uniform(300, 0.5 * stage.duration_s), stage.load_s));
  finish(draw, trace, stage);
}

void running_maximum(Draw& draw, Trace& trace) {
  Stage stage = stage_for(draw, true);
  stage.shape("running_max", fmt::format("typical_bytes = {:.0f}\nevery_s = {:.1f}\nsigma = {:.2f}\nmax_bytes = {:.0f}",
                                         0.25 * stage.free_bytes, draw.log_uniform(1, draw.by_split(30.0, 60.0)),
                                         draw.uniform(0.05, 0.3), 0.9 * stage.free_bytes));
  finish(draw, trace, stage);
}

/// `most`: of what is free, at the highest peak of a usual amplitude.
void sawtooth(Draw& draw, Trace& trace, double shortest_s, double longest_s, double spread, const char* more,
              double most = 0.7) {
  Stage stage = stage_for(draw, true);
  const double share = draw.uniform(0.1, most);
  const double period_s = draw.log_uniform(shortest_s, longest_s);
  // The first rise of what takes a quarter of an hour and more looks like any other ramp.
  if (period_s >= 900 && std::string_view(more).find("square") == std::string_view::npos) trace.straight_share = share;
  stage.shape(
      "sawtooth",
      fmt::format("amplitude_bytes = {:.0f}\nperiod_s = {:.0f}\nperiod_spread = {:.2f}\namplitude_spread = {:.2f}{}",
                  stage.free_bytes * share, period_s, spread, 0.7 * spread, more));
  finish(draw, trace, stage);
}

void stable_sawtooth(Draw& draw, Trace& trace) {
  sawtooth(draw, trace, 10, 900, 0, "");
}
void jittering_sawtooth(Draw& draw, Trace& trace) {
  sawtooth(draw, trace, 10, 900, draw.uniform(0.05, 0.4), "");
}
void modulated_sawtooth(Draw& draw, Trace& trace) {
  sawtooth(draw, trace, 10, 600, 0.1,
           draw.chance(0.5) ? "\nmodulation = 0.4\nmodulation_s = 5400" : "\nperiod_drift = 0.2");
}
void long_sawtooth(Draw& draw, Trace& trace) {
  sawtooth(draw, trace, 900, draw.by_split(5400.0, 9000.0), 0.1, "", 0.9);
}

void garbage_collection(Draw& draw, Trace& trace) {
  Stage stage = stage_for(draw, true);
  const double spread = draw.uniform(0.02, 0.2);
  trace.straight_share = draw.uniform(0.1, 0.9 / (1 + spread));
  const double threshold = stage.free_bytes * trace.straight_share;
  const double period_s = draw.log_uniform(300, draw.by_split(3600.0, 7200.0));
  stage.shape("gc", fmt::format("threshold_bytes = {:.0f}\nrate_bytes_per_s = {:.0f}\nthreshold_spread = {:.2f}",
                                threshold, threshold / period_s, spread));
  finish(draw, trace, stage);
}

void evaluation(Draw& draw, Trace& trace) {
  Stage stage = stage_for(draw);
  const double every_s = draw.log_uniform(300, 7200);
  stage.shape("evaluation", fmt::format("bytes = {:.0f}\nevery_s = {:.0f}\nlasts_s = {:.0f}\nspread = {:.2f}",
                                        stage.free_bytes * draw.uniform(0.1, 0.75), every_s,
                                        every_s * draw.uniform(0.03, 0.3), draw.uniform(0, 0.3)));
  finish(draw, trace, stage);
}

void bursty_serving(Draw& draw, Trace& trace) {
  Stage stage = stage_for(draw, true);
  stage.shape("serving",
              fmt::format("request_bytes = {:.0f}\nrequests_per_s = {:.3f}\nservice_s = {:.1f}\n"
                          "burst_every_s = {:.0f}\nburst_lasts_s = {:.0f}\nburst_factor = {:.1f}\nmax_requests = 32",
                          stage.free_bytes * 0.9 / 32, draw.log_uniform(0.2, 2), draw.uniform(1, 8),
                          draw.log_uniform(120, 1800), draw.log_uniform(10, 300), draw.uniform(3, 10)));
  finish(draw, trace, stage);
}

void wander(Draw& draw, Trace& trace) {
  Stage stage = stage_for(draw, true);
  stage.shape("constant", fmt::format("bytes = {:.0f}", 0.4 * stage.free_bytes));
  stage.shape("wander", fmt::format("sigma_bytes = {:.0f}\ncorrelation_s = {:.0f}",
                                    stage.free_bytes * draw.log_uniform(0.01, 0.12),
                                    draw.log_uniform(30, draw.by_split(2400.0, 3600.0))));
  finish(draw, trace, stage);
}

void tenants(Draw& draw, Trace& trace, bool visible) {
  Stage stage = stage_for(draw, true);
  const double lifetime_s = draw.log_uniform(600, 4 * 3600.0);
  const double at_once = draw.uniform(1, 5);
  stage.tail += fmt::format(
      "\n[[tenants]]\nname = \"jobs\"\ncommand = \"python job.py\"\nuser = \"carl\"\n"
      "arrivals_per_s = {:.7f}\nlifetime_s = {:.0f}\nmin_bytes = {:.0f}\nmax_bytes = {:.0f}\nvisible = {}\n"
      "load_s = {:.0f}\n",
      at_once / lifetime_s, lifetime_s, 0.02 * stage.capacity_bytes, 0.15 * stage.capacity_bytes, visible,
      draw.log_uniform(5, 120));
  if (!visible) stage.shapes.insert(0, "visible = false\n");
  finish(draw, trace, stage);
}

void job_churn(Draw& draw, Trace& trace) {
  tenants(draw, trace, true);
}
void unseen_churn(Draw& draw, Trace& trace) {
  tenants(draw, trace, false);
}

void reservation(Draw& draw, Trace& trace) {
  Stage stage = stage_for(draw);
  stage.shape("kv_cache", fmt::format("bytes = {:.0f}\nafter_s = {:.0f}", stage.free_bytes * draw.uniform(0.5, 0.97),
                                      draw.log_uniform(20, 1200)));
  finish(draw, trace, stage);
}

void cache_to_limit(Draw& draw, Trace& trace) {
  Stage stage = stage_for(draw);
  trace.straight_share = draw.uniform(0.1, 0.9);
  const double limit = stage.free_bytes * trace.straight_share;
  const double item = draw.log_uniform(1, 64) * kMiB;
  const double filled_s = draw.log_uniform(300, draw.by_split(2.0, 4.0) * 3600);
  stage.shape("cache", fmt::format("limit_bytes = {:.0f}\nitem_bytes = {:.0f}\nrequests_per_s = {:.6f}", limit, item,
                                   limit / item / filled_s));
  finish(draw, trace, stage);
}

void fragmentation(Draw& draw, Trace& trace) {
  Stage stage = stage_for(draw);
  stage.shape("fragmentation",
              fmt::format("bytes = {:.0f}\nover_s = {:.0f}\nsteps = {}", stage.free_bytes * draw.uniform(0.03, 0.4),
                          draw.log_uniform(1800, 0.6 * stage.duration_s), draw.whole(6, 30)));
  finish(draw, trace, stage);
}

void spike_stays(Draw& draw, Trace& trace) {
  Stage stage = stage_for(draw);
  stage.shape("spike", fmt::format("bytes = {:.0f}\nrise_s = {:.0f}\nremain = {:.2f}\nonset_s = {:.0f}",
                                   stage.free_bytes * draw.uniform(0.2, 0.9), draw.log_uniform(1, 120),
                                   draw.pick({0.0, 1.0, 1.0}), draw.uniform(0.1, 0.8) * stage.duration_s));
  finish(draw, trace, stage);
}

void idle_desktop(Draw& draw, Trace& trace) {
  Stage stage = stage_for(draw, true);
  stage.shape("random_walk",
              fmt::format("step_bytes = {:.0f}\nevery_s = {:.0f}\nhigh_bytes = {:.0f}", draw.log_uniform(2, 20) * kMiB,
                          draw.log_uniform(5, 60), draw.log_uniform(100, 600) * kMiB));
  finish(draw, trace, stage);
}

// Of the test split only.

void cache_universe(Draw& draw, Trace& trace) {
  Stage stage = stage_for(draw);
  const double universe = stage.free_bytes * draw.uniform(0.2, 0.8);
  const double item = draw.log_uniform(1, 64) * kMiB;
  stage.shape("cache",
              fmt::format("limit_bytes = {:.0f}\nitem_bytes = {:.0f}\nrequests_per_s = {:.6f}\nuniverse_bytes = {:.0f}",
                          0.95 * stage.free_bytes, item, universe / item / draw.log_uniform(600, 5400), universe));
  finish(draw, trace, stage);
}

void square_wave(Draw& draw, Trace& trace) {
  sawtooth(draw, trace, 60, 7200, 0.2, draw.chance(0.5) ? "\nform = \"square\"" : "\nform = \"triangle\"");
}

void adapter_swaps(Draw& draw, Trace& trace) {
  Stage stage = stage_for(draw, true);
  stage.shape("lora",
              fmt::format("adapter_bytes = {:.0f}\nslots = {}\nevery_s = {:.0f}\nactive_s = 3600\nidle_s = 5400",
                          stage.free_bytes * 0.1, draw.whole(2, 5), draw.log_uniform(60, 1200)));
  finish(draw, trace, stage);
}

void random_walk(Draw& draw, Trace& trace) {
  Stage stage = stage_for(draw, true);
  const double every_s = draw.log_uniform(10, 120);
  const double high = stage.free_bytes * draw.uniform(0.2, 0.8);
  stage.shape("random_walk", fmt::format("step_bytes = {:.0f}\nevery_s = {:.0f}\nhigh_bytes = {:.0f}",
                                         high * draw.uniform(0.02, 0.15), every_s, high));
  finish(draw, trace, stage);
}

void restarts(Draw& draw, Trace& trace) {
  Stage stage = stage_for(draw, true);
  const double lifetime_s = draw.log_uniform(900, 0.3 * stage.duration_s);
  stage.shape("warm_up", fmt::format("bytes = {:.0f}\nover_s = {:.0f}", stage.free_bytes * draw.uniform(0.1, 0.7),
                                     lifetime_s * draw.uniform(0.05, 0.3)));
  stage.shapes.insert(
      0, fmt::format("lifetime_s = {:.0f}\nrestart_after_s = {:.0f}\n", lifetime_s, draw.uniform(10, 300)));
  finish(draw, trace, stage);
}

}  // namespace

std::span<const Family> healthy_families() {
  static constexpr std::array kFamilies{
      Family{"at_work", "noise, batches, evaluation or requests at a constant level", false, false, at_work},
      Family{"warm_up_exponential", "saturates", false, false, warm_up_exponential},
      Family{"warm_up_log", "saturates slowly", false, false, warm_up_log},
      Family{"warm_up_linear", "straight, then flat", false, false, warm_up_linear},
      Family{"load_in_shards", "a model arrives in parts", false, false, load_in_shards},
      Family{"settling_steps", "two to four steps, then flat", false, false, settling_steps},
      Family{"running_maximum", "a caching allocator: records that thin out", false, false, running_maximum},
      Family{"stable_sawtooth", "10 s to 15 min", false, false, stable_sawtooth},
      Family{"jittering_sawtooth", "periods and amplitudes vary", false, false, jittering_sawtooth},
      Family{"modulated_sawtooth", "swells, or its period drifts", false, false, modulated_sawtooth},
      Family{"long_sawtooth", "ramps of a quarter of an hour to hours", false, false, long_sawtooth},
      Family{"garbage_collection", "ramps up to a limit", false, false, garbage_collection},
      Family{"evaluation", "spikes that go away", false, false, evaluation},
      Family{"bursty_serving", "requests in bursts", false, false, bursty_serving},
      Family{"wander", "mean-reverting, seconds to an hour", false, false, wander},
      Family{"job_churn", "jobs come and go, and are seen", false, false, job_churn},
      Family{"unseen_churn", "jobs come and go; only the total is known", false, false, unseen_churn},
      Family{"reservation", "a KV cache taken at once", false, false, reservation},
      Family{"cache_to_limit", "a cache fills to its limit", false, false, cache_to_limit},
      Family{"fragmentation", "ever smaller steps, ever more rarely", false, false, fragmentation},
      Family{"spike_stays", "one jump that stays or goes", false, false, spike_stays},
      Family{"idle_desktop", "drift of some hundred MiB", false, false, idle_desktop},
      Family{"cache_universe", "a cache whose hits grow with its fill", false, true, cache_universe},
      Family{"square_wave", "square and triangular waves", false, true, square_wave},
      Family{"adapter_swaps", "adapters in stretches", false, true, adapter_swaps},
      Family{"random_walk", "between two walls", false, true, random_walk},
      Family{"restarts", "a program that ends and starts again", false, true, restarts},
  };
  return kFamilies;
}

}  // namespace vramtrack::accuracy
