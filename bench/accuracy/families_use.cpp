// Families of what people do with a card, by kind of use: models that are swapped, stairs, days, caches, curricula,
// warm-ups, tenants. Most kinds come with a leak and without. Written before its author read how the judge decides.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "families.hpp"
#include "families_tables.hpp"
#include "stage.hpp"

namespace vramtrack::accuracy {
namespace {

constexpr double kDay_s = 86400;

/// Half of these logs have no list of processes.
void finish(Draw& draw, Trace& trace, const Stage& stage) {
  trace.capacity_bytes = stage.capacity_bytes;
  if (draw.chance(0.5)) trace.processes = ProcessLog::none;
  trace.toml = write_scenario(draw, stage, trace.seed, trace.family);
}

void leaks(Trace& trace, Pattern pattern, Pattern also, double onset_s, double life_s,
           std::optional<double> rate = std::nullopt) {
  trace.label = {true, pattern, also, onset_s, rate, kVictim, life_s};
}

/// Mostly unknown programs; the others are what is used for this.
Stage stage_of(Draw& draw, double duration_s, const char* command, double least_free = 0.3) {
  Stage stage = roomy_stage(draw, duration_s, true, least_free);
  if (draw.chance(0.5)) stage.command = command;
  return stage;
}

struct Swaps {
  std::vector<double> model_bytes;
  double every_s = 0;     ///< a model stays this long in the mean
  double idle_share = 0;  ///< of the time, no model is loaded
};

Swaps swaps_of(Draw& draw, double most_bytes) {
  Swaps swaps;
  const int models = draw.whole(2, 7);
  for (int i = 0; i < models; ++i) swaps.model_bytes.push_back(most_bytes * draw.log_uniform(0.15, 1));
  swaps.every_s = draw.log_uniform(120, 2700);
  swaps.idle_share = draw.pick({0.0, 0.05, 0.3});
  return swaps;
}

/// One model after the other, any of them, from `from_s` on. After each, `left` of its bytes stay: a function of the
/// model's number.
template <class Left>
void add_swaps(Draw& draw, Stage& stage, const Swaps& swaps, double from_s, double to_s, const Left& left) {
  double t_s = from_s;
  int last = -1;
  while (t_s < to_s) {
    int model = draw.whole(0, static_cast<int>(swaps.model_bytes.size()) - 1);
    if (model == last) model = (model + 1) % static_cast<int>(swaps.model_bytes.size());
    last = model;
    const double bytes = swaps.model_bytes[static_cast<std::size_t>(model)];
    const double hold_s = swaps.every_s * draw.uniform(0.3, 1.7);
    const double rise_s = std::min(0.3 * hold_s, draw.log_uniform(3, 60));
    stage.shape("spike",
                fmt::format("bytes = {:.0f}\nrise_s = {:.1f}\nhold_s = {:.1f}\nonset_s = {:.1f}\nremain = {:.6f}",
                            bytes, rise_s, hold_s, t_s, std::clamp(left(model, t_s) / bytes, 0.0, 1.0)));
    t_s += rise_s + hold_s + 1 + (swaps.idle_share > 0 ? hold_s * swaps.idle_share * draw.uniform(0, 2) : 0);
  }
}

/// A server that has one of several models at a time. `stays`: which of them leave something behind.
enum class Stays : std::uint8_t { nothing, of_each, of_one, beside };

void swapped(Draw& draw, Trace& trace, Stays stays) {
  const bool leak = stays != Stays::nothing;
  const double wait_s = leak && draw.chance(0.4) ? draw.log_uniform(1200, 4 * 3600.0) : 0;
  const double life_s = draw.log_uniform(2.5, draw.by_split(24.0, 36.0)) * 3600;
  Stage stage =
      stage_of(draw, wait_s + (leak ? 1.15 : 1) * life_s, draw.pick({"ollama serve", "python webui.py --listen"}));
  Swaps swaps = swaps_of(draw, stage.free_bytes * draw.uniform(0.3, 0.6));
  // At least twelve swaps within the life: less are not swaps but stairs.
  swaps.every_s = std::min(swaps.every_s, life_s / 12);
  const double largest = *std::max_element(swaps.model_bytes.begin(), swaps.model_bytes.end());
  const double onset_s = std::max(wait_s, stage.load_s);
  const double per_swap = (stage.free_bytes - largest) / (life_s / (swaps.every_s * (1 + swaps.idle_share)));
  const auto models = static_cast<double>(swaps.model_bytes.size());
  add_swaps(draw, stage, swaps, stage.load_s, stage.duration_s, [&](int model, double t_s) {
    if (t_s < onset_s) return 0.0;
    if (stays == Stays::of_each) return per_swap * draw.uniform(0.5, 1.5);
    if (stays == Stays::of_one && model == 0) return models * per_swap * draw.uniform(0.8, 1.2);
    return 0.0;
  });
  const double rate = (stage.free_bytes - largest) / life_s;
  if (stays == Stays::beside)
    stage.shape("linear", fmt::format("rate_bytes_per_s = {:.1f}\nonset_s = {:.0f}", rate, onset_s));
  if (leak)
    leaks(trace, Pattern::cyclic, stays == Stays::beside ? Pattern::gradual_leak : Pattern::step_increase, onset_s,
          life_s, rate);
  finish(draw, trace, stage);
}

void swaps_leave(Draw& draw, Trace& trace) {
  swapped(draw, trace, Stays::of_each);
}
void swaps_one_leaves(Draw& draw, Trace& trace) {
  swapped(draw, trace, Stays::of_one);
}
void swaps_beside_leak(Draw& draw, Trace& trace) {
  swapped(draw, trace, Stays::beside);
}
void swaps(Draw& draw, Trace& trace) {
  swapped(draw, trace, Stays::nothing);
}

/// Somebody tries one model after the other, each larger than the last, and ends with one.
void larger_models(Draw& draw, Trace& trace) {
  Stage stage = stage_of(draw, draw.log_uniform(1, 12) * 3600, "python webui.py --listen");
  const int models = draw.whole(3, 7);
  const double first_s = stage.load_s + draw.uniform(0, 0.2) * stage.duration_s;
  const double each_s = (draw.uniform(0.4, 0.8) * stage.duration_s - first_s) / models;
  const double most = stage.free_bytes * draw.uniform(0.4, 0.9);
  for (int i = 0; i < models; ++i) {
    const double from_s = first_s + each_s * (i + draw.uniform(0, 0.2));
    const double hold_s = i + 1 < models ? each_s * draw.uniform(0.5, 0.8) : stage.duration_s;
    stage.shape("spike", fmt::format("bytes = {:.0f}\nrise_s = {:.1f}\nhold_s = {:.1f}\nonset_s = {:.1f}",
                                     most * (i + 1) / models, draw.log_uniform(3, 60), hold_s, from_s));
  }
  finish(draw, trace, stage);
}

/// Up to this many models stay loaded; then the one that was not used longest goes.
void models_kept(Draw& draw, Trace& trace) {
  Stage stage = stage_of(draw, draw.log_uniform(2, draw.by_split(16.0, 30.0)) * 3600, "ollama serve");
  const int slots = draw.whole(2, 4);
  stage.shape("lora",
              fmt::format("adapter_bytes = {:.0f}\nslots = {}\nspread = {:.2f}\nevery_s = {:.0f}\noverlap_s = 10",
                          0.85 * stage.free_bytes / (1.7 * slots + 1), slots, draw.uniform(0.2, 0.6),
                          stage.duration_s / draw.log_uniform(8, 80)));
  finish(draw, trace, stage);
}

/// Trials of a search in one process, of other sizes and lengths each; with a leak, what the last one made stays.
void trials(Draw& draw, Trace& trace, bool leak) {
  const double life_s = draw.log_uniform(2, draw.by_split(20.0, 30.0)) * 3600;
  Stage stage = stage_of(draw, (leak ? 1.15 : 1) * life_s, "python sweep.py");
  const double count = draw.whole(10, 45);
  const double most = stage.free_bytes * draw.uniform(0.25, 0.6);
  const double left = (stage.free_bytes - most) / count;
  double t_s = stage.load_s;
  while (t_s < stage.duration_s) {
    const double bytes = most * draw.uniform(0.3, 1);
    const double hold_s = life_s / count * draw.uniform(0.5, 1.3);
    stage.shape("spike",
                fmt::format("bytes = {:.0f}\nrise_s = {:.1f}\nhold_s = {:.1f}\nonset_s = {:.1f}\nremain = {:.6f}",
                            bytes, draw.uniform(1, 15), hold_s, t_s,
                            leak ? std::min(1.0, left * draw.uniform(0.6, 1.4) / bytes) : 0.0));
    t_s += hold_s + life_s / count * draw.uniform(0.05, 0.25);
  }
  if (leak) leaks(trace, Pattern::cyclic, Pattern::step_increase, stage.load_s, life_s);
  finish(draw, trace, stage);
}

void trials_leave(Draw& draw, Trace& trace) {
  trials(draw, trace, true);
}
void trials_free(Draw& draw, Trace& trace) {
  trials(draw, trace, false);
}

void add_batches(Draw& draw, Stage& stage, double share) {
  stage.shape("sawtooth", fmt::format("amplitude_bytes = {:.0f}\nperiod_s = {:.1f}\nperiod_spread = 0.2\n"
                                      "amplitude_spread = 0.2",
                                      stage.free_bytes * share, draw.log_uniform(2, 120)));
}

/// An error path that keeps what it was working on: any time, any size.
void errors_keep(Draw& draw, Trace& trace) {
  const double life_s = draw.log_uniform(2, draw.by_split(24.0, 36.0)) * 3600;
  const double wait_s = draw.chance(0.5) ? 0 : draw.log_uniform(600, 3 * 3600.0);
  Stage stage = stage_of(draw, wait_s + 1.2 * life_s, "python serve_asr.py");
  const double swing = draw.pick({0.0, 0.03, 0.1});
  if (swing > 0) add_batches(draw, stage, swing);
  const double onset_s = std::max(wait_s, stage.load_s);
  const double steps = draw.whole(8, 40);
  stage.shape("staircase", fmt::format("step_bytes = {:.0f}\nevery_s = {:.1f}\nintervals = \"random\"\nstep_spread = "
                                       "{:.2f}\nonset_s = {:.0f}",
                                       stage.free_bytes * (1 - 1.2 * swing) / steps, life_s / steps,
                                       draw.uniform(0.1, 0.8), onset_s));
  leaks(trace, Pattern::step_increase, Pattern::gradual_leak, onset_s, life_s);
  finish(draw, trace, stage);
}

/// Shapes that are compiled, graphs that are captured, when a request first needs them; then all are there.
void compiled_shapes(Draw& draw, Trace& trace) {
  Stage stage = stage_of(draw, draw.log_uniform(2, draw.by_split(24.0, 36.0)) * 3600, "python serve_asr.py");
  const double swing = draw.pick({0.0, 0.03, 0.1});
  if (swing > 0) add_batches(draw, stage, swing);
  const int steps = draw.whole(4, 16);
  const double all = stage.free_bytes * draw.uniform(0.1, 0.6);
  const double within_s = stage.duration_s * draw.uniform(0.1, 0.6);
  for (int i = 0; i < steps; ++i)
    // Common shapes come first: the later, the rarer.
    stage.shape("constant", fmt::format("bytes = {:.0f}\nonset_s = {:.0f}", all / steps * draw.uniform(0.4, 1.4),
                                        stage.load_s + within_s * draw.uniform(0, 1) * draw.uniform(0, 1)));
  finish(draw, trace, stage);
}

/// A day's load, from any hour on; with a leak that grows with it or beside it.
void day(Draw& draw, Trace& trace, bool leak) {
  const double life_s = draw.uniform(1.2, draw.by_split(3.0, 4.0)) * kDay_s;
  Stage stage = stage_of(draw, leak ? 1.1 * life_s : life_s, "uvicorn api:app --host 0.0.0.0");
  const double high = stage.free_bytes * draw.uniform(0.15, 0.5);
  const double peak_s = draw.uniform(0, kDay_s);
  stage.shape("diurnal", fmt::format("high_bytes = {:.0f}\npeak_s = {:.0f}\nsharpness = {:.1f}", high, peak_s,
                                     draw.uniform(1, 2.5)));
  stage.shape("wander", fmt::format("sigma_bytes = {:.0f}\ncorrelation_s = {:.0f}", high * draw.uniform(0.01, 0.06),
                                    draw.log_uniform(60, 1800)));
  if (leak) {
    const double rate = (stage.free_bytes - 1.1 * high) / life_s;
    if (draw.chance(0.5)) {
      stage.shape("linear", fmt::format("rate_bytes_per_s = {:.1f}\nonset_s = {:.0f}", rate, stage.load_s));
    } else {  // twelve hours around the peak of each day
      for (double d = -1; d * kDay_s < stage.duration_s; ++d) {
        const double from_s = std::max(stage.load_s, d * kDay_s + peak_s - kDay_s / 4);
        const double to_s = d * kDay_s + peak_s + kDay_s / 4;
        if (to_s > from_s)
          stage.shape("linear", fmt::format("rate_bytes_per_s = {:.1f}\nonset_s = {:.0f}\nuntil_s = {:.0f}", 2 * rate,
                                            from_s, to_s));
      }
    }
    leaks(trace, Pattern::gradual_leak, Pattern::cyclic, stage.load_s, life_s);
  }
  finish(draw, trace, stage);
}

void day_leaks(Draw& draw, Trace& trace) {
  day(draw, trace, true);
}
void day_load(Draw& draw, Trace& trace) {
  day(draw, trace, false);
}

/// A cache that fills to its limit, evenly or more and more slowly. With a leak: its limit was forgotten for what is
/// beside it.
void cache(Draw& draw, Trace& trace, bool leak) {
  const double fill_s = draw.log_uniform(0.2, draw.by_split(8.0, 12.0)) * 3600;
  const double life_s = draw.log_uniform(2, 20) * 3600;
  Stage stage =
      stage_of(draw, fill_s * draw.uniform(1.5, 4) + (leak ? 1.1 * life_s : 0), "python -m sglang.launch_server");
  const double share = leak ? draw.uniform(0.15, 0.5) : draw.uniform(0.15, 0.9);
  const double limit = stage.free_bytes * share;
  const double item = limit / draw.log_uniform(50, 5000);
  if (draw.chance(0.5)) {
    stage.shape("cache", fmt::format("requests_per_s = {:.6f}\nitem_bytes = {:.0f}\nlimit_bytes = {:.0f}",
                                     limit / item / fill_s, item, limit));
    if (!leak) trace.straight_share = share;
  } else {
    stage.shape("cache", fmt::format("requests_per_s = {:.6f}\nitem_bytes = {:.0f}\nlimit_bytes = {:.0f}\n"
                                     "universe_bytes = {:.0f}",
                                     2 * limit / item / fill_s, item, limit, 1.1 * limit));
  }
  if (leak) {
    const double onset_s = stage.load_s + draw.uniform(0.5, 1.5) * fill_s;
    const double rate = (stage.free_bytes - limit) / life_s;
    stage.shape("linear", fmt::format("rate_bytes_per_s = {:.1f}\nonset_s = {:.0f}", rate, onset_s));
    leaks(trace, Pattern::gradual_leak, Pattern::none, onset_s, life_s, rate);
    stage.duration_s = std::max(stage.duration_s, onset_s + 1.1 * life_s);
  }
  finish(draw, trace, stage);
}

void cache_and_leak(Draw& draw, Trace& trace) {
  cache(draw, trace, true);
}
void cache_to_cap(Draw& draw, Trace& trace) {
  cache(draw, trace, false);
}

/// Longer sequences, larger images or batches, by a schedule.
void curriculum(Draw& draw, Trace& trace) {
  Stage stage = stage_of(draw, draw.log_uniform(2, draw.by_split(24.0, 40.0)) * 3600, "torchrun train.py");
  add_batches(draw, stage, draw.uniform(0.01, 0.06));
  const int steps = draw.whole(2, 6);
  const double all = stage.free_bytes * draw.uniform(0.3, 0.85);
  const bool doubling = draw.chance(0.5);
  const double every_s = stage.duration_s * draw.uniform(0.4, 0.9) / steps;
  for (int i = 0; i < steps; ++i)
    stage.shape(
        "constant",
        fmt::format("bytes = {:.0f}\nonset_s = {:.0f}",
                    doubling ? all * static_cast<double>(1 << i) / static_cast<double>((1 << steps) - 1) : all / steps,
                    stage.load_s + every_s * (i + 1)));
  finish(draw, trace, stage);
}

/// What a program needs at first, and then no more. With a leak afterwards.
void warming(Draw& draw, Trace& trace, bool leak) {
  const double warm_s = draw.log_uniform(300, draw.by_split(3.0, 5.0) * 3600);
  const double life_s = draw.log_uniform(1.5, 20) * 3600;
  Stage stage = stage_of(draw, warm_s * draw.uniform(3, 8) + (leak ? 1.1 * life_s : 0), "torchrun train.py");
  if (draw.chance(0.5)) add_batches(draw, stage, 0.04);
  const double bytes = stage.free_bytes * draw.uniform(0.1, leak ? 0.5 : 0.7);
  switch (draw.whole(0, 3)) {
    case 0:
      stage.shape("warm_up", fmt::format("bytes = {:.0f}\nover_s = {:.0f}", bytes, warm_s / 3));
      break;
    case 1:
      stage.shape("warm_up", fmt::format("bytes = {:.0f}\nover_s = {:.0f}\nform = \"log\"", bytes, warm_s));
      break;
    case 2:
      stage.shape("settle",
                  fmt::format("bytes = {:.0f}\nsteps = {}\nover_s = {:.0f}", bytes, draw.whole(2, 6), warm_s));
      break;
    default:  // the longest batch so far
      stage.shape("running_max",
                  fmt::format("typical_bytes = {:.0f}\nevery_s = {:.1f}\nsigma = {:.2f}\nmax_bytes = {:.0f}",
                              0.4 * bytes, draw.log_uniform(1, 60), draw.uniform(0.1, 0.4), bytes));
  }
  if (leak) {
    const double onset_s = stage.load_s + draw.uniform(0, 1) * warm_s;
    const double rate = 0.93 * (stage.free_bytes - bytes) / life_s;
    stage.shape("linear", fmt::format("rate_bytes_per_s = {:.1f}\nonset_s = {:.0f}", rate, onset_s));
    leaks(trace, Pattern::gradual_leak, Pattern::cyclic, onset_s, life_s, rate);
    stage.duration_s = std::max(stage.duration_s, onset_s + 1.15 * life_s);
  }
  finish(draw, trace, stage);
}

void warm_then_leak(Draw& draw, Trace& trace) {
  warming(draw, trace, true);
}
void warm_up(Draw& draw, Trace& trace) {
  warming(draw, trace, false);
}

/// A card that several people share; their jobs come and go. With a leak: one of them never ends and grows.
void shared(Draw& draw, Trace& trace, bool leak) {
  const double life_s = draw.log_uniform(4, draw.by_split(30.0, 44.0)) * 3600;
  Stage stage = stage_of(draw, leak ? 1.15 * life_s : life_s, "python train.py", 0.45);
  const double others = stage.free_bytes * draw.uniform(0.3, 0.6);
  const double stays_s = draw.log_uniform(900, 4 * 3600.0);
  stage.tail += fmt::format(
      "\n[[tenants]]\ncommand = \"python job.py\"\nuser = \"guest\"\narrivals_per_s = {:.8f}\nlifetime_s = {:.0f}\n"
      "min_bytes = {:.0f}\nmax_bytes = {:.0f}\nload_s = {:.0f}\nat_start = {}\n",
      draw.uniform(1, 3) / stays_s, stays_s, 0.05 * others, 0.4 * others, draw.log_uniform(5, 120), draw.whole(0, 2));
  if (leak) {
    const double rate = (stage.free_bytes - 0.5 * others) / life_s;
    stage.shape("linear", fmt::format("rate_bytes_per_s = {:.1f}\nonset_s = {:.0f}", rate, stage.load_s));
    leaks(trace, Pattern::gradual_leak, Pattern::unknown, stage.load_s, life_s, rate);
  }
  finish(draw, trace, stage);
}

void shared_leak(Draw& draw, Trace& trace) {
  shared(draw, trace, true);
}
void shared_card(Draw& draw, Trace& trace) {
  shared(draw, trace, false);
}

/// Cells that make tensors and cells that delete them, with long pauses; from time to time the kernel is restarted.
void notebook(Draw& draw, Trace& trace) {
  Stage stage = stage_of(draw, draw.log_uniform(2, 12) * 3600, "python -m ipykernel_launcher");
  const double most = stage.free_bytes * draw.uniform(0.3, 0.8);
  double t_s = stage.load_s;
  while (t_s < stage.duration_s) {
    const double session_s = draw.log_uniform(1200, 3 * 3600.0);
    const int cells = draw.whole(2, 7);
    for (int i = 0; i < cells; ++i) {
      const double from_s = t_s + session_s * draw.uniform(0, 0.8);
      stage.shape(
          "constant",
          fmt::format("bytes = {:.0f}\nonset_s = {:.0f}\nrelease_s = {:.0f}", most / cells * draw.uniform(0.2, 1),
                      from_s, draw.chance(0.4) ? from_s + session_s * draw.uniform(0.02, 0.2) : t_s + session_s));
    }
    t_s += session_s * draw.uniform(1, 1.3);
  }
  finish(draw, trace, stage);
}

/// What most cards do most of the time.
void steady_work(Draw& draw, Trace& trace) {
  Stage stage = roomy_stage(draw, draw.log_uniform(1, draw.by_split(24.0, 40.0)) * 3600, false, 0.1);
  finish(draw, trace, stage);
}

}  // namespace

std::span<const Family> use_families() {
  static constexpr std::array kFamilies{
      Family{"swaps_leave", "models are swapped, and each leaves something", true, false, swaps_leave, Group::use},
      Family{"swaps_one_leaves", "models are swapped, and one of them leaves something", true, false, swaps_one_leaves,
             Group::use},
      Family{"swaps_beside_leak", "models are swapped beside a leak", true, false, swaps_beside_leak, Group::use},
      Family{"trials_leave", "each trial of a search leaves something", true, false, trials_leave, Group::use},
      Family{"errors_keep", "rare errors keep memory, at any time and of any size", true, false, errors_keep,
             Group::use},
      Family{"day_leaks", "a leak under a daily load, or with it", true, false, day_leaks, Group::use},
      Family{"cache_and_leak", "a cache that fills, and a leak", true, false, cache_and_leak, Group::use},
      Family{"warm_then_leak", "a warm-up, and a leak", true, false, warm_then_leak, Group::use},
      Family{"shared_leak", "one of several jobs on a card leaks", true, false, shared_leak, Group::use},
      Family{"swaps", "models are swapped", false, false, swaps, Group::use},
      Family{"larger_models", "one model after the other, each larger", false, false, larger_models, Group::use},
      Family{"models_kept", "models stay loaded until there are so many", false, false, models_kept, Group::use},
      Family{"trials_free", "trials of a search", false, false, trials_free, Group::use},
      Family{"compiled_shapes", "random stairs that end", false, false, compiled_shapes, Group::use},
      Family{"day_load", "a daily load", false, false, day_load, Group::use},
      Family{"cache_to_cap", "a cache that fills to its limit", false, false, cache_to_cap, Group::use},
      Family{"curriculum", "larger batches by a schedule", false, false, curriculum, Group::use},
      Family{"warm_up", "what a program needs at first", false, false, warm_up, Group::use},
      Family{"shared_card", "jobs come and go", false, false, shared_card, Group::use},
      Family{"notebook", "cells that make and delete", false, false, notebook, Group::use},
      Family{"steady_work", "a program that works", false, false, steady_work, Group::use},
  };
  return kFamilies;
}

}  // namespace vramtrack::accuracy
