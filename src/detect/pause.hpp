// Pause: how long a rise has stood still, compared with how it rose before.
#pragma once

#include <cstddef>

#include "detect/scales.hpp"

namespace vramtrack {

/// A rise from its beginning to now.
struct Pause {
  double still_s = 0;  ///< since the floor came near its highest level; 0 if it has left it since
  double usual_s = 0;  ///< the usual time between new highs before that, if relevant; 0: too few highs
  double rose_s = 0;   ///< from the beginning to where the floor came near its highest level

  /// How long it may stand still before it counts as ended: twice the usual pause between its steps, half of the time
  /// that it took to rise, or ten minutes, whichever is longest.
  [[nodiscard]] double longest_s() const;
  [[nodiscard]] bool has_ended() const { return still_s > longest_s(); }
  /// Whether it is too long to report the rise for the first time: that must happen within half of longest_s().
  [[nodiscard]] bool is_long() const { return still_s > longest_s() / 2; }
};

/// The pause of a rise by `net_bytes` that began at `start`, at the finest level from `finest` on that reaches back
/// that far. Within a twentieth of the net counts as near the highest level. A floor that has fallen by more than that,
/// and has not recovered within the last quarter of the time since, does not stand still. Pure; O(48).
Pause pause_of(const Scales& scales, std::size_t finest, Timestamp start, double net_bytes, Timestamp now);

}  // namespace vramtrack
