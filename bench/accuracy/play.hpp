// Plays a trace to vramtrack's engine and to a rival, and notes what each said and when.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "past.hpp"
#include "rivals.hpp"
#include "trace.hpp"

namespace vramtrack::accuracy {

/// A stretch of alarm.
struct Alarm {
  double raised_s = 0;
  double cleared_s = 0;  ///< the end of the trace where it stood until then
};

/// What was said of the end at one point of a leak's life.
struct EndForetold {
  double true_in_s = 0;
  std::optional<Interval> said;
};

/// One look at the verdict.
struct Look {
  double confidence = 0;
  bool leaking = false;  ///< in truth, at that time
  bool rising = false;   ///< the verdict was growing, leaking or slow_growth
};

/// Bars of the confidence at which an alert might be raised: the frontier.
inline constexpr std::array kBars{0.30, 0.50, 0.60, 0.70, 0.75, 0.80, 0.83, 0.86, 0.90, 0.93, 0.95, 0.97, 0.98, 0.99};

/// When the confidence first reached a bar.
struct Reached {
  bool while_healthy = false;
  std::optional<double> leaking_s;
};

/// The middle of each fifth of a leak's life.
inline constexpr std::array kLifeShares{0.1, 0.3, 0.5, 0.7, 0.9};

/// What happened to one contender on one trace.
struct Outcome {
  std::vector<Alarm> alarms;  ///< of which people are notified
  // vramtrack only, whether or not anybody was notified:
  std::vector<Alarm> told;        ///< while it was told as a leak
  std::vector<Alarm> suspicions;  ///< from the suspicion on
  int told_elsewhere = 0;         ///< as false_elsewhere
  bool slow_growth = false;  ///< likewise: the last look at the leak said so, and that its end is beyond the horizon
  int false_elsewhere = 0;   ///< alarms about a device that does not leak
  double seconds_spent = 0;  ///< of this machine, in the contender's own code
  // vramtrack only:
  std::array<std::optional<EndForetold>, kLifeShares.size()> ends;
  std::vector<Look> looks;
  std::array<Reached, kBars.size()> bars;
  std::optional<Pattern> pattern;  ///< of the last alarming look
  std::optional<double> growth_bytes_per_s;
  std::optional<bool> suspect_right;  ///< at the first raise after onset, where processes are seen
  std::string because;                ///< of the first alarm
  double highest_confidence = 0;      ///< of the looks after onset of a leak; of all of a healthy trace
};

/// From where a program leaks to where that ended it.
struct Life {
  double onset_s = 0;
  double end_s = 0;
};

/// A trace as it went.
struct Played {
  std::vector<Point> points;  ///< of the device the trace is about, up to out-of-memory
  double end_s = 0;
  std::optional<double> oom_s;  ///< when the leaking program died of it
  std::vector<Life> lives;      ///< of a program that starts again after that
  Outcome ours;
};

/// Deterministic except for seconds_spent. `past`: what a watch knew when it began; it remembers on from there. Throws
/// std::runtime_error on a scenario that does not parse.
Played play(const Trace& trace, const Config& config, const Past& past = {});
Outcome play_rival(const RivalInfo& rival, const Trace& trace, const std::vector<Point>& points);

/// When the leak began; the end of the trace for a healthy one.
inline double healthy_until_s(const Trace& trace, const Played& played) {
  return trace.label.leak ? trace.label.onset_s : played.end_s;
}

}  // namespace vramtrack::accuracy
