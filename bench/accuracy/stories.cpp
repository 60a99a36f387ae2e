#include "stories.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <stdexcept>

#include "core/units.hpp"
#include "metrics.hpp"

namespace vramtrack::accuracy {
namespace {

/// What a program holds before it has loaded anything.
constexpr double kContext_bytes = 300 * kMiB;

/// Builds a recording sample by sample: what the driver and the tenants hold, and what the program holds now.
class Teller {
 public:
  Teller(double capacity_bytes, double period_s, double others_bytes) : others_(others_bytes) {
    story.capacity_bytes = capacity_bytes;
    story.period_s = period_s;
  }

  /// The card without the program.
  void rest(int samples) {
    for (int i = 0; i < samples; ++i) sample(0);
  }
  void rest_for(double seconds) { rest(static_cast<int>(seconds / story.period_s)); }

  /// A run: `held(age_s)` until `until_s`, or until the card is full. How it ended is left to the caller, who is told
  /// whether it ran out of memory.
  bool run(const std::function<double(double)>& held, double until_s, double usable_bytes) {
    StoryRun of;
    of.begin_s = now_s_;
    const double begin_s = now_s_;
    bool full = false;
    Story::Listed listed{next_pid_++, "python train.py", {}};
    for (double age_s = 0; age_s <= until_s; age_s = now_s_ - begin_s) {
      const double bytes = kContext_bytes + std::floor(held(age_s) / (2 * kMiB)) * 2 * kMiB;
      full = others_ + bytes > usable_bytes;
      if (full) break;
      listed.points.push_back({now_s_, bytes});
      sample(bytes);
    }
    of.end_s = now_s_ - story.period_s;
    story.runs.push_back(of);
    story.processes.push_back(std::move(listed));
    return full;
  }

  Story story;

 private:
  void sample(double bytes) {
    story.points.push_back({now_s_, others_ + bytes});
    now_s_ += story.period_s;
  }

  double others_;
  double now_s_ = 0;
  std::uint32_t next_pid_ = 4242;
};

double rising(double age_s, double over_s) {
  return over_s <= 0 ? 1 : std::clamp(age_s / over_s, 0.0, 1.0);
}

/// A healthy program: loads, then stands still except for a little work.
std::function<double(double)> healthy(Draw& draw, double bytes) {
  const double over_s = draw.log_uniform(5, 90);
  const double swing = draw.chance(0.5) ? 0 : bytes * draw.log_uniform(0.002, 0.05);
  const double period_s = draw.log_uniform(20, 600);
  return [=](double age_s) {
    return bytes * rising(age_s, over_s) + (age_s > over_s ? swing * std::fmod(age_s / period_s, 1.0) : 0);
  };
}

/// Loads in stages; the last growth is `last_s`.
struct Stages {
  std::function<double(double)> held;
  double last_s = 0;
  double withdrawn_in_s = 0;  ///< as in StoryRun
};

/// `ramps`: the share of the stages that rise for a while; the others jump.
Stages stages_of(Draw& draw, double bytes, double ramps) {
  struct Stage {
    double at_s;
    double over_s;
    double bytes;
  };
  std::vector<Stage> all;
  const int count = draw.whole(3, 5);
  double at_s = 0;
  for (int i = 0; i < count; ++i) {
    const double length_s = draw.log_uniform(120, 1500);
    const double over_s = draw.chance(ramps) ? length_s * draw.uniform(0.1, 0.9) : 0;
    all.push_back({at_s, over_s, bytes / count * draw.uniform(0.8, 1.2)});
    at_s += length_s;
  }
  if (draw.chance(0.3)) all.push_back({at_s, 0, draw.uniform(4, 40) * kMiB});
  Stages stages;
  stages.last_s = all.back().at_s + all.back().over_s;
  std::vector<double> pauses_s;
  for (std::size_t i = 1; i < all.size(); ++i) pauses_s.push_back(all[i].at_s - all[i - 1].at_s - all[i - 1].over_s);
  stages.withdrawn_in_s = std::max({kSecondsPerMinute * 10.0, 2 * quantile(pauses_s, 0.5), stages.last_s / 2});
  stages.held = [all](double age_s) {
    double sum = 0;
    for (const Stage& s : all)
      if (age_s >= s.at_s) sum += s.bytes * rising(age_s - s.at_s, s.over_s);
    return sum;
  };
  return stages;
}

/// A leak by a steady rate or in steps, from `onset_s` on; `life_s` from there until `bytes` are used.
std::function<double(double)> leaking(Draw& draw, double load_bytes, double onset_s, double life_s, double bytes) {
  const double over_s = std::min(onset_s, draw.log_uniform(5, 60));
  const double steps = draw.chance(0.3) ? draw.whole(12, 60) : 0;
  return [=](double age_s) {
    const double share = std::max(0.0, age_s - onset_s) / life_s;
    const double leaked = steps > 0 ? std::floor(share * steps) / steps : share;
    return load_bytes * rising(age_s, over_s) + leaked * bytes;
  };
}

void before(Draw& draw, Teller& teller, Before what, double usable_bytes) {
  if (what.idle) teller.rest_for(kSecondsPerHour);
  for (int i = 0; i < what.runs; ++i) {
    const double bytes = usable_bytes * draw.uniform(0.1, 0.45);
    const double length_s = draw.log_uniform(1, 10) * kSecondsPerHour;
    if (draw.chance(0.5))
      teller.run(healthy(draw, bytes), length_s, usable_bytes);
    else
      teller.run(stages_of(draw, bytes, 0.3).held, length_s, usable_bytes);
    teller.story.runs.back().how = EndKind::ended;
    teller.rest_for(draw.log_uniform(0.1, 5) * kSecondsPerHour);
  }
}

}  // namespace

Story crash_story(Draw& draw, int runs, int idle_samples, int tenants, bool listed) {
  const double capacity = kGiB * draw.pick({16.0, 24.0, 40.0, 80.0});
  const double period_s = draw.pick({5.0, 10.0, 20.0, 30.0});
  const double driver = draw.uniform(200, 600) * kMiB;
  std::vector<double> held;
  double others = driver;
  for (int i = 0; i < tenants; ++i) {
    held.push_back(std::floor(capacity * draw.uniform(0.05, 0.18) / kMiB) * kMiB);
    others += held.back();
  }
  const double usable = capacity * draw.uniform(0.98, 1);
  const double load = capacity * draw.uniform(0.05, 0.2);
  const double life_s = draw.log_uniform(2400, 4 * kSecondsPerHour);
  const double onset_s = draw.chance(0.5) ? 0 : draw.log_uniform(120, 1800);
  Teller teller(capacity, period_s, others);
  const auto leak = [&] {
    const double pace = draw.uniform(0.93, 1.07);
    return leaking(draw, load, onset_s, life_s * pace, usable - others - load);
  };
  const double forever_s = 100 * kSecondsPerHour;
  for (int i = 0; i + 1 < runs; ++i) {
    teller.run(leak(), forever_s, usable);
    StoryRun& of = teller.story.runs.back();
    of.how = EndKind::out_of_memory;
    of.leaks = true;
    of.onset_s = of.begin_s + onset_s;
    teller.rest(idle_samples);
  }
  const double kind = draw.uniform(0, 1);
  if (kind < 0.35) {
    teller.run(healthy(draw, load * draw.uniform(1, 2.5)), draw.uniform(1, 4) * kSecondsPerHour, usable);
  } else {
    const bool to_the_end = kind > 0.8;
    teller.run(leak(), to_the_end ? forever_s : onset_s + life_s * draw.uniform(0.4, 0.85), usable);
    StoryRun& of = teller.story.runs.back();
    of.leaks = true;
    of.onset_s = of.begin_s + onset_s;
    if (to_the_end) {
      of.how = EndKind::out_of_memory;
      teller.rest(draw.pick({1, 3, 15, 200}));
    }
  }
  Story story = std::move(teller.story);
  if (!listed) {
    story.processes.clear();
  } else {
    for (int i = 0; i < tenants; ++i) {
      Story::Listed tenant{static_cast<std::uint32_t>(100 + i), "vllm serve", {}};
      for (const Point& p : story.points) tenant.points.push_back({p.t_s, held[static_cast<std::size_t>(i)]});
      story.processes.push_back(std::move(tenant));
    }
  }
  return story;
}

Story killed_story(Draw& draw, bool reported) {
  const double capacity = kGiB * draw.pick({16.0, 24.0, 40.0, 80.0});
  const double period_s = draw.pick({5.0, 10.0, 20.0, 30.0});
  const double load = capacity * draw.uniform(0.05, 0.3);
  const double load_s = draw.log_uniform(5, 120);
  const double onset_s = draw.chance(0.5) ? load_s : draw.log_uniform(120, 1800);
  const double life_s = draw.log_uniform(2400, 4 * kSecondsPerHour);
  Teller teller(capacity, period_s, draw.uniform(200, 600) * kMiB);
  teller.story.capacity_is_known = draw.chance(0.5);
  const int runs = draw.whole(2, 4);
  for (int i = 0; i < runs; ++i) {
    // A sample does not come at the moment of the start.
    const double phase_s = draw.uniform(0, period_s);
    const double pace = draw.uniform(0.93, 1.07);
    const double until_s = onset_s + life_s * pace;
    const double leaked = capacity * draw.uniform(0.45, 0.85) - load;
    teller.run(
        [&](double age_s) {
          const double age = age_s + phase_s;
          return load * rising(age, load_s) + leaked * std::max(0.0, age - onset_s) / (until_s - onset_s);
        },
        until_s, capacity);
    StoryRun& of = teller.story.runs.back();
    of.leaks = true;
    of.onset_s = of.begin_s + onset_s;
    if (i + 1 == runs) break;
    of.how = EndKind::ended;
    if (reported) teller.story.reported_end_s.push_back(of.end_s);
  }
  teller.story.processes.clear();
  return std::move(teller.story);
}

Story refilled_story(Draw& draw) {
  const double capacity = kGiB * draw.pick({16.0, 24.0, 40.0, 80.0});
  Teller teller(capacity, draw.pick({5.0, 10.0, 20.0, 30.0}), draw.uniform(200, 600) * kMiB);
  teller.story.capacity_is_known = draw.chance(0.5);
  std::vector<double> models;
  const int count = draw.whole(1, 4);
  for (int i = 0; i < count; ++i) models.push_back(capacity * draw.uniform(0.1, 0.4));
  const double cache = capacity * draw.uniform(0.1, 0.4);
  const double stay_s = draw.log_uniform(900, 2 * kSecondsPerHour);
  const double fill_s = stay_s * draw.uniform(0.1, 0.5);
  const double load_s = draw.log_uniform(5, 120);
  teller.run(
      [&](double age_s) {
        const double age = std::fmod(age_s, stay_s);
        const double model = models[static_cast<std::size_t>(age_s / stay_s) % models.size()];
        // Only the context and what the server keeps for itself stay in between.
        return kGiB + model * rising(age, load_s) + cache * (1 - std::exp(-std::max(0.0, age - load_s) / fill_s));
      },
      draw.uniform(3, 8) * kSecondsPerHour, capacity);
  teller.story.runs.clear();
  teller.story.processes.clear();
  return std::move(teller.story);
}

Story no_end_story(Draw& draw) {
  const double capacity = kGiB * draw.pick({16.0, 24.0, 40.0, 80.0});
  const double others = draw.uniform(200, 600) * kMiB + (draw.chance(0.5) ? capacity * draw.uniform(0.05, 0.2) : 0);
  Teller teller(capacity, draw.pick({5.0, 10.0, 20.0, 30.0}), others);
  const double free = capacity - others;
  const double low = std::max(1.5 * kGiB, free * draw.uniform(0.1, 0.4));
  const double high = low + (free - low) * draw.uniform(0.3, 0.97);
  const double period_s = draw.log_uniform(60, 2400);
  const double duty = draw.uniform(0.05, 0.3);
  const int shape = draw.whole(0, 3);
  std::vector<double> models;
  for (int i = 0; i < 64; ++i) models.push_back(low + (high - low) * draw.uniform(0.2, 1));
  teller.run(
      [&](double age_s) {
        const double phase = std::fmod(age_s / period_s, 1.0);
        const auto turn = static_cast<std::size_t>(age_s / period_s) % models.size();
        switch (shape) {
          case 0:  // a sawtooth
            return low + (high - low) * phase;
          case 1:  // evaluation: another level for a while
            return phase > 1 - duty ? high : low;
          case 2:  // a checkpoint: memory is released and taken again
            return phase > 1 - duty ? low : high;
          default:  // models are swapped: only the context stays in between
            return phase < 0.5 * duty ? 1.2 * kGiB : models[turn];
        }
      },
      draw.uniform(3, 8) * kSecondsPerHour, capacity);
  teller.story.processes.clear();
  teller.story.runs.clear();
  return std::move(teller.story);
}

Story staged_story(Draw& draw, Before what, double ramps) {
  const double capacity = kGiB * draw.pick({24.0, 48.0, 80.0});
  const double usable = capacity;
  Teller teller(capacity, 15, draw.pick({4.0, 400.0}) * kMiB);
  const Stages stages = stages_of(draw, capacity * draw.uniform(0.12, 0.6), ramps);
  before(draw, teller, what, usable);
  teller.run(stages.held, stages.last_s + 4 * kSecondsPerHour, usable);
  StoryRun& of = teller.story.runs.back();
  of.onset_s = of.begin_s + stages.last_s;
  of.withdrawn_in_s = stages.withdrawn_in_s;
  teller.story.processes.clear();
  return std::move(teller.story);
}

Story leak_story(Draw& draw, Before what) {
  const double capacity = kGiB * draw.pick({24.0, 48.0, 80.0});
  Teller teller(capacity, 15, draw.pick({4.0, 400.0}) * kMiB);
  const double load = capacity * draw.uniform(0.08, 0.4);
  const double onset_s = draw.chance(0.5) ? 0 : draw.log_uniform(300, 7200);
  const double life_s = draw.log_uniform(3600, 10 * kSecondsPerHour);
  const auto leak = leaking(draw, load, onset_s, life_s, capacity - load);
  before(draw, teller, what, capacity);
  teller.run(leak, 100 * kSecondsPerHour, capacity);
  StoryRun& of = teller.story.runs.back();
  of.leaks = true;
  of.how = EndKind::out_of_memory;
  of.onset_s = of.begin_s + onset_s;
  teller.rest(3);
  teller.story.processes.clear();
  return std::move(teller.story);
}

std::string csv_of(const Story& story) {
  std::string out = "timestamp, index, memory.used [MiB], memory.total [MiB]\n";
  for (const Point& p : story.points) {
    const auto s = static_cast<std::int64_t>(p.t_s);
    out += fmt::format("2026/06/{:02}T{:02}:{:02}:{:02}Z, 0, {:.0f} MiB, {:.0f} MiB\n", 1 + s / 86400, s / 3600 % 24,
                       s / 60 % 60, s % 60, p.used_bytes / kMiB, story.capacity_bytes / kMiB);
  }
  return out;
}

Story story_named(const std::string& name, Split split, std::uint64_t seed, std::uint64_t number) {
  // What was before a last run must not change it.
  const std::string_view of = std::string_view(name).substr(0, name.find('_'));
  Draw draw{sim::Random(sim::substream(sim::substream(sim::substream(seed, split == Split::tune ? "tune" : "test"), of),
                                       number)),
            split};
  if (name == "crash" || name == "crash_listed") {
    constexpr std::array kIdle{0, 2, 15};
    const int runs = 1 + static_cast<int>(number % 6);
    const int idle = kIdle[number / 6 % 3];
    return crash_story(draw, runs, idle, static_cast<int>(number / 18 % 3), name == "crash_listed");
  }
  if (name == "killed") return killed_story(draw, false);
  if (name == "killed_reported") return killed_story(draw, true);
  if (name == "refilled") return refilled_story(draw);
  if (name == "falls") return no_end_story(draw);
  if (name == "staged") return staged_story(draw, {}, 0);
  if (name == "staged_idle") return staged_story(draw, {0, true}, 0);
  if (name == "staged_later") return staged_story(draw, {1 + static_cast<int>(number % 3), false}, 0);
  if (name == "ramped") return staged_story(draw, {}, 0.5);
  if (name == "ramped_idle") return staged_story(draw, {0, true}, 0.5);
  if (name == "ramped_later") return staged_story(draw, {1 + static_cast<int>(number % 3), false}, 0.5);
  if (name == "leak") return leak_story(draw, {});
  if (name == "leak_second") return leak_story(draw, {1, false});
  if (name == "leak_third") return leak_story(draw, {2, false});
  throw std::runtime_error("no story '" + name + "'");
}

}  // namespace vramtrack::accuracy
