// FloorCurve: the floor of one series at many slot widths, compact enough to be kept with it and to be sent.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/time.hpp"

namespace vramtrack {

/// For each of fourteen widths, the floors of the last kSlots slots of that width, aligned to the clock. 3.7 KiB,
/// whatever the length of the series.
///
///   width 10 s  | | | | | | | |      the last 11 minutes
///   width 20 s  |   |   |   |        the last 21
///   ...                              width 22 h: the last 60 days
class FloorCurve {
 public:
  static constexpr std::size_t kLevels = 14;
  static constexpr std::size_t kSlots = 64;  ///< a power of two
  static constexpr double width_s(std::size_t level) { return 10.0 * static_cast<double>(1U << level); }

  FloorCurve();

  /// Times must not decrease; an equal time replaces the value before it. O(1).
  void observe(Timestamp time, double bytes);

  /// The lowest floor of the slots of `level` that overlap [from, to]; nullopt if none of them has a sample. O(slots).
  [[nodiscard]] std::optional<double> floor_between(std::size_t level, Timestamp from, Timestamp to) const;
  /// The finest level at which a rise of this duration takes at most 32 slots; the last level if there is none.
  [[nodiscard]] static std::size_t level_for(double duration_s);
  /// visit(double floor_bytes, std::int64_t slot) for each slot of `level` that has a sample, the oldest first.
  template <class Visit>
  void for_each(std::size_t level, Visit visit) const {
    const std::int64_t newest = slot_of(level, last_);
    for (std::int64_t slot = newest - static_cast<std::int64_t>(kSlots) + 1; slot <= newest; ++slot)
      if (const auto floor = floor_in(level, slot)) visit(*floor, slot);
  }

 private:
  static constexpr std::size_t place_of(std::int64_t slot) { return static_cast<std::size_t>(slot) % kSlots; }
  [[nodiscard]] static std::int64_t slot_of(std::size_t level, Timestamp time);
  [[nodiscard]] std::optional<double> floor_in(std::size_t level, std::int64_t slot) const;
  void fold();

  std::array<std::array<float, kSlots>, kLevels> floors_{};  ///< negative: no sample
  std::array<std::int64_t, kLevels> newest_{};               ///< the slot up to which `floors_` reaches
  bool any_ = false;
  Timestamp last_{};  ///< of a sample that is not in `floors_` yet: its value may be replaced
  float last_bytes_ = 0;
};

}  // namespace vramtrack
