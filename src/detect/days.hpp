// Days: the last week of a series by the hour, for "did it rise like this at this time yesterday, and fall again?"
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "core/time.hpp"

namespace vramtrack {

struct Rise;

/// The floor of each of the last kHours hours: at most 800 bytes. Hours are those of UTC: any clock has days of 24
/// hours.
class Days {
 public:
  static constexpr std::size_t kHours = 8 * 24;

  /// Times must not decrease. O(1).
  void observe(Timestamp time, double bytes);
  /// The floor of the hour that begins at `hour`, from another source; hours come in order, before any observe().
  void add_hour(Timestamp hour, double floor_bytes);
  /// What `before` knows of earlier hours.
  void prepend(const Days& before);
  /// What was seen says nothing of what comes: a leak ended the rise, and not the day.
  void clear() { floors_.clear(); }

  /// On how many of the days that are known at this time of day the series rose as much within the same hours, to this
  /// level (and a third of the rise more), and fell again before now. Rises of more than kLongest_h have none.
  /// O(hours).
  struct Seen {
    int alike = 0;
    int known = 0;
  };
  [[nodiscard]] Seen like(const Rise& rise) const;

 private:
  static constexpr float kUnknown = -1;

  static std::int64_t hour_of(Timestamp time);
  [[nodiscard]] float floor_at(std::int64_t hour) const;
  void reach(std::int64_t hour);

  std::deque<float> floors_;  ///< of `first_hour_` and those after it; kUnknown where there was no sample
  std::int64_t first_hour_ = 0;
};

}  // namespace vramtrack
