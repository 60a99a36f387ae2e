// The accuracy bench: how often vramtrack's verdict is right, beside the rules people use today (docs/ACCURACY.md).
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>

#include "core/settings.hpp"
#include "detect/detector.hpp"
#include "families.hpp"
#include "growths.hpp"
#include "must_show.hpp"
#include "recordings.hpp"
#include "stories.hpp"
#include "tables.hpp"

namespace vramtrack::accuracy {
namespace {

constexpr const char* kUsage =
    R"(accuracy: runs vramtrack and its rivals on labelled traces and prints the tables of docs/ACCURACY.md

  --split tune|test     which half of everything (tune)
  --seed N              of the generator (1)
  --sections LIST       of first,seen,ranks,parts,crash,use,runs,ends,forecast,growths,loads,
                        recordings (all)
  --per-family N        generated traces a family: first runs, crashes and kinds of use (20)
  --seen N              programs a family with earlier runs and siblings (6)
  --ranks N             jobs of eight ranks a family (10)
  --parts N             scenes of several programs a family (67)
  --loads N             loads of models a family (200)
  --runs N              recordings of several runs of each kind (200)
  --examples            with those, a line for each that is told wrongly; with growths, what moves in each
  --growths N           leaks a family, looked at each minute (12)
  --scenarios FOLDER    scenario files, of which the leaks are looked at each minute, too
  --ends N              leaks of each class, for the forecast of their ends (400)
  --family NAME         of the generated, this family alone
  --traces FOLDER       others' recordings
  --recordings FOLDER   this project's own recordings, among the first runs
  --set KEY=VALUE       a setting of vramtrack (detection.confidence-threshold=0.9)
  --no-rivals           vramtrack alone
  --each FILE           a line of tab-separated figures for every first run and recording
  --looks FILE          a line for every look at a verdict of the first runs
  --show FAMILY NUMBER  prints that trace's scenario and exits
  --story KIND NUMBER   prints that recording of several runs as nvidia-smi would, and exits
  --follow FAMILY|FILE NUMBER EVERY_S  prints the detector's word and its figures along that trace and exits
  --jobs N              threads (2)
)";

const std::set<std::string> kSections{"first", "seen", "ranks",    "parts",   "crash", "use",
                                      "runs",  "ends", "forecast", "growths", "loads", "recordings"};

struct Options {
  Split split = Split::tune;
  std::set<std::string> sections = kSections;
  std::uint64_t per_family = 20;
  std::uint64_t seed = 1;
  std::uint64_t seen = 6;
  std::uint64_t ranks = 10;
  std::uint64_t parts = 67;
  std::uint64_t loads = 200;
  std::uint64_t runs = 200;
  bool examples = false;
  std::uint64_t ends = 400;
  std::uint64_t growths = 12;
  std::string scenarios;
  std::string family;
  std::string traces;
  std::string recordings;
  std::string each;
  std::string looks;
  bool rivals = true;
  unsigned jobs = 2;
  Config config;
};

const Family& family_named(const std::string& name) {
  if (const Family* family = find_family(name)) return *family;
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
  const auto detector = find_detector(config.detection.detector)->make(config.detection, kSecondsAndBytes);
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

std::set<std::string> sections_of(const std::string& list) {
  std::set<std::string> sections;
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    if (!kSections.contains(word)) throw std::runtime_error("no section '" + word + "'");
    sections.insert(word);
  }
  return sections;
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
    } else if (arg == "--sections") {
      o.sections = sections_of(value(i));
    } else if (arg == "--seen") {
      o.seen = std::stoull(value(i));
    } else if (arg == "--ranks") {
      o.ranks = std::stoull(value(i));
    } else if (arg == "--loads") {
      o.loads = std::stoull(value(i));
    } else if (arg == "--runs") {
      o.runs = std::stoull(value(i));
    } else if (arg == "--examples") {
      o.examples = true;
    } else if (arg == "--ends") {
      o.ends = std::stoull(value(i));
    } else if (arg == "--growths") {
      o.growths = std::stoull(value(i));
    } else if (arg == "--scenarios") {
      o.scenarios = value(i);
    } else if (arg == "--parts") {
      o.parts = std::stoull(value(i));
    } else if (arg == "--family") {
      o.family = value(i);
    } else if (arg == "--traces") {
      o.traces = value(i);
    } else if (arg == "--recordings") {
      o.recordings = value(i);
    } else if (arg == "--each") {
      o.each = value(i);
    } else if (arg == "--looks") {
      o.looks = value(i);
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
    } else if (arg == "--story") {
      const std::string name = value(i);
      std::fputs(csv_of(story_named(name, o.split, o.seed, std::stoull(value(i)))).c_str(), stdout);
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

std::vector<Trace> generated(const Options& o, std::span<const Family> from, std::uint64_t per_family) {
  std::vector<Trace> traces;
  for (const Family& family : from) {
    if (!o.family.empty() && family.name != o.family) continue;
    if (family.test_only && o.split == Split::tune) continue;
    for (std::uint64_t i = 0; i < per_family; ++i) traces.push_back(make_trace(family, o.split, o.seed, i));
  }
  return traces;
}

/// `count` leaks of each class of ends_table(), spread over families of that class.
std::vector<Trace> leaks_for_ends(const Options& o, std::uint64_t count) {
  const std::vector<std::vector<std::string>> classes{
      {"linear", "from_start", "late"},
      {"requests", "under_bursts", "after_warm_up", "partial_release", "two_megabytes", "kept_graphs"},
      {"rising_sawtooth", "floor_only"},
      {"regular_stairs", "epoch_stairs", "random_stairs", "spike_part_stays", "best_models"},
      {"accelerating"},
  };
  std::vector<Trace> traces;
  for (const std::vector<std::string>& names : classes)
    for (std::uint64_t i = 0; i < count; ++i)
      // Beyond the numbers of the first runs.
      traces.push_back(make_trace(family_named(names[i % names.size()]), o.split, o.seed, 100000 + i));
  return traces;
}

void print(const std::string& heading, const std::string& text) {
  std::fputs(("## " + heading + "\n\n" + text + "\n").c_str(), stdout);
  std::fflush(stdout);
}

void first_runs(const Options& o, std::span<const RivalInfo> rivals, Everything& all) {
  std::vector<Trace> traces = generated(o, families(), o.per_family);
  if (!o.recordings.empty())
    for (Trace& trace : own_recordings(o.recordings, o.split)) traces.push_back(std::move(trace));
  all.first = run_all(traces, o.config, rivals, o.jobs);
  print("Generated traces, first run ever",
        contender_tables(all.first, rivals) + group_table(all.first) + family_table(all.first));
  print("The frontier", frontier_table(all.first));
  print("Calibration", reliability_table(all.first, false) + reliability_table(all.first, true));
  print("Several days", day_table(all.first));
  if (!o.each.empty()) std::ofstream(o.each) << each_line(all.first);
  if (!o.looks.empty()) std::ofstream(o.looks) << look_lines(all.first);
}

/// Leaks of which a growth is told at each minute.
void growths(const Options& o) {
  std::vector<Trace> traces = growing_traces(o.split, o.seed, o.growths);
  if (!o.family.empty()) std::erase_if(traces, [&](const Trace& trace) { return trace.family != o.family; });
  if (!o.scenarios.empty())
    for (Trace& trace : leaking_scenarios(o.scenarios)) traces.push_back(std::move(trace));
  if (!o.recordings.empty())
    for (const Split split : {Split::tune, Split::test})
      for (Trace& trace : own_recordings(o.recordings, split))
        if (trace.label.leak) traces.push_back(std::move(trace));
  print("One growth, looked at each minute", growths_table(traces, o.config, o.jobs, o.examples));
}

void several_programs(const Options& o, Everything& all) {
  std::vector<Trace> traces = generated(o, part_families(), o.parts);
  all.parts = run_all(traces, o.config, {}, o.jobs);
  for (Trace& trace : traces) trace.processes = ProcessLog::none;
  all.parts_total = run_all(traces, o.config, {}, o.jobs);
  print("Several programs on one card, with and without a log of processes", parts_table(all.parts, all.parts_total));
}

void recordings(const Options& o, std::span<const RivalInfo> rivals, Everything& all) {
  if (o.traces.empty()) return;
  const std::vector<Trace> healthy = recordings_of_others(o.traces, o.split);
  if (healthy.empty()) throw std::runtime_error("no recordings in " + o.traces);
  std::vector<Trace> traces = with_leaks(healthy, o.seed);
  traces.insert(traces.end(), healthy.begin(), healthy.end());
  all.recordings = run_all(traces, o.config, rivals, o.jobs);
  print("Recordings of others, and leaks added to them",
        contender_tables(all.recordings, rivals) + family_table(all.recordings));
  if (!o.each.empty()) std::ofstream(o.each, std::ios::app) << each_line(all.recordings);
}

int run(const Options& o) {
  const auto asked = [&](const char* section) { return o.sections.contains(section); };
  const auto rivals_now = o.rivals ? rivals() : std::span<const RivalInfo>{};
  fmt::print("# Accuracy: {} split, seed {}, {} a family\n\n", o.split == Split::tune ? "tune" : "test", o.seed,
             o.per_family);
  Everything all;
  if (asked("first")) first_runs(o, rivals_now, all);
  if (asked("recordings")) recordings(o, rivals_now, all);
  if (asked("seen")) {
    all.beside = run_beside(generated(o, families(), o.seen), o.config, o.jobs);
    print("Seen before, and with siblings", beside_table(all.beside) + beside_family_table(all.beside));
  }
  if (asked("ranks")) {
    all.ranks = run_ranks(generated(o, rank_families(), o.ranks), o.config, o.jobs);
    print("Jobs of eight ranks", rank_table(all.ranks));
  }
  if (asked("parts")) several_programs(o, all);
  if (asked("crash")) {
    all.crash = run_all(generated(o, crash_families(), o.per_family), o.config, {}, o.jobs);
    print("The end of memory, and what follows", crash_table(all.crash));
  }
  if (asked("use")) {
    const std::vector<Run> runs = run_all(generated(o, use_families(), o.per_family), o.config, rivals_now, o.jobs);
    print("By kind of use", contender_tables(runs, rivals_now) + family_table(runs));
    if (!o.each.empty()) std::ofstream(o.each, std::ios::app) << each_line(runs);
  }
  if (asked("loads"))
    print("Loads of models", loads_table(run_all(generated(o, load_families(), o.loads), o.config, {}, o.jobs)));
  if (asked("runs"))
    print("Recordings of several runs", stories_table(o.split, o.seed, o.runs, o.config, o.jobs, o.examples));
  if (asked("ends")) {
    all.ends = run_all(leaks_for_ends(o, o.ends), o.config, {}, o.jobs);
    print("The end, by fifths of life", ends_table(all.ends));
  }
  if (asked("growths")) growths(o);
  if (asked("forecast")) {
    all.forecast = measure_forecast(20, 1000, o.seed, o.config, o.jobs);
    print("The forecast along the demo and along lines", all.forecast->tables);
  }
  if (const std::string table = must_show_table(all); !table.empty()) print("Requirements and figures", table);
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
