// From outcomes to figures. Every rate is over traces of one kind; families weigh by their number of traces.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "play.hpp"

namespace vramtrack::accuracy {

/// What is counted of vramtrack on one trace: that it notified people, that it told a leak, that it suspected one.
enum class Mark : std::uint8_t { paged, told, suspected };
inline constexpr std::array kMarks{Mark::paged, Mark::told, Mark::suspected};

/// One contender on one trace, as the tables need it.
struct Scored {
  const Trace* trace = nullptr;
  double healthy_s = 0;    ///< watched without a leak
  int false_episodes = 0;  ///< alarms raised while nothing leaked; raises within an hour of an alarm's end are one
  bool detected = false;   ///< some alarm stood between onset and the end of memory
  bool slow = false;       ///< not detected, and reported as slow growth
  bool before_half = false;
  bool due = false;    ///< for a leak: the trace reaches the time by which people must be notified
  double delay_s = 0;  ///< from onset to the first alarm that counts
  double life_s = 0;   ///< onset to the end of memory, as it came or was planned
  double limit_s = 0;  ///< the larger of 5 % of life, 5 minutes and 20 samples
};

Scored score(const Trace& trace, const Played& played, const Outcome& outcome);
Scored score(const Trace& trace, const Played& played, Mark mark);

/// An interval for a Poisson rate: `count` events in `days`, 95 % (Garwood 1936).
Interval poisson_rate(int count, double days);

double quantile(std::vector<double> values, double q);

struct Summary {
  int leaks = 0;
  int detected = 0;
  int due = 0;  ///< leaks whose end is near before the trace is over: nobody need be notified of the others
  int due_detected = 0;
  int slow = 0;  ///< leaks reported as slow growth, without an alert
  int healthy = 0;
  int alarmed = 0;  ///< healthy traces with any alarm, withdrawn or not
  double healthy_days = 0;
  int episodes = 0;
  std::vector<double> delay_s;
  std::vector<double> delay_share;
  std::vector<double> delay_over_limit;
  int late = 0;  ///< leaks of more than 1 % of capacity an hour, not found in the first half of their life
  int fast = 0;  ///< leaks of more than 1 % of capacity an hour

  [[nodiscard]] double recall() const;
  [[nodiscard]] double due_recall() const;
  [[nodiscard]] double false_rate() const;  ///< share of healthy traces with an alarm
  /// With `healthy_per_leak` healthy traces to each leaking one.
  [[nodiscard]] double precision(double healthy_per_leak) const;
  [[nodiscard]] double f1() const;
  /// Precision and recall of the leaks that are due.
  [[nodiscard]] double due_f1() const;
};

Summary summarise(const std::vector<Scored>& scored);

}  // namespace vramtrack::accuracy
