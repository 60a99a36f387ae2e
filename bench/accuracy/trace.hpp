// What the accuracy bench runs on: labelled traces, made from a seed or from recordings, in two splits.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/verdict.hpp"
#include "source/sim/scenario.hpp"

namespace vramtrack::accuracy {

/// Thresholds are chosen on `tune` alone; `test` is run to publish. They share no recording and no run of a job, draw
/// their parameters from different ranges, and some families are in `test` only.
enum class Split : std::uint8_t { tune, test };

/// A device's used bytes over time.
struct Point {
  double t_s = 0;
  double used_bytes = 0;
};

/// Which table a trace belongs to.
enum class Group : std::uint8_t {
  usual,   ///< what the judge's author thought of
  work,    ///< leaks that grow with work or while idle, and in an allocator's segments
  days,    ///< four days and more
  others,  ///< written by somebody who had not read the judge
  ranks,   ///< jobs of eight ranks, each on its own device
  crash,   ///< the end of memory, and what follows
  parts,   ///< several programs on one card
  use,     ///< by kind of use: swaps, stairs, days, caches, curricula, warm-ups, tenants
  recorded,
};

/// What is so. Times are seconds since the trace began.
struct Label {
  bool leak = false;
  Pattern pattern = Pattern::none;
  /// A second pattern that is also right (a leak by requests is gradual from afar and steps from near).
  Pattern also = Pattern::none;
  double onset_s = 0;
  std::optional<double> growth_bytes_per_s;  ///< of a leak with a steady mean rate
  std::optional<std::uint32_t> suspect_pid;
  double life_s = 0;            ///< planned, from onset to the end of memory; used where the trace ends before
  bool suspect_is_seen = true;  ///< false: it is in no list of processes, and "no visible process" is right
  std::size_t device = 0;       ///< the position of the device that the trace is about
  bool on_all_devices = false;  ///< the others leak, too: an alert about one of them is right
};

/// How the processes of a simulated trace are reported.
enum class ProcessLog : std::uint8_t {
  same,   ///< at the instants of the device
  apart,  ///< by their own log: more rarely, and at other instants
  none,   ///< not at all
};

/// One trace. Either a scenario to be simulated or the points of a recording (with a leak added, perhaps).
struct Trace {
  std::string family;
  std::string source;  ///< "generated", or the recording it comes from
  std::uint64_t seed = 0;
  Group group = Group::usual;
  double capacity_bytes = 0;
  Label label;
  /// For a healthy one: the share of what was free that its longest straight rise takes. See beyond_half().
  double straight_share = 0;
  /// The leaking program starts again this long after the end of memory, and leaks again.
  std::optional<double> restart_after_s;
  std::string toml;  ///< for a generated one: a scenario anybody can play with `vramtrack simulate`
  ProcessLog processes = ProcessLog::same;
  int process_every = 1;                          ///< of their own log: one listing in so many ticks
  double process_phase = 0;                       ///< and this much of a period later
  std::shared_ptr<const sim::Scenario> scenario;  ///< played instead of `toml` where there is one
  bool alone = false;                             ///< of several devices, only that of the label is seen
  std::vector<Point> points;                      ///< of a recorded one
};

/// A healthy straight rise that takes more than half of what was free cannot be told from a leak by the time by which a
/// leak must be told, if the program was never seen before: such first runs are counted apart.
inline bool beyond_half(const Trace& trace) {
  return !trace.label.leak && trace.straight_share > 0.5;
}

}  // namespace vramtrack::accuracy
