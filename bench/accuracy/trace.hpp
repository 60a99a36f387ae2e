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

/// What is so. Times are seconds since the trace began.
struct Label {
  bool leak = false;
  Pattern pattern = Pattern::none;
  /// A second pattern that is also right (a leak by requests is gradual from afar and steps from near).
  Pattern also = Pattern::none;
  double onset_s = 0;
  std::optional<double> growth_bytes_per_s;  ///< of a leak with a steady mean rate
  std::optional<std::uint32_t> suspect_pid;
  double life_s = 0;  ///< planned, from onset to the end of memory; used where the trace ends before
};

/// One trace. Either a scenario to be simulated or the points of a recording (with a leak added, perhaps).
struct Trace {
  std::string family;
  std::string source;  ///< "generated", or the recording it comes from
  std::uint64_t seed = 0;
  bool apart = false;  ///< left out of the rates (Family::apart)
  double capacity_bytes = 0;
  Label label;
  std::string toml;           ///< of a generated one: a scenario anybody can play with `vramtrack simulate`
  std::vector<Point> points;  ///< of a recorded one
};

}  // namespace vramtrack::accuracy
