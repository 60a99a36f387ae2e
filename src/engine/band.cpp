#include "engine/band.hpp"

#include <algorithm>
#include <span>

namespace vramtrack {
namespace {

/// One rise that was released is a coincidence.
constexpr int kLeastSwings = 2;
/// A rise that has lasted for this many times the longest of those that were released is not one of them.
constexpr double kLongerThan = 3;
/// A swing has at least this share of the present rise.
constexpr double kSwingShare = 0.5;
/// A level above the band by more than this share of the present rise is new territory.
constexpr double kAboveShare = 0.1;
/// Below this share of the present level, the series was at the beginning of another run.
constexpr float kOtherRunShare = 0.2F;

}  // namespace

std::optional<Band> band_of(const History& history, Timestamp since, Timestamp onset) {
  const std::vector<History::Span>& all = history.spans();
  const auto first_after = std::find_if(all.begin(), all.end(), [&](const History::Span& span) {
    return history.start_of(span) + history.width() > onset;
  });
  if (first_after == all.begin() || first_after == all.end()) return std::nullopt;
  const std::span<const History::Span> rise(&*first_after, static_cast<std::size_t>(all.end() - first_after));
  float bottom = rise.front().min_bytes;
  float top = rise.front().max_bytes;
  for (const History::Span& span : rise) top = std::max(top, span.max_bytes);
  auto from = first_after;
  while (from != all.begin() && history.start_of(*(from - 1)) >= since && (from - 1)->min_bytes >= kOtherRunShare * top)
    --from;
  if (from == first_after) return std::nullopt;
  const float swing = static_cast<float>(kSwingShare) * (top - bottom);
  if (!(swing > 0)) return std::nullopt;
  Band band;
  band.lowest_bytes = static_cast<double>(bottom);
  float low = from->min_bytes;
  float high = from->max_bytes;
  bool rising = false;
  Timestamp low_at = history.start_of(*from);
  Timestamp high_at = low_at;
  double longest_climb_s = 0;
  for (auto span = from; span != first_after; ++span) {
    band.lowest_bytes = std::min(band.lowest_bytes, static_cast<double>(span->min_bytes));
    band.highest_bytes = std::max(band.highest_bytes, static_cast<double>(span->max_bytes));
    if (!rising) {
      if (span->min_bytes <= low) low_at = history.start_of(*span);
      low = std::min(low, span->min_bytes);
      if (span->max_bytes >= low + swing) {
        rising = true;
        high = span->max_bytes;
        high_at = history.start_of(*span);
      }
    }
    if (rising) {
      if (span->max_bytes >= high) high_at = history.start_of(*span);
      high = std::max(high, span->max_bytes);
      if (span->min_bytes <= high - swing) {
        rising = false;
        low = span->min_bytes;
        ++band.swings;
        longest_climb_s = std::max(longest_climb_s, seconds_between(low_at, high_at + history.width()));
        low_at = history.start_of(*span);
      }
    }
  }
  const double above = kAboveShare * static_cast<double>(top - bottom);
  if (band.swings < kLeastSwings || static_cast<double>(top) > band.highest_bytes + above) return std::nullopt;
  const Timestamp end = history.start_of(all.back()) + history.width();
  if (seconds_between(onset, end) > kLongerThan * longest_climb_s) return std::nullopt;
  return band;
}

}  // namespace vramtrack
