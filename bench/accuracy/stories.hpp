// Recordings of several runs: programs that run out of memory and are started again, healthy programs that load in
// stages and stand still, leaks of a later run, and falls that are not ends.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "draw.hpp"
#include "trace.hpp"

namespace vramtrack::accuracy {

/// A run as it was. Times are seconds since the recording began.
struct StoryRun {
  double begin_s = 0;          ///< its first sample
  double end_s = 0;            ///< its last
  std::optional<EndKind> how;  ///< nullopt: the recording ends first
  bool leaks = false;
  double onset_s = 0;  ///< of a leak; of a healthy run, when it last grew
  /// For a load in stages: how long after its last growth an alert may stand. The largest of ten minutes, twice the
  /// usual pause between two stages, and half the time that the load took.
  double withdrawn_in_s = 0;
};

/// One recording of one card, sampled at equal intervals.
struct Story {
  double capacity_bytes = 0;
  bool capacity_is_known = true;
  double period_s = 0;
  std::vector<Point> points;           ///< of the device
  std::vector<StoryRun> runs;          ///< none: nothing ends
  std::vector<double> reported_end_s;  ///< of the runs whose end the log reports
  /// The memory of the process of each run, and of each tenant; empty where no process is listed.
  struct Listed {
    std::uint32_t pid = 0;
    std::string command;
    std::vector<Point> points;
  };
  std::vector<Listed> processes;
};

/// One to six runs of a program. All but the last run out of memory, `idle_samples` before the next one starts, beside
/// `tenants` programs that hold what they hold. The last leaks, is healthy, or runs out of memory, too.
Story crash_story(Draw& draw, int runs, int idle_samples, int tenants, bool listed);

/// Two to four runs of a program that leaks and is killed when it has 45 to 85 % of the card; the next one is there
/// within a sample, and the last continues. No process is listed. `reported`: the log has a line about each end.
Story killed_story(Draw& draw, bool reported);

/// A server that swaps its models, each of which fills a cache to its bound.
Story refilled_story(Draw& draw);

/// A healthy program whose memory falls: a sawtooth, evaluations, checkpoints, models that are swapped.
Story no_end_story(Draw& draw);

/// How a last run comes: at once, after an hour in which the card is idle, or after healthy runs.
struct Before {
  int runs = 0;
  bool idle = false;
};

/// A healthy program that loads in three to five stages of two to 25 minutes and then stands still for four hours.
/// `ramps`: the share of the stages in which memory rises for a while; in the others it jumps.
Story staged_story(Draw& draw, Before before, double ramps);

/// A program that loads and leaks. The last run is the same whatever was before it.
Story leak_story(Draw& draw, Before before);

/// As `nvidia-smi --query-gpu=timestamp,index,memory.used,memory.total --format=csv` writes it.
std::string csv_of(const Story& story);

/// The tables: stories, staged loads, leaks of later runs; `each` of every kind. `examples`: with a line for each that
/// is reported wrongly.
std::string stories_table(Split split, std::uint64_t seed, std::uint64_t each, const Config& config, unsigned jobs,
                          bool examples);

/// The recording with this name and number: "crash", "crash_listed", "killed", "killed_reported", "falls", "refilled",
/// "staged", "staged_idle", "staged_later", "ramped", "ramped_idle", "ramped_later", "leak", "leak_second" or
/// "leak_third". Throws std::runtime_error on another name.
Story story_named(const std::string& name, Split split, std::uint64_t seed, std::uint64_t number);

}  // namespace vramtrack::accuracy
