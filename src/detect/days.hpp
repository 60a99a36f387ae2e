// Days: the last week of a series by the hour, for "did it rise like this at this time yesterday, and fall again?"
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "core/time.hpp"

namespace vramtrack {

struct Rise;

/// The floor of each of the last kHours hours: at most 800 bytes. Hours are counted in UTC: in every time zone, a day
/// has 24 hours.
class Days {
 public:
  static constexpr std::size_t kHours = 8 * 24;

  /// Times must not decrease. O(1).
  void observe(Timestamp time, double bytes);
  /// The floor of the hour that begins at `hour`, from another source; hours come in order, before any observe().
  void add_hour(Timestamp hour, double floor_bytes);
  /// Takes over the earlier hours that `before` has.
  void prepend(const Days& before);
  /// Forgets the days: they do not predict what comes, because a leak ended the rise, not the day.
  void clear() { floors_.clear(); }

  /// The number of known days on which the series rose as much within the same hours, to this level (plus a
  /// third of the rise), and fell again before now. No day counts for rises longer than kLongest_h.
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

  std::deque<float> floors_;  ///< of `first_hour_` and those after it; kUnknown if there was no sample
  std::int64_t first_hour_ = 0;
};

}  // namespace vramtrack
