#include "detect/rest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "core/median.hpp"
#include "detect/words.hpp"

namespace vramtrack {
namespace {

/// How a level's kept buckets moved as a whole.
struct Movement {
  double swing_bytes = 0;         ///< median of peak - floor within a bucket
  double floor_change_bytes = 0;  ///< mean of the last third less mean of the first
  double peak_change_bytes = 0;
  double late_fall_bytes = 0;  ///< fall of the floor within the last third
};

Movement movement_of(const Level& level) {
  const std::size_t n = level.size();
  Movement m;
  std::array<double, Level::kCapacity> swings{};
  for (std::size_t i = 0; i < n; ++i) swings[i] = static_cast<double>(level[i].peak_bytes - level[i].floor_bytes);
  m.swing_bytes = upper_median(std::span(swings).first(n));
  const std::size_t third = std::max<std::size_t>(1, n / 3);
  for (std::size_t i = 0; i < third; ++i) {
    const auto share = static_cast<double>(third);
    m.floor_change_bytes += static_cast<double>(level[n - 1 - i].floor_bytes - level[i].floor_bytes) / share;
    m.peak_change_bytes += static_cast<double>(level[n - 1 - i].peak_bytes - level[i].peak_bytes) / share;
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
  if (since == level.size()) return fmt::format("at {}, without a trend", size_words(c.now_bytes));
  return fmt::format("within {} of {} for the last {}", size_words(c.matters_bytes), size_words(c.now_bytes),
                     span_words(seconds_between(scales.start_of(k, level[since].slot), c.now)));
}

/// A jump within the last hour that is still there, and no mere load.
bool describe_jump(Finding& f, const Scales& scales, const Jumps& jumps, const RestContext& c) {
  if (!jumps.last() || jumps.last()->load || seconds_between(jumps.last()->time, c.now) > 3600) return false;
  const SpikeOutcome outcome = jumps.outcome(scales, c.now, c.now_bytes);
  if (outcome == SpikeOutcome::none) return false;
  f.state = State::spiked;
  f.pattern = Pattern::sudden_spike;
  f.spike = outcome;
  f.onset = jumps.last()->time;
  f.because = fmt::format("jumped from {} to {} and {}", size_words(jumps.last()->from_bytes),
                          size_words(jumps.last()->top_bytes),
                          outcome == SpikeOutcome::stabilised ? "stays there" : "still grows");
  return true;
}

}  // namespace

void describe_rest(Finding& f, const Scales& scales, const Jumps& jumps, const RestContext& c) {
  if (describe_jump(f, scales, jumps, c)) return;
  // The coarsest level with enough buckets tells cycles and falls.
  std::size_t k = c.finest_level;
  for (std::size_t i = k; i < Scales::kLevels; ++i)
    if (scales.level(i).size() >= 8) k = i;
  const std::size_t n = scales.level(k).size();
  f.state = State::steady;
  if (n < 4) {
    f.because = fmt::format("at {}; too few spans to say more", size_words(c.now_bytes));
    return;
  }
  const Movement m = movement_of(scales.level(k));
  const std::string over = span_words(Scales::width_s(k) * static_cast<double>(n));
  // A straight fall also spans the fall within each bucket: it is one when the whole outweighs the parts.
  const bool fell =
      std::max(m.floor_change_bytes, m.peak_change_bytes) <= -std::max(c.matters_bytes, 2 * m.swing_bytes);
  if (fell && m.late_fall_bytes >= 0.1 * -m.floor_change_bytes) {
    f.state = State::falling;
    f.because = fmt::format("fell by {} over {}", size_words(-m.floor_change_bytes), over);
  } else if (m.swing_bytes >= c.matters_bytes && !fell) {
    f.state = State::cycling;
    f.because =
        fmt::format("swings by {} within {} and comes back; its floor moved by {} over {}", size_words(m.swing_bytes),
                    span_words(Scales::width_s(k)), size_words(m.floor_change_bytes), over);
  } else {
    f.because = steady_words(scales, k, c);
  }
}

}  // namespace vramtrack
