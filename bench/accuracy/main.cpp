// The accuracy bench: how often vramtrack's verdict is right, beside the rules people use today (docs/ACCURACY.md).
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>

#include "bench.hpp"
#include "core/settings.hpp"
#include "detect/detector.hpp"
#include "families.hpp"
#include "recordings.hpp"
#include "tables.hpp"

namespace vramtrack::accuracy {
namespace {

constexpr const char* kUsage =
    R"(accuracy: runs vramtrack and its rivals on labelled traces and prints the tables of docs/ACCURACY.md

  --split tune|test     which half of everything (tune)
  --per-family N        generated traces a family (20)
  --seed N              of the generator (1)
  --family NAME         of the generated, this family alone
  --traces FOLDER       others' recordings, as a second part
  --recordings FOLDER   this project's own recordings, as part of the first
  --set KEY=VALUE       a setting of vramtrack (detection.confidence-threshold=0.9)
  --no-rivals           vramtrack alone
  --each FILE           a line of tab-separated figures for every trace
  --show FAMILY NUMBER  prints that trace's scenario and exits
  --follow FAMILY|FILE NUMBER EVERY_S  prints the detector's word and its figures along that trace and exits
  --jobs N              threads (2)
)";

struct Options {
  Split split = Split::tune;
  std::uint64_t per_family = 20;
  std::uint64_t seed = 1;
  std::string family;
  std::string traces;
  std::string recordings;
  std::string each;
  bool rivals = true;
  unsigned jobs = 2;
  Config config;
};

const Family& family_named(const std::string& name) {
  for (const Family& family : families())
    if (family.name == name) return family;
  throw std::runtime_error("no family '" + name + "'");
}

/// A scenario file, a generated one, or where `family` is of the recordings of --traces, the `number`-th of those.
Trace find_trace(const Options& o, const std::string& family, std::uint64_t number) {
  if (std::ifstream file(family); file) {
    Trace trace;
    trace.family = family;
    trace.toml.assign(std::istreambuf_iterator<char>(file), {});
    if (const auto scenario = sim::parse_scenario(trace.toml, family); scenario && !scenario->devices.empty())
      trace.capacity_bytes = static_cast<double>(scenario->devices[0].capacity_bytes);
    return trace;
  }
  if (o.traces.empty()) return make_trace(family_named(family), o.split, o.seed, number);
  const std::vector<Trace> healthy = recordings_of_others(o.traces, o.split);
  for (const auto& traces : {with_leaks(healthy, o.seed), healthy})
    for (const Trace& trace : traces)
      if (trace.family == family && number-- == 0) return trace;
  throw std::runtime_error("no such recording");
}

/// What the detector alone says of the device's series, with every gate.
void follow(const Trace& trace, const Config& config, double every_s) {
  const Played played = play(trace, config);
  const auto detector = find_detector(config.detection.detector)->make(config.detection);
  detector->set_limit(trace.capacity_bytes);
  double next_s = every_s;
  for (const Point& p : played.points) {
    detector->observe(Timestamp{from_seconds(p.t_s)}, p.used_bytes);
    if (p.t_s < next_s) continue;
    next_s = p.t_s + every_s;
    const Finding f = detector->finding();
    fmt::print("{:7.1f} min {:9.0f} MiB {} {:.3f} {} {}\n", p.t_s / 60, p.used_bytes / 1048576, to_string(f.state),
               f.confidence, detector->alerting() ? "ALARM" : "-", f.because);
    for (const std::string& line : detector->explain()) fmt::print("            {}\n", line);
  }
}

Options parse(int argc, char** argv) {
  Options o;
  LayeredConfig settings;
  const auto value = [&](int& i) -> std::string {
    if (i + 1 >= argc) throw std::runtime_error(std::string(argv[i]) + " needs a value");
    return argv[++i];
  };
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--split") {
      const std::string split = value(i);
      if (split != "tune" && split != "test") throw std::runtime_error("--split is tune or test, not " + split);
      o.split = split == "test" ? Split::test : Split::tune;
    } else if (arg == "--per-family") {
      o.per_family = std::stoull(value(i));
    } else if (arg == "--seed") {
      o.seed = std::stoull(value(i));
    } else if (arg == "--family") {
      o.family = value(i);
    } else if (arg == "--traces") {
      o.traces = value(i);
    } else if (arg == "--recordings") {
      o.recordings = value(i);
    } else if (arg == "--each") {
      o.each = value(i);
    } else if (arg == "--no-rivals") {
      o.rivals = false;
    } else if (arg == "--jobs") {
      o.jobs = static_cast<unsigned>(std::stoul(value(i)));
    } else if (arg == "--set") {
      if (const Status set = settings.apply_assignment(value(i), "--set"); !set)
        throw std::runtime_error(set.error().message);
    } else if (arg == "--show") {
      const std::string name = value(i);
      std::fputs(make_trace(family_named(name), o.split, o.seed, std::stoull(value(i))).toml.c_str(), stdout);
      std::exit(0);
    } else if (arg == "--follow") {
      const std::string name = value(i);
      const Trace trace = find_trace(o, name, std::stoull(value(i)));
      follow(trace, settings.config(), std::stod(value(i)));
      std::exit(0);
    } else {
      std::fputs(kUsage, arg == "--help" ? stdout : stderr);
      std::exit(arg == "--help" ? 0 : 2);
    }
  }
  o.config = settings.config();
  return o;
}

std::vector<Trace> generated(const Options& o) {
  std::vector<Trace> traces;
  for (const Family& family : families()) {
    if (!o.family.empty() && family.name != o.family) continue;
    if (family.test_only && o.split == Split::tune) continue;
    for (std::uint64_t i = 0; i < o.per_family; ++i) traces.push_back(make_trace(family, o.split, o.seed, i));
  }
  return traces;
}

int run(const Options& o) {
  std::vector<Trace> first = generated(o);
  if (!o.recordings.empty())
    for (Trace& trace : own_recordings(o.recordings, o.split)) first.push_back(std::move(trace));
  const auto rivals_now = o.rivals ? rivals() : std::span<const RivalInfo>{};
  const char* split = o.split == Split::tune ? "tune" : "test";
  const std::vector<Run> runs = run_all(first, o.config, rivals_now, o.jobs);
  std::fputs(
      fmt::format("## Generated traces ({} split, seed {}, {} a family)\n\n", split, o.seed, o.per_family).c_str(),
      stdout);
  std::fputs(tables(runs, rivals_now).c_str(), stdout);
  if (!o.each.empty()) std::ofstream(o.each) << each_line(runs);
  if (!o.traces.empty()) {
    const std::vector<Trace> healthy = recordings_of_others(o.traces, o.split);
    if (healthy.empty()) throw std::runtime_error("no recordings in " + o.traces);
    std::vector<Trace> second = with_leaks(healthy, o.seed);
    second.insert(second.end(), healthy.begin(), healthy.end());
    const std::vector<Run> real = run_all(second, o.config, rivals_now, o.jobs);
    std::fputs(fmt::format("\n## Recordings of others, and leaks added to them ({} split)\n\n", split).c_str(), stdout);
    std::fputs(tables(real, rivals_now).c_str(), stdout);
    if (!o.each.empty()) std::ofstream(o.each, std::ios::app) << each_line(real);
  }
  return 0;
}

}  // namespace
}  // namespace vramtrack::accuracy

int main(int argc, char** argv) {
  try {
    return vramtrack::accuracy::run(vramtrack::accuracy::parse(argc, argv));
  } catch (const std::exception& e) {
    fmt::print(stderr, "accuracy: {}\n", e.what());
    return 2;
  }
}
