// What the figures of a recording count if it has no clock, no dates or no unit.
#pragma once

#include <string>
#include <utility>

namespace vramtrack {

/// How the times and amounts of a recording are expressed. By default they are what they seem: seconds and bytes.
///
/// A log that counts steps does not show how long a step takes. Its samples are placed `step_s` apart on the time axis,
/// so that everything below the reports works on one axis, and every figure for people or programs is converted back:
/// growth is per step, ends are in steps, and no figure per minute is invented.
struct Scale {
  std::string step;             ///< what is counted instead of time: "step", "request"; empty: it is time
  double step_s = 1;            ///< seconds of the time axis per count; any positive number, not a measurement
  bool is_time_of_day = false;  ///< times are not dates, but times of day
  double begins_s = 0;          ///< with is_time_of_day: seconds from a midnight to the start of the time axis
  bool has_unit = true;         ///< false: nothing says in which unit amounts are, and two units are possible
  double unit_bytes = 1;        ///< without a unit: the number of bytes assumed for 1 of the log's figures
  friend bool operator==(const Scale&, const Scale&) = default;

  [[nodiscard]] bool counts_steps() const { return !step.empty(); }
};

/// The scale by which core/format.hpp and the reports express figures, one per thread. The default Scale unless a
/// ScaleScope lives: the code that opens a recording makes one from its source's notes.
const Scale& scale();

/// While it lives, figures in its thread are expressed by `next`. Scopes nest.
class ScaleScope {
 public:
  explicit ScaleScope(Scale next);
  ~ScaleScope();
  ScaleScope(const ScaleScope&) = delete;
  ScaleScope& operator=(const ScaleScope&) = delete;

 private:
  Scale before_;
};

}  // namespace vramtrack
