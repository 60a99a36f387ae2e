// Evidence: what one window of floors and peaks at one scale shows about whether there is a leak.
#pragma once

#include <cstddef>
#include <optional>

#include "detect/scales.hpp"

namespace vramtrack {

/// A growth has stopped if it has reached no new high for this many times its longest gap between highs.
inline constexpr double kStoppedGaps = 3;

/// The context in which the window is judged.
struct EvidenceContext {
  std::optional<double> limit_bytes;
  double leak_prior = 0.1;          ///< share of growing series that leak; the larger it is, the less rivals weigh
  double min_duration_s = 300;      ///< a shorter growth is not material, unless memory ends sooner
  double min_growth_bytes = 0;      ///< a smaller growth is not material
  double first_bytes = 0;           ///< where the series began, or its program as far as it was seen
  std::optional<Timestamp> regime;  ///< since when the series has risen at its own rate: a window may begin there
};

/// One window, from `start` to `end`, of one level. Rival explanations carry weights relative to a leak's 1;
/// probability = 1 / (1 + noise + warm_up + cycle + churn + day). See docs/detectors/judge.md.
struct Evidence {
  std::size_t level = 0;
  Timestamp start{};
  Timestamp end{};
  double duration_s = 0;
  double start_bytes = 0;      ///< floor where the growth began
  double net_bytes = 0;        ///< rise of the floor
  double peak_rise_bytes = 0;  ///< rise of the peaks, first third to last third
  double highest_bytes = 0;    ///< highest recent peak
  double nats = 0;             ///< log evidence against a driftless floor
  double centroid = 0.5;       ///< growth-weighted mean position in the window: 0.5 steady, lower: slowing
  double centroid_se = 0;
  double swing_bytes = 0;    ///< median of peak - floor within a bucket
  double since_high_s = 0;   ///< since the floor's last new high
  double longest_gap_s = 0;  ///< between new highs
  double largest_step = 0;   ///< largest single rise, as a share of the net rise
  double quiet_s = 0;        ///< how long the floor was flat before the growth began
  int rises = 0;             ///< buckets in which the floor reached a new high
  int buckets = 0;
  double noise = 0;
  double warm_up = 0;
  double clockwork = 1;  ///< Bayes factor of steps at equal intervals against steps at random times; 1: no steps
  double churn = 0;      ///< jobs that come and go: falls as large as the rise were seen before it
  double day = 0;        ///< the rising half of a day's load
  double cycle = 0;      ///< a straight ramp that ends by itself: up to a collection, a load, a cache filling
  double probability = 0;
  double most_confidence = 1;           ///< below 1: something that no window shows may explain the rise (Judge)
  std::optional<double> oom_in_s;       ///< at the window's mean rate
  std::optional<double> plateau_bytes;  ///< where a slowing growth would settle
  bool material = false;                ///< whether there is enough growth, for long enough
  bool co_moving = false;               ///< whether peaks rise with the floors
  bool new_high = false;                ///< whether it is above what this level has seen before the window
  bool stopped = false;                 ///< whether there was no new high for a multiple of the longest gap
  bool loads = false;    ///< facts show that the program loads: no leak, whatever the window shows (Judge)
  bool decided = false;  ///< more than the curve shows that it is a leak: earlier runs or lifetimes (Judge)
  bool denied = false;   ///< the same, or lifetimes show that it is not a leak (Judge)

  /// Whether all gates are passed and the growth continues.
  [[nodiscard]] bool admissible() const { return co_moving && new_high && !stopped; }
};

/// The most probable window of level `k` that ends at its last bucket, over a few candidate starts; nullopt
/// if the level has too few buckets or its floor does not rise. O(48).
std::optional<Evidence> weigh(const Scales& scales, std::size_t k, const EvidenceContext& context);

/// The window of level `k` that begins at `start`, whatever it shows; nullopt as above. O(48).
std::optional<Evidence> weigh_from(const Scales& scales, std::size_t k, Timestamp start,
                                   const EvidenceContext& context);

}  // namespace vramtrack
