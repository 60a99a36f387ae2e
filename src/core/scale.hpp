// What the figures of a recording count, where it has no clock, no dates or no unit.
#pragma once

#include <string>
#include <utility>

namespace vramtrack {

/// How the times and amounts of a recording are said. By default they are what they seem: seconds and bytes.
///
/// A log that counts steps says nothing of how long a step takes. Its samples are put on the time axis `step_s` apart,
/// so that everything below the reports works on one axis, and every figure for people or programs is turned back:
/// growth is per step, ends are in steps, and no figure per minute is made up.
struct Scale {
  std::string step;             ///< what is counted in place of time: "step", "request"; empty: it is time
  double step_s = 1;            ///< seconds of the time axis for one count; any positive number, no measurement
  bool is_time_of_day = false;  ///< times are no dates, and say the time of day
  double begins_s = 0;          ///< with is_time_of_day: seconds from a midnight to the beginning of the time axis
  bool has_unit = true;         ///< false: nothing says in which unit amounts are, and two are possible
  double unit_bytes = 1;        ///< without a unit: bytes that 1 of the log's figures was taken for
  friend bool operator==(const Scale&, const Scale&) = default;

  [[nodiscard]] bool counts_steps() const { return !step.empty(); }
};

/// The scale by which core/format.hpp and the reports say figures, one per thread. The default Scale unless a
/// ScaleScope lives: who opens a recording makes one of its source's notes.
const Scale& scale();

/// Says figures by `next` while it lives, in its thread. Scopes nest.
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
