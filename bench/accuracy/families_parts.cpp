// Scenes of several programs on one card: who grows, when jobs come and go beside servers. They have a table of their
// own (tables_parts.cpp): they test which process the growth is attributed to.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "families.hpp"
#include "families_tables.hpp"
#include "stage.hpp"

namespace vramtrack::accuracy {
namespace {

/// The pid of what the driver grows by: it is in no list of processes.
constexpr std::uint32_t kUnseen = 777;
constexpr int kMostJobs = 250;

/// Nothing of what it holds overlaps in time by more than this: the card is never full of healthy programs.
class Room {
 public:
  Room(double duration_s, double free_bytes) : free_bytes_(free_bytes), step_s_(duration_s / kSteps) {}

  /// False, and nothing is taken, where it does not fit.
  bool take(double from_s, double to_s, double bytes) {
    const auto first = static_cast<std::size_t>(std::clamp(from_s / step_s_, 0.0, kSteps - 1.0));
    const auto last = static_cast<std::size_t>(std::clamp(to_s / step_s_, 0.0, kSteps - 1.0));
    for (std::size_t i = first; i <= last; ++i)
      if (held_[i] + bytes > free_bytes_) return false;
    for (std::size_t i = first; i <= last; ++i) held_[i] += bytes;
    return true;
  }

 private:
  static constexpr int kSteps = 2000;
  double free_bytes_;
  double step_s_;
  std::array<double, kSteps> held_{};
};

std::string process(const std::string& name, std::uint32_t pid, const std::string& keys) {
  return fmt::format("\n[[process]]\nname = \"{}\"\npid = {}\ncommand = \"python {}.py\"\nuser = \"ada\"\n{}", name,
                     pid, name, keys);
}

std::string shape(const std::string& kind, const std::string& keys) {
  return fmt::format("  [[process.shape]]\n  kind = \"{}\"\n  {}\n", kind, keys);
}

struct Scene {
  double capacity_bytes = 0;
  double period_s = 0;
  double duration_s = 0;
  double used_bytes = 0;  ///< at the peaks of what is there from the beginning
  std::string processes;
};

Scene set_scene(Draw& draw, double duration_s) {
  Scene scene;
  scene.duration_s = duration_s;
  scene.capacity_bytes =
      kGiB * draw.by_split(draw.pick({16.0, 24.0, 48.0, 80.0}), draw.pick({12.0, 32.0, 40.0, 94.0, 141.0, 192.0}));
  scene.period_s = draw.by_split(draw.pick({1.0, 5.0, 10.0, 30.0}), draw.pick({2.0, 5.0, 15.0, 20.0}));
  while (duration_s / scene.period_s > 15000) scene.period_s *= 2;
  return scene;
}

/// A server that stays: a load, and how it breathes at work. `shapes` go on top.
void add_server(Draw& draw, Scene& scene, const std::string& name, std::uint32_t pid, double share,
                const std::string& shapes = {}) {
  const double bytes = scene.capacity_bytes * share;
  std::string text = process(name, pid, "");
  text += shape("load", fmt::format("bytes = {:.0f}\n  over_s = {:.0f}\n  shards = {}", bytes, draw.log_uniform(5, 90),
                                    draw.whole(1, 12)));
  scene.used_bytes += bytes;
  const double swing = bytes * draw.uniform(0.05, 0.35);
  switch (draw.whole(0, 4)) {
    case 0:
      text += shape("sawtooth", fmt::format("amplitude_bytes = {:.0f}\n  period_s = {:.0f}\n  period_spread = 0.2",
                                            swing, draw.log_uniform(10, draw.by_split(900.0, 1800.0))));
      scene.used_bytes += swing;
      break;
    case 1:
      text += shape("serving", fmt::format("request_bytes = {:.0f}\n  requests_per_s = {:.3f}\n  service_s = {:.1f}\n"
                                           "  max_requests = 8",
                                           swing / 8, draw.log_uniform(0.1, 2), draw.log_uniform(0.5, 6)));
      scene.used_bytes += swing;
      break;
    case 2:
      text += shape("warm_up", fmt::format("bytes = {:.0f}\n  over_s = {:.0f}", swing, draw.log_uniform(60, 1800)));
      scene.used_bytes += swing;
      break;
    case 3:
      text += shape("noise", fmt::format("sigma_bytes = {:.0f}", draw.log_uniform(1, 30) * kMiB));
      scene.used_bytes += 120 * kMiB;
      break;
    default:
      break;
  }
  scene.processes += text + shapes;
}

/// What the driver holds beside processes, in no list: a level, and what `shapes` adds.
void add_driver(Draw& draw, Scene& scene, const std::string& shapes = {}) {
  const double bytes = draw.log_uniform(20, 300) * kMiB;
  scene.processes += process("driver", kUnseen, "visible = false\non_oom = \"die\"\n");
  scene.processes += shape("constant", fmt::format("bytes = {:.0f}", bytes));
  if (draw.chance(0.5))
    scene.processes += shape("wander", fmt::format("sigma_bytes = {:.0f}\n  correlation_s = {:.0f}",
                                                   draw.log_uniform(1, 12) * kMiB, draw.log_uniform(30, 900)));
  scene.processes += shapes;
  scene.used_bytes += bytes;
}

enum class Jobs : std::uint8_t {
  any,    ///< each of its own form
  ramps,  ///< each begins with a ramp, of seconds to a quarter of an hour
  waves,  ///< more by day than by night
};

/// Jobs that come and go within `free_bytes`, all of one command.
void add_jobs(Draw& draw, Scene& scene, double free_bytes, Jobs kind) {
  const double lifetime_s = draw.log_uniform(draw.by_split(240.0, 150.0), draw.by_split(5400.0, 9000.0));
  const double at_once = draw.uniform(1, 6);
  const double every_s = std::max(lifetime_s / at_once, scene.duration_s / kMostJobs);
  const double smallest = 0.004 * scene.capacity_bytes;
  const double largest = std::max(2 * smallest, draw.uniform(0.1, 0.5) * free_bytes);
  const double wave_s = draw.log_uniform(3600, scene.duration_s);
  const double wave_at = draw.uniform(0, 1);
  Room room(scene.duration_s, free_bytes);
  std::uint32_t pid = 20000;
  for (double t = draw.random.exponential(every_s); t < scene.duration_s && pid < 20000 + kMostJobs;
       t += draw.random.exponential(every_s)) {
    const double lives_s = std::max(30.0, draw.random.exponential(lifetime_s));
    const double bytes = draw.log_uniform(smallest, largest);
    const double phase = std::fmod(t / wave_s + wave_at, 1.0);
    if (kind == Jobs::waves && draw.chance(phase < 0.5 ? 1 - 2 * phase : 2 * phase - 1)) continue;
    // The driver frees late, and jobs are sampled late: a little more than it is there for.
    if (!room.take(t, t + lives_s + 60, 1.05 * bytes)) continue;
    double settled = bytes;
    std::string shapes;
    if (kind == Jobs::ramps || draw.chance(0.4)) {
      const double ramp = bytes * draw.uniform(0.2, 0.8);
      settled -= ramp;
      const double over_s = std::min(draw.log_uniform(10, draw.by_split(900.0, 1500.0)), 0.5 * lives_s);
      shapes += shape("warm_up", fmt::format("bytes = {:.0f}\n  over_s = {:.0f}\n  form = \"{}\"\n  onset_s = 5", ramp,
                                             over_s, draw.pick({"linear", "linear", "exponential", "log"})));
    } else if (draw.chance(0.5)) {
      const double swing = bytes * draw.uniform(0.1, 0.6);
      settled -= swing;
      shapes += shape("sawtooth", fmt::format("amplitude_bytes = {:.0f}\n  period_s = {:.0f}\n  onset_s = 5", swing,
                                              draw.log_uniform(8, std::max(20.0, std::min(0.7 * lives_s, 900.0)))));
    }
    scene.processes += fmt::format(
        "\n[[process]]\nname = \"job{}\"\npid = {}\ncommand = \"python job.py --run {}\"\nuser = \"carl\"\n"
        "start_s = {:.1f}\nend_s = {:.1f}\n",
        pid - 20000, pid, pid - 20000, t, t + lives_s);
    ++pid;
    scene.processes += shape("load", fmt::format("bytes = {:.0f}\n  over_s = {:.1f}\n  shards = {}", settled,
                                                 draw.log_uniform(1, 40), draw.whole(1, 8)));
    scene.processes += shapes;
  }
}

void finish(Draw& draw, Trace& trace, const Scene& scene) {
  std::string text = fmt::format("name = \"{}\"\nseed = {}\nperiod_s = {}\nduration_s = {:.0f}\n", trace.family,
                                 trace.seed % 1000000007, scene.period_s, scene.duration_s);
  text += fmt::format("quantum_bytes = {:.0f}\n", 2 * kMiB);
  if (draw.chance(0.5)) text += fmt::format("jitter = {:.2f}\n", draw.uniform(0.02, 0.2));
  if (draw.chance(0.3)) text += fmt::format("drop = {:.3f}\n", draw.uniform(0.001, 0.03));
  text += fmt::format("\n[[device]]\nname = \"GPU\"\ncapacity_bytes = {:.0f}\nbaseline_bytes = {:.0f}\n",
                      scene.capacity_bytes, draw.uniform(200, 600) * kMiB);
  trace.capacity_bytes = scene.capacity_bytes;
  trace.toml = text + scene.processes;
  if (draw.chance(0.35)) {
    trace.processes = ProcessLog::apart;
    trace.process_every = draw.whole(1, draw.by_split(3, 5));
    trace.process_phase = draw.uniform(0, 0.9);
  }
}

double healthy_length(Draw& draw) {
  return draw.log_uniform(2 * 3600.0, draw.by_split(16 * 3600.0, 24 * 3600.0));
}

void healthy(Draw& draw, Trace& trace, Jobs kind) {
  Scene scene = set_scene(draw, healthy_length(draw));
  for (int i = 0, n = draw.whole(1, 2); i < n; ++i)
    add_server(draw, scene, fmt::format("server{}", i), kVictim + static_cast<std::uint32_t>(i),
               draw.uniform(0.1, 0.3));
  add_driver(draw, scene);
  add_jobs(draw, scene, 0.85 * (scene.capacity_bytes - scene.used_bytes), kind);
  finish(draw, trace, scene);
}

void churn(Draw& draw, Trace& trace) {
  healthy(draw, trace, Jobs::any);
}
void churn_of_ramps(Draw& draw, Trace& trace) {
  healthy(draw, trace, Jobs::ramps);
}
void churn_in_waves(Draw& draw, Trace& trace) {
  healthy(draw, trace, Jobs::waves);
}
/// The life of a leak of a scene, and where it begins.
struct Leak {
  double onset_s = 0;
  double life_s = 0;
};

Leak plan(Draw& draw) {
  Leak leak;
  leak.life_s = draw.log_uniform(draw.by_split(3600.0, 2700.0), draw.by_split(14.0, 20.0) * 3600);
  leak.onset_s = draw.chance(0.3) ? 120 : draw.log_uniform(600, std::max(1200.0, 0.5 * leak.life_s));
  return leak;
}

/// How it grows to `bytes` within its life.
std::string growth(Draw& draw, const Leak& leak, double bytes, double onset_s) {
  if (draw.chance(0.6))
    return shape("linear", fmt::format("rate_bytes_per_s = {:.1f}\n  onset_s = {:.0f}", bytes / leak.life_s, onset_s));
  const double steps = draw.whole(20, draw.by_split(60, 120));
  return shape("staircase",
               fmt::format("step_bytes = {:.0f}\n  every_s = {:.1f}\n  intervals = \"{}\"\n  onset_s = {:.0f}",
                           bytes / steps, leak.life_s / steps, draw.pick({"regular", "jittered", "random"}), onset_s));
}

void label(Trace& trace, const Leak& leak, double onset_s, std::uint32_t pid) {
  trace.label.leak = true;
  trace.label.pattern = Pattern::gradual_leak;
  trace.label.also = Pattern::step_increase;
  trace.label.onset_s = onset_s;
  trace.label.suspect_pid = pid;
  trace.label.suspect_is_seen = pid != kUnseen;
  trace.label.life_s = leak.life_s;
}

void leak_beside_churn(Draw& draw, Trace& trace) {
  const Leak leak = plan(draw);
  Scene scene = set_scene(draw, leak.onset_s + 1.2 * leak.life_s);
  add_driver(draw, scene);
  add_server(draw, scene, "other", 999, draw.uniform(0.05, 0.25));
  const double base = draw.uniform(0.05, 0.25);
  const double churned = draw.uniform(0.15, 0.45) * (1 - base) * (scene.capacity_bytes - scene.used_bytes);
  const double left = (1 - base) * scene.capacity_bytes - scene.used_bytes - churned;
  add_server(draw, scene, "server", kVictim, base, growth(draw, leak, 0.9 * left, leak.onset_s));
  add_jobs(draw, scene, churned, draw.pick({Jobs::any, Jobs::ramps, Jobs::waves}));
  label(trace, leak, leak.onset_s, kVictim);
  finish(draw, trace, scene);
}

/// The leaking program starts when the watch has been running for long, as one of the jobs.
void job_leaks(Draw& draw, Trace& trace) {
  const Leak leak = plan(draw);
  const double start_s = draw.log_uniform(600, 3 * 3600.0);
  Scene scene = set_scene(draw, start_s + leak.onset_s + 1.2 * leak.life_s);
  add_driver(draw, scene);
  add_server(draw, scene, "server", 999, draw.uniform(0.1, 0.35));
  const double free = scene.capacity_bytes - scene.used_bytes;
  const double churned = draw.uniform(0.15, 0.45) * free;
  const double base = draw.uniform(0.02, 0.1) * free;
  scene.processes += fmt::format(
      "\n[[process]]\nname = \"leaky\"\npid = {}\ncommand = \"python job.py --run 0\"\nuser = \"carl\"\nstart_s = "
      "{:.0f}\n",
      kVictim, start_s);
  scene.processes += shape("load", fmt::format("bytes = {:.0f}\n  over_s = {:.0f}", base, draw.log_uniform(1, 40)));
  scene.processes += growth(draw, leak, 0.95 * (free - churned - base), leak.onset_s);
  add_jobs(draw, scene, churned, draw.pick({Jobs::any, Jobs::ramps, Jobs::waves}));
  label(trace, leak, start_s + leak.onset_s, kVictim);
  finish(draw, trace, scene);
}

/// Growth outside every visible process, with `jobs` or under sawtooth neighbours.
void unseen(Draw& draw, Trace& trace, bool jobs) {
  const Leak leak = plan(draw);
  Scene scene = set_scene(draw, leak.onset_s + 1.2 * leak.life_s);
  for (int i = 0, n = jobs ? 1 : draw.whole(1, 3); i < n; ++i) {
    const double bytes = scene.capacity_bytes * draw.uniform(0.04, 0.1);
    const double swing = scene.capacity_bytes * draw.uniform(0.03, 0.12);
    scene.processes += process(fmt::format("batch{}", i), 3000 + static_cast<std::uint32_t>(i), "");
    scene.processes += shape("load", fmt::format("bytes = {:.0f}\n  over_s = 20", bytes));
    scene.processes +=
        shape("sawtooth", fmt::format("amplitude_bytes = {:.0f}\n  period_s = {:.0f}\n  period_spread "
                                      "= {:.2f}\n  amplitude_spread = {:.2f}\n  form = \"{}\"",
                                      swing, draw.log_uniform(20, draw.by_split(2400.0, 3600.0)), draw.uniform(0, 0.3),
                                      draw.uniform(0, 0.3), draw.pick({"ramp", "ramp", "triangle", "square"})));
    scene.used_bytes += bytes + 1.3 * swing;
  }
  const double free = scene.capacity_bytes - scene.used_bytes - 700 * kMiB;
  const double churned = jobs ? draw.uniform(0.15, 0.4) * free : 0;
  add_driver(draw, scene, growth(draw, leak, 0.95 * (free - churned), leak.onset_s));
  if (jobs) add_jobs(draw, scene, churned, draw.pick({Jobs::any, Jobs::ramps, Jobs::waves}));
  label(trace, leak, leak.onset_s, kUnseen);
  finish(draw, trace, scene);
}

void unseen_growth(Draw& draw, Trace& trace) {
  unseen(draw, trace, false);
}
void unseen_beside_churn(Draw& draw, Trace& trace) {
  unseen(draw, trace, true);
}

}  // namespace

std::span<const Family> part_families() {
  static constexpr std::array kFamilies{
      Family{"leak_beside_churn", "a server leaks beside jobs that come and go", true, false, leak_beside_churn,
             Group::parts},
      Family{"job_leaks", "one of the jobs leaks", true, false, job_leaks, Group::parts},
      Family{"unseen_growth", "the driver's side grows under sawtooth neighbours", true, false, unseen_growth,
             Group::parts},
      Family{"unseen_beside_churn", "the driver's side grows beside jobs that come and go", true, false,
             unseen_beside_churn, Group::parts},
      Family{"churn", "many small jobs beside servers", false, false, churn, Group::parts},
      Family{"churn_of_ramps", "the same; each job begins with a ramp", false, false, churn_of_ramps, Group::parts},
      Family{"churn_in_waves", "the same; more by day than by night", false, false, churn_in_waves, Group::parts},
  };
  return kFamilies;
}

}  // namespace vramtrack::accuracy
