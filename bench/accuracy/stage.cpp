#include "stage.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace vramtrack::accuracy {
namespace {

/// How the program's memory varies while it works. Returns its peak above the base.
double add_work(Draw& draw, Stage& stage) {
  const double room = stage.capacity_bytes;
  switch (draw.whole(0, 5)) {
    case 0:
      return 0;
    case 1: {
      const double sigma = draw.log_uniform(1, 40) * kMiB;
      stage.shape("noise", fmt::format("sigma_bytes = {:.0f}", sigma));
      return 4 * sigma;
    }
    case 2: {  // batches
      stage.swings = true;
      const double amplitude = room * draw.log_uniform(0.005, 0.08);
      stage.shape("sawtooth", fmt::format("amplitude_bytes = {:.0f}\nperiod_s = {:.1f}\nperiod_spread = {:.2f}\n"
                                          "amplitude_spread = {:.2f}",
                                          amplitude, draw.log_uniform(5, draw.by_split(300.0, 600.0)),
                                          draw.uniform(0, 0.3), draw.uniform(0, 0.3)));
      return 1.3 * amplitude;
    }
    case 3: {  // evaluation
      stage.swings = true;
      const double bytes = room * draw.log_uniform(0.01, 0.1);
      const double every_s = draw.log_uniform(120, 2400);
      stage.shape("evaluation", fmt::format("bytes = {:.0f}\nevery_s = {:.0f}\nlasts_s = {:.0f}\nspread = {:.2f}",
                                            bytes, every_s, every_s * draw.uniform(0.05, 0.25), draw.uniform(0, 0.2)));
      return 1.2 * bytes;
    }
    case 4: {  // requests in flight
      stage.swings = true;
      const double request_bytes = room * draw.log_uniform(0.001, 0.01);
      stage.shape("serving",
                  fmt::format("request_bytes = {:.0f}\nrequests_per_s = {:.3f}\nservice_s = {:.1f}\nmax_requests = 8",
                              request_bytes, draw.log_uniform(0.1, 2), draw.log_uniform(0.5, 4)));
      return 8 * request_bytes;
    }
    default: {  // mean-reverting
      const double sigma = room * draw.log_uniform(0.001, 0.01);
      stage.shape("wander", fmt::format("sigma_bytes = {:.0f}\ncorrelation_s = {:.0f}", sigma,
                                        draw.log_uniform(20, draw.by_split(600.0, 1500.0))));
      return 4 * sigma;
    }
  }
}

/// Another program of the card. Returns its peak.
double add_neighbour(Draw& draw, Stage& stage, int number) {
  const double bytes = stage.capacity_bytes * draw.uniform(0.03, 0.12);
  std::string text = fmt::format(
      "\n[[process]]\nname = \"neighbour{}\"\ncommand = \"python serve_{}.py\"\nuser = \"bob\"\n", number, number);
  if (draw.chance(0.3)) text += fmt::format("start_s = {:.0f}\n", draw.uniform(0, stage.duration_s));
  text += fmt::format("  [[process.shape]]\n  kind = \"load\"\n  bytes = {:.0f}\n  over_s = {:.0f}\n  shards = 4\n",
                      bytes, draw.log_uniform(5, 60));
  double peak = bytes;
  if (draw.chance(0.6)) {
    text += fmt::format(
        "  [[process.shape]]\n  kind = \"sawtooth\"\n  amplitude_bytes = {:.0f}\n  period_s = {:.0f}\n"
        "  period_spread = 0.2\n",
        0.2 * bytes, draw.log_uniform(10, 300));
    peak += 0.2 * bytes;
  }
  stage.tail += text;
  return peak;
}

}  // namespace

void Stage::shape(const std::string& kind, const std::string& keys) {
  shapes += fmt::format("  [[process.shape]]\n  kind = \"{}\"\n", kind);
  std::size_t from = 0;
  while (from < keys.size()) {
    const std::size_t to = std::min(keys.find('\n', from), keys.size());
    shapes += "  " + keys.substr(from, to - from) + "\n";
    from = to + 1;
  }
}

Stage set_stage(Draw& draw, double duration_s, bool quiet) {
  Stage stage;
  stage.duration_s = duration_s;
  stage.capacity_bytes =
      kGiB * draw.by_split(draw.pick({16.0, 24.0, 48.0, 80.0}), draw.pick({8.0, 12.0, 32.0, 40.0, 94.0, 141.0, 192.0}));
  stage.period_s = draw.by_split(draw.pick({1.0, 5.0, 15.0, 30.0}), draw.pick({1.0, 2.0, 10.0, 20.0, 60.0}));
  // A sampling that somebody would use for a trace of this length.
  while (duration_s / stage.period_s > 20000) stage.period_s *= 2;
  while (duration_s / stage.period_s < 300 && stage.period_s > 1) stage.period_s = std::max(1.0, stage.period_s / 2);

  const double baseline = draw.uniform(200, 700) * kMiB;
  stage.device = fmt::format("[[device]]\nname = \"GPU\"\ncapacity_bytes = {:.0f}\nbaseline_bytes = {:.0f}\n",
                             stage.capacity_bytes, baseline);
  stage.base_bytes = stage.capacity_bytes * draw.uniform(0.08, 0.4);
  stage.load_s = draw.log_uniform(5, draw.by_split(60.0, 150.0));
  stage.shape("load", fmt::format("bytes = {:.0f}\nover_s = {:.0f}\nshards = {}", stage.base_bytes, stage.load_s,
                                  draw.whole(1, 16)));
  double used = baseline + stage.base_bytes;
  if (!quiet) used += add_work(draw, stage);
  if (draw.chance(0.5))
    for (int i = 0, n = draw.whole(1, 3); i < n; ++i) used += add_neighbour(draw, stage, i + 1);
  stage.free_bytes = stage.capacity_bytes - used;
  return stage;
}

Stage roomy_stage(Draw& draw, double duration_s, bool quiet, double least_free) {
  for (;;) {
    Stage stage = set_stage(draw, duration_s, quiet);
    if (stage.free_bytes >= least_free * stage.capacity_bytes) return stage;
  }
}

std::string write_scenario(Draw& draw, const Stage& stage, std::uint64_t seed, const std::string& name) {
  std::string text = fmt::format("name = \"{}\"\nseed = {}\nperiod_s = {}\nduration_s = {:.0f}\n", name,
                                 seed % 1000000007, stage.period_s, stage.duration_s);
  text += fmt::format("quantum_bytes = {:.0f}\n", draw.pick({1.0, 2.0, 2.0, 20.0}) * kMiB);
  if (draw.chance(0.7)) text += fmt::format("jitter = {:.2f}\n", draw.uniform(0.02, 0.2));
  if (draw.chance(0.5)) text += fmt::format("drop = {:.3f}\n", draw.uniform(0.001, 0.04));
  if (draw.chance(0.3)) text += fmt::format("duplicate = {:.3f}\n", draw.uniform(0.001, 0.03));
  if (draw.chance(0.3)) text += "stamp_resolution_s = 1\n";
  if (draw.chance(0.3))
    text += fmt::format("gaps_per_s = {:.8f}\ngap_s = {:.0f}\n", draw.uniform(0.5, 3) / stage.duration_s,
                        draw.log_uniform(30, 0.01 * stage.duration_s + 60));
  text += "\n" + stage.device;
  text += fmt::format("\n[[process]]\nname = \"trainer\"\npid = {}\ncommand = \"{}\"\nuser = \"ada\"\n{}", kVictim,
                      stage.command, stage.program_keys);
  return text + stage.shapes + stage.tail;
}

}  // namespace vramtrack::accuracy
