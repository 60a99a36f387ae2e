#include "detect/standing.hpp"

#include <algorithm>

#include "core/units.hpp"

namespace vramtrack {
namespace {

/// Raised after this many looks in a row at one level, or at this many levels at once.
constexpr int kLooksInARow = 2;
constexpr int kLevelsAtOnce = 2;
/// Looks in a row are counted up to here; more add nothing, and the counter is a byte.
constexpr int kMostLooks = 200;
/// Without support from any level, it stands for this share of the growth's duration, within bounds.
constexpr double kPatienceShare = 0.25;
constexpr double kLeastPatience_s = 2 * kSecondsPerMinute;
constexpr double kMostPatience_s = 6 * kSecondsPerHour;
/// Peaks that keep less than this share of the growth mean that the program releases it: it then ends at once.
constexpr double kKeptShare = 0.8;

}  // namespace

void Standing::look(std::size_t k, const Evidence* speaks) {
  if (speaks == nullptr) {
    streak_[k] = 0;
    return;
  }
  streak_[k] = static_cast<std::uint8_t>(std::min(streak_[k] + 1, kMostLooks));
  if (!stands_ || speaks->net_bytes <= net_bytes_) return;
  net_bytes_ = speaks->net_bytes;
  level_ = speaks->level;
  start_ = speaks->start;
  start_bytes_ = speaks->start_bytes;
  duration_s_ = speaks->duration_s;
}

bool Standing::wanted() const {
  int most = 0;
  int levels = 0;
  for (const std::uint8_t looks : streak_) {
    most = std::max<int>(most, looks);
    levels += looks > 0 ? 1 : 0;
  }
  return most >= kLooksInARow || levels >= kLevelsAtOnce;
}

void Standing::raise(Timestamp now, const Evidence& best) {
  stands_ = true;
  held_until_ = now;
  level_ = best.level;
  start_ = best.start;
  start_bytes_ = best.start_bytes;
  net_bytes_ = best.net_bytes;
  duration_s_ = best.duration_s;
}

void Standing::end() {
  stands_ = false;
  streak_.fill(0);
}

bool Standing::is_given_back(const Level& level) const {
  // A level that has just restarted has nothing to compare with.
  return level.size() > 0 && static_cast<double>(level.back().peak_bytes) - start_bytes_ < kKeptShare * net_bytes_;
}

double Standing::patience_s(const Level& level) const {
  if (is_given_back(level)) return 0;
  return std::clamp(kPatienceShare * duration_s_, kLeastPatience_s, kMostPatience_s);
}

}  // namespace vramtrack
