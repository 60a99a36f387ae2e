// Pause: for how long a rise has stood still, beside how it rose.
#pragma once

#include <cstddef>

#include "detect/scales.hpp"

namespace vramtrack {

/// Of a rise from its beginning to now.
struct Pause {
  double still_s = 0;  ///< since the floor came near its highest; 0 where it has left that since
  double usual_s = 0;  ///< the usual time between new highs before that; 0: too few
  double rose_s = 0;   ///< from the beginning to where the floor came near its highest

  /// How long it may stand still before it has ended: twice the usual pause between its steps, half of the time it took
  /// to rise, or ten minutes, whichever is longest.
  [[nodiscard]] double longest_s() const;
  [[nodiscard]] bool has_ended() const { return still_s > longest_s(); }
  /// Whether it goes on well enough to be told of for the first time: a rise is taken up within the first half of that.
  [[nodiscard]] bool is_long() const { return still_s > longest_s() / 2; }
};

/// The pause of a rise that began at `start` and makes `net_bytes`, seen at the finest level from `finest` on that
/// reaches back so far. A twentieth of the net is near the highest. What has fallen by more than that,
/// and has not come back within the last quarter of the time since, does not stand still. Pure; O(48).
Pause pause_of(const Scales& scales, std::size_t finest, Timestamp start, double net_bytes, Timestamp now);

}  // namespace vramtrack
