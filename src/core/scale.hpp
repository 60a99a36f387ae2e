// What the figures of a recording count if it has no clock, no dates or no unit, and how people read them.
#pragma once

#include <cstdint>
#include <string>

#include "core/time.hpp"

namespace vramtrack {

struct Interval;

/// How the times and amounts of a recording are expressed. By default they are what they seem: seconds and bytes.
///
/// A log that counts steps does not show how long a step takes. Its samples are placed `step_s` apart on the time axis,
/// so that everything below the reports works on one axis, and every figure for people or programs is converted back:
/// growth is per step, ends are in steps, and no figure per minute is invented.
///
/// A source sets Catalog::scale; the View, the period report and whatever else shows a recording carry it. What
/// is recorded is written with the functions below, anything else with those of core/format.hpp
/// (tests/unit/core/scale_test.cpp keeps the two apart).
struct Scale {
  std::string step;             ///< what is counted instead of time: "step", "request"; empty: it is time
  double step_s = 1;            ///< seconds of the time axis per count; any positive number, not a measurement
  bool is_time_of_day = false;  ///< times are not dates, but times of day
  double begins_s = 0;          ///< with is_time_of_day: seconds from a midnight to the start of the time axis
  bool has_unit = true;         ///< false: nothing says in which unit amounts are, and two units are possible
  double unit_bytes = 1;        ///< without a unit: the number of bytes assumed for 1 of the log's figures
  friend bool operator==(const Scale&, const Scale&) = default;

  [[nodiscard]] bool counts_steps() const { return !step.empty(); }

  // The functions of core/format.hpp with these names, where "12.3 GiB" may be "12300.0 (unit unknown)", "+1.2 MiB/min"
  // "+1.2 MiB/step", and "1h 05m" "65 steps". Pure.
  [[nodiscard]] std::string bytes(double bytes) const;
  [[nodiscard]] std::string bytes(std::uint64_t bytes) const { return this->bytes(static_cast<double>(bytes)); }
  [[nodiscard]] std::string bytes_of(double used_bytes, double capacity_bytes) const;
  [[nodiscard]] std::string rate(double bytes_per_s) const;
  [[nodiscard]] std::string rate(const Interval& bytes_per_s) const;
  [[nodiscard]] std::string scaled_rate(double bytes_per_s) const;
  [[nodiscard]] std::string duration(double seconds) const;
  [[nodiscard]] std::string span(double seconds) const;
  [[nodiscard]] std::string eta(const Interval& seconds) const;
  [[nodiscard]] std::string oom(const Interval& seconds) const;
  /// "13:25:50" for a time of day; "step 1,200".
  [[nodiscard]] std::string moment(Timestamp time, bool clock_is_relative) const;
};

/// Of live data, dated recordings and all that is not recorded. Never destroyed before its last use in main().
inline const Scale kSecondsAndBytes{};

}  // namespace vramtrack
