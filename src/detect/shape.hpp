// Shape: the pattern of a growth, in the terms of the documents, and the jump that may explain it.
#pragma once

#include <optional>

#include "core/verdict.hpp"
#include "detect/evidence.hpp"
#include "detect/scales.hpp"

namespace vramtrack {

/// Gradual, step or cyclic, depending on how the window's rise is spread over its buckets and how far the series
/// swings within one (docs/detectors/judge.md). O(48 x levels).
Pattern shape_of(const Scales& scales, const Evidence& window, double r_squared);

/// The last sudden rise: at least the spike share within about 30 s, held for a finest bucket.
class Jumps {
 public:
  struct Jump {
    Timestamp time{};
    double from_bytes = 0;
    double top_bytes = 0;  ///< highest floor within a minute of it
    bool load = false;     ///< from (nearly) nothing: a model being loaded, which is not news
  };

  /// Call when a finest bucket has closed. `spike_share`: 0.2 for 20 %. O(1).
  void on_close(const Scales& scales, double spike_share, double min_bytes, std::optional<double> limit_bytes);

  [[nodiscard]] const std::optional<Jump>& last() const { return last_; }
  /// Its outcome by `now`: none if it is gone again; still growing if the level is well above the jump's top and
  /// the last quarter of the time since has had half of its proportional share of that.
  [[nodiscard]] SpikeOutcome outcome(const Scales& scales, Timestamp now, double floor_now_bytes) const;
  void reset() { last_.reset(); }

 private:
  std::optional<Jump> last_;
};

}  // namespace vramtrack
