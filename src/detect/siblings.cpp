#include "detect/siblings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/statistics.hpp"
#include "core/units.hpp"

namespace vramtrack {
namespace {

/// Coarser levels at which the rise is also looked for in a sibling's past: 8 times as coarse still shows its pace.
constexpr std::size_t kCoarser = 2;

/// A sibling that holds less than this share of the level at which the rise began does something else.
constexpr double kComparable = 0.5;
/// A sibling rises as well if it rises by at least this share of the rise.
constexpr double kMoves = 0.25;
/// A sibling is as high if it is lower by at most this share of the level, or this many bytes, but a share of the rise.
constexpr double kLevelShare = 0.03;
constexpr double kLevelBytes = 64 * kMiB;
constexpr double kRiseShare = 0.25;
/// Two rises are the same if the middle half of one takes at least this share, and at most this multiple, of the time.
constexpr double kQuickest = 0.25;
constexpr double kSlowest = 4;

/// If only one rank leaks, the share of its siblings that rise all the same has the mean 1 / (1 + kOthersRise).
constexpr double kOthersRise = 19;
/// Half of all leaks are in code that every rank runs.
constexpr double kOwn = 0.5;
constexpr double kMostFamiliar = 16;
constexpr double kMostOdds = 16;

/// Whether the sibling rose from the lower quarter of the rise to the upper one at about the same pace.
bool made_the_rise(const FloorCurve& sibling, const Rise& rise) {
  const double low = rise.start_bytes + rise.net_bytes / 4;
  const double high = rise.start_bytes + 3 * rise.net_bytes / 4;
  const double half_s = seconds_between(rise.start, rise.end) / 2;
  const std::size_t finest = FloorCurve::level_for(2 * half_s);
  for (std::size_t level = finest; level <= std::min(finest + kCoarser, FloorCurve::kLevels - 1); ++level) {
    bool was_low = false;
    std::int64_t last_low = 0;
    std::int64_t slots = 0;  // that the last rise from low to high took; 0: no such rise was seen
    sibling.for_each(level, [&](double floor_bytes, std::int64_t slot) {
      if (floor_bytes <= low) {
        was_low = true;
        last_low = slot;
      } else if (floor_bytes >= high && was_low) {
        was_low = false;
        slots = slot - last_low;
      }
    });
    if (slots == 0) continue;
    const double width_s = FloorCurve::width_s(level);
    // A rise from one slot to the next is a jump, as far as this level can show.
    return slots >= 2 && static_cast<double>(slots) * width_s >= kQuickest * half_s &&
           static_cast<double>(slots - 1) * width_s <= kSlowest * half_s;
  }
  return false;
}

}  // namespace

SiblingMove move_of_sibling(const FloorCurve& sibling, const Rise& rise) {
  const double duration_s = seconds_between(rise.start, rise.end);
  if (!(duration_s > 0) || !(rise.net_bytes > 0)) return SiblingMove::nothing;
  const std::size_t level = FloorCurve::level_for(duration_s);
  const Duration quarter = from_seconds(duration_s / 4);
  // A steady rise covers half of its way from the second quarter to the last.
  const auto then = sibling.floor_between(level, rise.start + quarter, rise.start + 2 * quarter);
  const auto now = sibling.floor_between(level, rise.end - quarter, rise.end);
  if (!then || !now || *now < kComparable * rise.start_bytes) return SiblingMove::nothing;
  if (*now - *then > kMoves * rise.net_bytes / 2) return SiblingMove::rises;
  const double end_bytes = rise.start_bytes + rise.net_bytes;
  const double tolerance = std::min(kRiseShare * rise.net_bytes, std::max(kLevelShare * end_bytes, kLevelBytes));
  if (*now < end_bytes - tolerance) return SiblingMove::still;
  return made_the_rise(sibling, rise) ? SiblingMove::ended : SiblingMove::nothing;
}

SiblingsWord siblings_word(int still, int rising, int ended) {
  SiblingsWord w;
  w.siblings = still + rising + ended;
  if (w.siblings == 0) return w;
  if (ended > 0 && ended >= still) {
    // The odds that the next sibling also ends its rise, by Laplace's rule of succession. A sibling that never rose is
    // no evidence that this rise ends.
    w.kind = SiblingMove::ended;
    w.of_them = ended;
    w.familiar = std::min(kMostFamiliar, (ended + 1.0) / (rising + still + 1.0));
    return w;
  }
  rising += ended;  // most stand still: that one of them once rose shows no more than that
  if (still == 0) {
    w.kind = SiblingMove::rises;
    w.of_them = rising;
    return w;
  }
  // If healthy, the chance that a sibling also rises is anything from 0 to 1; each number of them is equally likely.
  const double healthy = 1 / (w.siblings + 1.0);
  const double own =
      beta_binomial_pmf(static_cast<std::size_t>(rising), static_cast<std::size_t>(w.siblings), 1, kOthersRise);
  w.kind = SiblingMove::still;
  w.of_them = still;
  w.odds = std::max(1.0, kOwn * own / healthy + (1 - kOwn));
  return w;
}

ExperienceWord with_siblings(ExperienceWord word, const SiblingsWord& siblings) {
  if (siblings.odds > 1) word.odds = std::max(word.odds, std::min(kMostOdds, word.odds * siblings.odds));
  if (siblings.familiar > 0)
    word.familiar = std::max(word.familiar, std::min(kMostFamiliar, word.familiar + siblings.familiar));
  return word;
}

std::string SiblingsWord::describe() const {
  if (siblings == 0) return {};
  const bool one = siblings == 1;
  const std::string who = one                   ? std::string("its sibling")
                          : of_them == siblings ? fmt::format("all {} siblings", siblings)
                                                : fmt::format("{} of its {} siblings", of_them, siblings);
  const bool singular = of_them == 1;
  switch (kind) {
    case SiblingMove::still:
      return fmt::format("; {} show{} no growth", who, singular ? "s" : "");
    case SiblingMove::rises:
      return fmt::format("; {} rise{}, too", who, singular ? "s" : "");
    case SiblingMove::ended:
      return fmt::format("; {} rose in the same way and then stopped", who);
    default:
      return {};
  }
}

SiblingsWord Siblings::word(const Rise& rise) const {
  int still = 0;
  int rising = 0;
  int ended = 0;
  for (const FloorCurve* curve : curves_) {
    const SiblingMove move = move_of_sibling(*curve, rise);
    still += move == SiblingMove::still ? 1 : 0;
    rising += move == SiblingMove::rises ? 1 : 0;
    ended += move == SiblingMove::ended ? 1 : 0;
  }
  return siblings_word(still, rising, ended);
}

}  // namespace vramtrack
