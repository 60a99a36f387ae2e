#include "detect/rest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "core/median.hpp"
#include "core/units.hpp"

namespace vramtrack {
namespace {

/// A jump is reported for this long.
constexpr double kJumpIsNews_s = kSecondsPerHour;
/// Buckets that a level needs to show cycles and falls, and those that it needs for anything to be reported at all.
constexpr std::size_t kReportedBuckets = 8;
constexpr std::size_t kLeastBuckets = 4;
/// A level's movement is the change from its first part to its last, out of this many.
constexpr std::size_t kParts = 3;
/// A straight fall also falls within each bucket, so it counts only if the whole is this many times the swing. It must
/// also continue: its last third makes up at least this share of it.
constexpr double kFallSwings = 2;
constexpr double kLateFallShare = 0.1;
/// A cycle falls, and rises again, by at least this share of the swing.
constexpr double kBackShare = 0.5;

/// How a level's kept buckets moved as a whole.
struct Movement {
  double swing_bytes = 0;         ///< median of peak - floor within a bucket
  double floor_change_bytes = 0;  ///< mean of the last third less mean of the first
  double peak_change_bytes = 0;
  double late_fall_bytes = 0;    ///< fall of the floor within the last third
  double most_fallen_bytes = 0;  ///< from the peak of a bucket to the floor of a later one
  double most_risen_bytes = 0;   ///< from the floor of a bucket to the peak of a later one

  /// Whether it moved both ways by half of its swing: a series that only rises, or only falls, swings within each
  /// bucket but never comes back.
  [[nodiscard]] bool comes_back() const {
    return std::min(most_fallen_bytes, most_risen_bytes) >= kBackShare * swing_bytes;
  }
};

Movement movement_of(const Level& level) {
  const std::size_t n = level.size();
  Movement m;
  std::array<double, Level::kCapacity> swings{};
  for (std::size_t i = 0; i < n; ++i) swings[i] = static_cast<double>(level[i].peak_bytes - level[i].floor_bytes);
  m.swing_bytes = upper_median(std::span(swings).first(n));
  const std::size_t third = std::max<std::size_t>(1, n / kParts);
  for (std::size_t i = 0; i < third; ++i) {
    const auto share = static_cast<double>(third);
    m.floor_change_bytes += static_cast<double>(level[n - 1 - i].floor_bytes - level[i].floor_bytes) / share;
    m.peak_change_bytes += static_cast<double>(level[n - 1 - i].peak_bytes - level[i].peak_bytes) / share;
  }
  double highest = static_cast<double>(level[0].peak_bytes);
  double lowest = static_cast<double>(level[0].floor_bytes);
  for (std::size_t i = 1; i < n; ++i) {
    const auto floor = static_cast<double>(level[i].floor_bytes);
    const auto peak = static_cast<double>(level[i].peak_bytes);
    m.most_fallen_bytes = std::max(m.most_fallen_bytes, highest - floor);
    m.most_risen_bytes = std::max(m.most_risen_bytes, peak - lowest);
    highest = std::max(highest, peak);
    lowest = std::min(lowest, floor);
  }
  m.late_fall_bytes = static_cast<double>(level[n - third].floor_bytes - level[n - 1].floor_bytes);
  return m;
}

/// How long the level has stayed within `matters_bytes` of the present: "within 64 MiB of 12.0 GiB for the last 2 h".
std::string steady_words(const Scales& scales, std::size_t k, const RestContext& c) {
  const Level& level = scales.level(k);
  std::size_t since = level.size();
  while (since > 0 && static_cast<double>(level[since - 1].floor_bytes) >= c.now_bytes - c.matters_bytes &&
         static_cast<double>(level[since - 1].peak_bytes) <= c.now_bytes + c.matters_bytes)
    --since;
  if (since == level.size()) return fmt::format("at {}, without a trend", c.scale.bytes(c.now_bytes));
  return fmt::format("within {} of {} for the last {}", c.scale.bytes(c.matters_bytes), c.scale.bytes(c.now_bytes),
                     c.scale.span(seconds_between(scales.start_of(k, level[since].slot), c.now)));
}

/// A jump within the last hour that has not been released and is more than a load.
bool describe_jump(Finding& f, const Scales& scales, const Jumps& jumps, const RestContext& c) {
  if (!jumps.last() || jumps.last()->load || seconds_between(jumps.last()->time, c.now) > kJumpIsNews_s) return false;
  const SpikeOutcome outcome = jumps.outcome(scales, c.now, c.now_bytes);
  if (outcome == SpikeOutcome::none) return false;
  f.state = State::spiked;
  f.pattern = Pattern::sudden_spike;
  f.spike = outcome;
  f.onset = jumps.last()->time;
  const double from = jumps.last()->from_bytes, top = jumps.last()->top_bytes;
  // A steep load is a jump to its first stretch, and continues from there.
  const bool went_on = outcome == SpikeOutcome::stabilised && c.now_bytes > top + kBackShare * (top - from);
  f.because = fmt::format("jumped from {} to {}{} and {}", c.scale.bytes(from), c.scale.bytes(top),
                          went_on ? ", rose to " + c.scale.bytes(c.now_bytes) : std::string(),
                          outcome == SpikeOutcome::stabilised ? "stays there" : "still grows");
  if (outcome == SpikeOutcome::still_growing) {
    const double rate = (c.now_bytes - jumps.last()->top_bytes) / seconds_between(jumps.last()->time, c.now);
    f.growth_bytes_per_s = {rate, rate, rate};
  }
  return true;
}

}  // namespace

void describe_rest(Finding& f, const Scales& scales, const Jumps& jumps, const RestContext& c) {
  if (describe_jump(f, scales, jumps, c)) return;
  // Cycles and falls are looked for at the coarsest level with enough buckets.
  std::size_t k = c.finest_level;
  for (std::size_t i = k; i < Scales::kLevels; ++i)
    if (scales.level(i).size() >= kReportedBuckets) k = i;
  const std::size_t n = scales.level(k).size();
  f.state = State::steady;
  if (n < kLeastBuckets) {
    f.because = fmt::format("at {}; too few spans to say more", c.scale.bytes(c.now_bytes));
    return;
  }
  const Movement m = movement_of(scales.level(k));
  const std::string over = c.scale.span(Scales::width_s(k) * static_cast<double>(n));
  const bool fell =
      std::max(m.floor_change_bytes, m.peak_change_bytes) <= -std::max(c.matters_bytes, kFallSwings * m.swing_bytes);
  if (fell && m.late_fall_bytes >= kLateFallShare * -m.floor_change_bytes) {
    f.state = State::falling;
    f.because = fmt::format("fell by {} over {}", c.scale.bytes(-m.floor_change_bytes), over);
  } else if (m.swing_bytes >= c.matters_bytes && !fell && m.comes_back()) {
    f.state = State::cycling;
    f.because = fmt::format("swings by {} within {} and comes back; its floor moved by {} over {}",
                            c.scale.bytes(m.swing_bytes), c.scale.span(Scales::width_s(k)),
                            c.scale.bytes(m.floor_change_bytes), over);
  } else {
    f.because = steady_words(scales, k, c);
  }
}

}  // namespace vramtrack
