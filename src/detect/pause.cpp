#include "detect/pause.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "core/median.hpp"
#include "core/units.hpp"

namespace vramtrack {
namespace {

constexpr double kLeastPause_s = 10 * kSecondsPerMinute;
constexpr double kUsualPauses = 2;
constexpr double kRiseShare = 0.5;
/// A new high is above the one before by more than this share of the growth. A steady rise reaches twenty.
constexpr double kNewHighShare = 0.05;
/// A floor that has fallen by this share of the growth has left its highest level: it does not stand still.
constexpr double kLeftShare = kNewHighShare;
/// The last part of a standstill, as a share of it, that shows whether it still is one.
constexpr double kLatePart = 0.25;
/// The smallest number of gaps whose median shows what is usual.
constexpr std::size_t kLeastGaps = 4;

/// The median time between new highs over all that the level has kept; 0 if there are too few.
double median_gap_s(const Scales& scales, std::size_t k, float near_bytes) {
  const Level& level = scales.level(k);
  std::array<float, Level::kCapacity> gaps_s{};
  std::size_t gaps = 0;
  float high = level[0].floor_bytes;
  std::optional<Timestamp> high_at;
  for (std::size_t i = 1; i < level.size(); ++i) {
    if (level[i].floor_bytes - high <= near_bytes) continue;
    high = level[i].floor_bytes;
    const Timestamp at = scales.start_of(k, level[i].slot);
    if (high_at) gaps_s[gaps++] = static_cast<float>(seconds_between(*high_at, at));
    high_at = at;
  }
  return gaps < kLeastGaps ? 0 : static_cast<double>(upper_median(std::span(gaps_s).first(gaps)));
}

}  // namespace

double Pause::longest_s() const {
  return std::max({kLeastPause_s, kUsualPauses * usual_s, kRiseShare * rose_s});
}

Pause pause_of(const Scales& scales, std::size_t finest, Timestamp start, double net_bytes, Timestamp now) {
  std::size_t k = finest;
  while (k + 1 < Scales::kLevels && scales.level(k + 1).size() > 0 &&
         (scales.level(k).size() == 0 || scales.start_of(k, scales.level(k)[0].slot) > start))
    ++k;
  const Level& level = scales.level(k);
  Pause pause;
  if (level.size() == 0) return pause;
  std::size_t first = 0;
  while (first < level.size() && scales.end_of(k, level[first].slot) < start) ++first;
  float highest = 0;
  for (std::size_t i = first; i < level.size(); ++i) highest = std::max(highest, level[i].floor_bytes);
  const auto near_bytes = static_cast<float>(kNewHighShare * net_bytes);
  int highs = 0;
  Timestamp high_at = start;
  float high = first < level.size() ? level[first].floor_bytes : 0;
  for (std::size_t i = first + 1; i < level.size(); ++i) {
    if (level[i].floor_bytes - high <= near_bytes) continue;
    high = level[i].floor_bytes;
    ++highs;
    // A whole bucket is at least as high as its floor, so the rise came before it.
    high_at = std::max(start, scales.start_of(k, level[i].slot));
    if (highest - high <= near_bytes) break;
  }
  pause.rose_s = std::max(0.0, seconds_between(start, high_at));
  if (highs > 1) pause.usual_s = pause.rose_s / highs;
  const double still_s = std::max(0.0, seconds_between(high_at, now));
  // A window may contain only a burst of steps, so how often the series made steps of this size before counts, too. A
  // pause that is not long without that is not long with it.
  if (still_s > pause.longest_s() / 2) pause.usual_s = std::max(pause.usual_s, median_gap_s(scales, k, near_bytes));
  const Timestamp late = now - from_seconds(kLatePart * still_s);
  float late_high = 0;
  for (std::size_t i = level.size(); i-- > 0 && (i + 1 == level.size() || scales.end_of(k, level[i].slot) > late);)
    late_high = std::max(late_high, level[i].floor_bytes);
  if (highest - late_high <= static_cast<float>(kLeftShare * net_bytes)) pause.still_s = still_s;
  return pause;
}

}  // namespace vramtrack
