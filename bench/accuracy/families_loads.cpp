// Families of loads: a model that fills 50 to 90 % of a card within 1 to 30 minutes, straight or in stages, and then
// works. Each is seen by its curve alone, with the device's busy share (the column of a log), or with what its process
// reads.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/units.hpp"
#include "families.hpp"
#include "families_tables.hpp"

namespace vramtrack::accuracy {
namespace {

constexpr double kGiB = 1024 * kMiB;
constexpr double kShortest_s = 60;
constexpr double kLongest_s = 30 * 60;

enum class Known : std::uint8_t { curve, busy, reads };

/// Idle, the load, and then an hour of work.
void load(Draw& draw, Trace& trace, Known known, bool in_stages) {
  const double capacity = draw.pick({24.0, 48.0, 80.0, 141.0}) * kGiB;
  const double bytes = capacity * draw.uniform(0.5, 0.9);
  const double load_s = draw.log_uniform(kShortest_s, kLongest_s);
  const double begin_s = draw.uniform(60, draw.by_split(600.0, 3600.0));
  const double period_s = draw.pick({1.0, 5.0, 15.0, 30.0});
  std::string shapes = fmt::format("[[process.shape]]\nkind = \"constant\"\nbytes = {:.0f}\n", 0.4 * kGiB);
  const int stages = in_stages ? draw.whole(2, 6) : 1;
  // Stages take most of the time, pauses the rest; no stage is shorter than a fifth of the longest.
  const double pause_share = in_stages ? draw.uniform(0.1, 0.4) : 0;
  std::array<double, 6> parts{};
  double sum = 0;
  for (int i = 0; i < stages; ++i) sum += parts[static_cast<std::size_t>(i)] = draw.uniform(0.2, 1);
  double at_s = 0;
  for (int i = 0; i < stages; ++i) {
    const double share = parts[static_cast<std::size_t>(i)] / sum;
    const double over_s = share * load_s * (1 - pause_share);
    shapes += fmt::format(
        "[[process.shape]]\nkind = \"warm_up\"\nbytes = {:.0f}\nover_s = {:.1f}\nform = \"linear\"\nonset_s = {:.1f}\n",
        share * bytes, over_s, at_s);
    at_s += over_s + (i + 1 < stages ? load_s * pause_share / (stages - 1) : 0);
  }
  shapes += fmt::format("[[process.shape]]\nkind = \"noise\"\nsigma_bytes = {:.0f}\nonset_s = {:.1f}\n",
                        draw.log_uniform(1, 40) * kMiB, load_s);
  std::string facts;
  if (known == Known::busy)
    facts = fmt::format("busy = {:.2f}\nworks_after_s = {:.1f}\n", draw.uniform(0.6, 0.99), load_s);
  if (known == Known::reads)
    facts = fmt::format("read_share = {:.2f}\nworks_after_s = {:.1f}\nreads_per_s = {:.0f}\n", draw.uniform(0.7, 1.6),
                        load_s, draw.log_uniform(0.01, 100) * kMiB);
  trace.capacity_bytes = capacity;
  trace.label.life_s = load_s;
  trace.processes = known == Known::reads ? ProcessLog::same : ProcessLog::none;
  trace.toml = fmt::format(
      "name = \"{}\"\nseed = {}\nperiod_s = {}\nduration_s = {:.0f}\n\n[[device]]\nname = \"card\"\n"
      "capacity_bytes = {:.0f}\nbaseline_bytes = {:.0f}\n\n[[process]]\nname = \"model\"\npid = 4242\n"
      "command = \"python app.py\"\nstart_s = {:.1f}\n{}{}",
      trace.family, trace.seed % 1'000'000'000, period_s, begin_s + load_s + 3600, capacity,
      draw.uniform(0, 0.6) * kGiB, begin_s, facts, shapes);
}

void ramp_curve(Draw& draw, Trace& trace) {
  load(draw, trace, Known::curve, false);
}
void ramp_busy(Draw& draw, Trace& trace) {
  load(draw, trace, Known::busy, false);
}
void ramp_reads(Draw& draw, Trace& trace) {
  load(draw, trace, Known::reads, false);
}
void stages_curve(Draw& draw, Trace& trace) {
  load(draw, trace, Known::curve, true);
}
void stages_busy(Draw& draw, Trace& trace) {
  load(draw, trace, Known::busy, true);
}
void stages_reads(Draw& draw, Trace& trace) {
  load(draw, trace, Known::reads, true);
}

constexpr std::array kLoads{
    Family{"load_ramp_curve", "a straight load of 1 to 30 min; the device's curve alone", false, false, ramp_curve},
    Family{"load_ramp_busy", "the same; the log tells how busy the GPU is", false, false, ramp_busy},
    Family{"load_ramp_reads", "the same; it is known what the process reads", false, false, ramp_reads},
    Family{"load_stages_curve", "a load in stages; the device's curve alone", false, false, stages_curve},
    Family{"load_stages_busy", "the same; the log tells how busy the GPU is", false, false, stages_busy},
    Family{"load_stages_reads", "the same; it is known what the process reads", false, false, stages_reads},
};

}  // namespace

std::span<const Family> load_families() {
  return kLoads;
}

}  // namespace vramtrack::accuracy
