// The units of a recording without a clock, without dates or without amounts in bytes, and how people read its figures.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/time.hpp"

namespace vramtrack {

struct Interval;

/// The unit of a recording's amounts.
enum class AmountUnit : std::uint8_t {
  bytes,
  unknown,  ///< two units are possible, and nothing shows which one applies
  percent,  ///< of a GPU's memory, whose size is unknown
};

/// How the times and amounts of a recording are expressed. By default they are what they seem: seconds and bytes.
///
/// A log that counts steps does not show how long a step takes. Its samples are placed `step_s` apart on the time axis,
/// so that everything below the reports works on one axis, and every figure for people or programs is converted back:
/// growth is per step, ends are in steps, and no figure per minute is invented. Likewise, an amount in per cent or in
/// an unknown unit counts as `unit_bytes` per 1 of its own on the axis of amounts, and is converted back.
///
/// A source sets Catalog::scale; the View, the period report and anything else that shows a recording carry it. What
/// is recorded is formatted with the functions below, anything else with those of core/format.hpp
/// (tests/unit/core/scale_test.cpp keeps the two apart).
struct Scale {
  std::string step;             ///< what is counted instead of time: "step", "request"; empty: it is time
  double step_s = 1;            ///< seconds of the time axis per count; any positive number, not a measurement
  bool is_time_of_day = false;  ///< times are not dates, but times of day
  double begins_s = 0;          ///< with is_time_of_day: seconds from a midnight to the start of the time axis
  AmountUnit unit = AmountUnit::bytes;
  double unit_bytes = 1;  ///< if amounts are not in bytes: the bytes that stand for 1 of the log's figures, or for 1 %
  friend bool operator==(const Scale&, const Scale&) = default;

  /// A scale of percentages stands for a GPU of this size: detectors are designed for memory of real sizes.
  static constexpr std::uint64_t kWholeBytes = std::uint64_t{100} << 30U;
  static constexpr double kPercentBytes = static_cast<double>(kWholeBytes) / 100;

  [[nodiscard]] bool counts_steps() const { return !step.empty(); }
  [[nodiscard]] bool counts_bytes() const { return unit == AmountUnit::bytes; }
  /// Sets the unit of amounts to `its`, 1 of which is `bytes` on the axis of amounts.
  void count(AmountUnit its, double bytes) {
    unit = its;
    unit_bytes = bytes;
  }
  void count_percent() { count(AmountUnit::percent, kPercentBytes); }

  /// The unit of a chart's axis that ends at `top_bytes`: its size on that axis and its name, "GiB", "%"; no name if it
  /// is unknown.
  struct AxisUnit {
    double bytes = 1;
    std::string_view name;
  };
  [[nodiscard]] AxisUnit axis_unit(double top_bytes) const;

  // The functions of core/format.hpp with these names, where "12.3 GiB" may be "12300.0 (unit unknown)" or "12.3 %",
  // "+1.2 MiB/min" "+1.2 MiB/step" or "+1.2 %/min", and "1h 05m" "65 steps". Pure.
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

/// For live data, dated recordings and everything that is not recorded. Never destroyed before its last use in main().
inline const Scale kSecondsAndBytes{};

}  // namespace vramtrack
