#include "detect/growth.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/units.hpp"
#include "detect/forecast.hpp"
#include "detect/kink.hpp"
#include "detect/pause.hpp"
#include "detect/regression.hpp"

namespace vramtrack {
namespace {

/// The onset is determined again when the growth is this many times as old.
constexpr double kReviewRatio = 1.25;
constexpr double kForecastRatio = 1.1;
/// Buckets, and a share of the growth's age, by which a scale must disagree with the onset to move it.
constexpr double kResolution = 2;
constexpr double kOnsetShare = 0.05;
/// How far to look back before the onset, as a share of the growth's age.
constexpr double kLookBack = 0.5;
constexpr std::size_t kLeastPoints = 6;
/// A step of this share of the rise, or of its earlier part, is a load.
constexpr double kJumpShare = 0.3;
constexpr double kMostlyLoad = 0.6;
/// A window of which one step makes up this share does not show where a growth began.
constexpr double kMostlyJump = 0.4;
/// A new high is above the one before by more than this share of the growth.
constexpr double kNewHighShare = 0.05;
/// A load that takes more buckets is a growth: see changes_regime().
constexpr std::size_t kMostLoadBuckets = 3;
/// A step is a load if the other steps are this many times smaller.
constexpr double kMuchLarger = 3;
/// Rates within this factor belong to one growth.
constexpr double kAlikeRates = 3;
/// A straight rise at less than this share of the previous rate, which has lasted three times as long, is another one.
constexpr double kSlower = 0.3;
constexpr double kOutlasts = 3;
/// If half of the growth is released, it ends.
constexpr double kHalfKept = 0.5;
/// After no new high for this long, and for this share of its age, the standstill is measured, and again after
/// the same time.
constexpr double kUnseen_s = kSecondsPerMinute;
constexpr double kUnseenShare = 0.02;

/// Floors by the time at which each occurred: a rising floor is that of its bucket's beginning. Bytes are counted from
/// the first one's: at any level, sums over them then round alike, and ties are decided alike.
struct Floors {
  std::vector<double> t, bytes;
  Timestamp from{};
  double base_bytes = 0;
  double width_s = 0;

  [[nodiscard]] Timestamp at(double t_s) const { return from + from_seconds(t_s); }
  [[nodiscard]] double rise() const { return bytes.back() - bytes.front(); }
};

/// The finest level, starting with `finest`, that reaches back to `time` or has forgotten nothing.
std::size_t reaching(const Scales& scales, std::size_t finest, Timestamp time) {
  std::size_t k = finest;
  while (k + 1 < Scales::kLevels && scales.level(k).size() == Level::kCapacity &&
         scales.start_of(k, scales.level(k)[0].slot) > time && scales.level(k + 1).size() > 1)
    ++k;
  return k;
}

Floors floors_since(const Scales& scales, std::size_t k, Timestamp since) {
  const Level& level = scales.level(k);
  Floors out;
  out.width_s = Scales::width_s(k);
  for (std::size_t i = 0; i < level.size(); ++i) {
    const Timestamp at = scales.start_of(k, level[i].slot);
    if (scales.end_of(k, level[i].slot) <= since || level[i].slot < level.regimes().begins()) continue;
    const auto floor = static_cast<double>(level[i].floor_bytes);
    if (out.t.empty()) {
      out.from = at;
      out.base_bytes = floor;
    }
    out.t.push_back(seconds_between(out.from, at));
    out.bytes.push_back(floor - out.base_bytes);
  }
  return out;
}

/// The floors of the buckets that begin at `onset` or later: the one that contains it also contains what was before,
/// such as a load, however coarse it is.
Floors floors_from(const Scales& scales, std::size_t k, Timestamp onset) {
  return floors_since(scales, k, onset + from_seconds(Scales::width_s(k)) - Duration{1});
}

double squares_around(const Fit& line, const Floors& floors) {
  double squares = 0;
  for (std::size_t i = 0; i < floors.t.size(); ++i) {
    const double r = line.residual(floors.t[i], floors.bytes[i]);
    squares += r * r;
  }
  return squares;
}

std::vector<double> part(const std::vector<double>& v, std::size_t from, std::size_t to) {
  return {v.begin() + static_cast<std::ptrdiff_t>(from), v.begin() + static_cast<std::ptrdiff_t>(to)};
}

Fit line_through(const Floors& floors, std::size_t from, std::size_t to) {
  return fit_slope(moments_of(part(floors.t, from, to), part(floors.bytes, from, to)));
}

/// Excludes what comes before a large step, a load, from a rise of `net_bytes` since `hint`.
void leave_out_loads_before(Floors& floors, Timestamp hint, double net_bytes) {
  std::size_t from = 0;
  for (std::size_t i = 1; i < floors.t.size() && floors.at(floors.t[i]) <= hint; ++i)
    if (floors.bytes[i] - floors.bytes[i - 1] > kJumpShare * net_bytes) from = i;
  if (from == 0) return;
  floors.t.erase(floors.t.begin(), floors.t.begin() + static_cast<std::ptrdiff_t>(from));
  floors.bytes.erase(floors.bytes.begin(), floors.bytes.begin() + static_cast<std::ptrdiff_t>(from));
}

/// The last floor at the beginning that a load led to: a step much larger than all that follow, which keep rising.
std::size_t end_of_load(const Floors& floors) {
  const std::size_t n = floors.t.size();
  double largest_after = 0;
  const std::size_t latest = std::min(n / 3, kMostLoadBuckets);
  for (std::size_t i = n; i-- > 1;) {
    const double step = floors.bytes[i] - floors.bytes[i - 1];
    if (i <= latest && step > kJumpShare * (floors.bytes[n - 1] - floors.bytes[i]) &&
        step > kMuchLarger * largest_after)
      return i;
    largest_after = std::max(largest_after, step);
  }
  return 0;
}

struct Onset {
  Timestamp time;
  double bytes = 0;
  double resolution_s = 0;
};

/// Where the floor, which had stood still, began to rise; nullopt if it had not, or if it bends.
std::optional<Onset> end_of_standstill(const Floors& floors) {
  const std::size_t n = floors.t.size();
  const auto kink = n < kLeastPoints ? std::nullopt : broken_line(floors.t, floors.bytes);
  if (!kink || !(kink->late_slope_per_s > 0)) return std::nullopt;
  const double rounding = kRoundingShare * floors.rise();
  const double line_squares = squares_around(line_through(floors, 0, n), floors);
  const double before = kink->early_slope_per_s * (floors.t[kink->at] - floors.t[0]);
  if (std::abs(before) > kStandShare * floors.rise() ||
      !explains_better(kink->squares, line_squares, static_cast<double>(n) * rounding * rounding, n,
                       kKinkParameters - kLineParameters))
    return std::nullopt;
  double stood_bytes = 0;
  for (std::size_t i = 0; i < kink->at; ++i) stood_bytes += floors.bytes[i] / static_cast<double>(kink->at);
  // Between two buckets, where the rise meets the level at which the floor stood.
  const Fit late = line_through(floors, kink->at + (n - kink->at > kLeastPoints / 2 ? 1 : 0), n);
  const double knot_s = floors.t[kink->at];
  double t_s = knot_s;
  if (late.slope_per_s > 0)
    t_s = std::clamp(knot_s + (stood_bytes - late.at(knot_s)) / late.slope_per_s, knot_s - floors.width_s,
                     knot_s + floors.width_s);
  return Onset{floors.at(t_s), floors.base_bytes + stood_bytes, floors.width_s};
}

/// How far back the rise continues, at about the same rate, before `onset`; nullopt if it does not.
std::optional<Onset> earlier_part(const Floors& floors, Timestamp onset, double onset_bytes) {
  const double onset_rise = onset_bytes - floors.base_bytes;
  const double rate = (floors.bytes.back() - onset_rise) / seconds_between(onset, floors.at(floors.t.back()));
  std::size_t i = 0;
  while (i + 1 < floors.t.size() && floors.bytes[i + 1] <= floors.bytes[0] + kStandShare / 2 * floors.rise()) ++i;
  const double before_s = seconds_between(floors.at(floors.t[i]), onset);
  const double before = onset_rise - floors.bytes[i];
  for (std::size_t k = i + 1; k < floors.t.size() && floors.at(floors.t[k]) <= onset; ++k)
    if (floors.bytes[k] - floors.bytes[k - 1] > kMostlyLoad * before) return std::nullopt;
  if (before_s <= 0 || !(rate > 0) || before < rate / kAlikeRates * before_s || before > kAlikeRates * rate * before_s)
    return std::nullopt;
  return Onset{floors.at(floors.t[i]), floors.base_bytes + floors.bytes[i], floors.width_s};
}

/// Whether the floors show that the growth began at `other` and not at `onset`: an onset is moved by evidence, not
/// because the best place is a different one each time.
bool refutes(const Floors& floors, Timestamp onset, Timestamp other) {
  const auto squares = [&](Timestamp knot) {
    return squares_with_knot(floors.t, floors.bytes, seconds_between(floors.from, knot));
  };
  const double rounding = kRoundingShare * floors.rise();
  const auto n = static_cast<double>(floors.t.size());
  return explains_better(squares(other), squares(onset), n * rounding * rounding, floors.t.size(),
                         kKinkParameters - kParabolaParameters);
}

}  // namespace

std::size_t Growth::level(const Scales& scales, std::size_t finest) const {
  return reaching(scales, finest, onset_);
}

void Growth::see(const Scales& scales, std::size_t finest, const Evidence& e, double confidence, Timestamp now) {
  const bool is_jump = e.largest_step >= kMostlyJump;
  // What first looked like a jump, and its aftermath, has become a growth: only now is it known where it began.
  if (!lives_ && e.start <= high_at_ && e.start >= onset_ - from_seconds(kOnsetShare * seconds_between(onset_, now)))
    lives_ = true;  // it had only stood still, and the window reaches back into it
  if (!lives_ || (of_jump_ && !is_jump)) {
    end();
    ++number_;
    lives_ = true;
    of_jump_ = is_jump;
    onset_ = e.start;
    onset_bytes_ = e.start_bytes;
  }
  // Ripples on a level that stands still do not keep it alive.
  const double top_bytes = e.start_bytes + e.net_bytes;
  if (top_bytes - high_bytes_ > kNewHighShare * std::max(0.0, high_bytes_ - onset_bytes_)) {
    seen_ = high_at_ = now;
    high_bytes_ = top_bytes;
  }
  seen_level_ = e.level;
  confidence_ = std::max(confidence_, confidence);
  if (seconds_between(onset_, now) >= kReviewRatio * reviewed_age_s_) review(scales, finest, now);
}

void Growth::review(const Scales& scales, std::size_t finest, Timestamp now) {
  const bool first = reviewed_age_s_ == 0;
  reviewed_age_s_ = seconds_between(onset_, now);
  if (changes_regime(scales, finest, now)) return;
  const Floors own = floors_from(scales, level(scales, finest), onset_);
  if (const std::size_t loaded = own.t.size() < kLeastPoints ? 0 : end_of_load(own); loaded > 0) {
    onset_ = own.at(own.t[loaded]);
    onset_bytes_ = own.base_bytes + own.bytes[loaded];
    reviewed_age_s_ = std::max(1.0, seconds_between(onset_, now));
  }
  const Timestamp since = onset_ - from_seconds(kLookBack * reviewed_age_s_);
  Floors floors = floors_since(scales, reaching(scales, finest, since), since);
  leave_out_loads_before(floors, onset_, high_bytes_ - onset_bytes_);
  if (floors.t.size() < kLeastPoints || !(floors.rise() > 0)) return;
  auto onset = end_of_standstill(floors);
  if (!onset && own.t.size() >= kLeastPoints && own.rise() > 0) onset = end_of_standstill(own);
  if (!onset) onset = earlier_part(floors, onset_, onset_bytes_);
  if (!onset) return;
  const double moves_s = std::abs(seconds_between(onset_, onset->time));
  if (!first && moves_s <= std::max(kResolution * onset->resolution_s, kOnsetShare * reviewed_age_s_)) return;
  if (!first && !refutes(floors, onset_, onset->time)) return;
  onset_ = onset->time;
  onset_bytes_ = onset->bytes;
  reviewed_age_s_ = std::max(1.0, seconds_between(onset_, now));
}

/// Two straight lines, of which the later one is much slower and has lasted: a load, and what follows it. A rise that
/// settles bends all the way.
bool Growth::changes_regime(const Scales& scales, std::size_t finest, Timestamp now) {
  const std::size_t k = level(scales, finest);
  const Floors floors = floors_from(scales, k, onset_);
  const std::size_t n = floors.t.size();
  if (n < 2 * kLeastPoints || !(floors.rise() > 0)) return false;
  const auto kink = broken_line(floors.t, floors.bytes);
  if (!kink || !(kink->late_slope_per_s > 0) || kink->late_slope_per_s >= kSlower * kink->early_slope_per_s)
    return false;
  const double knot_s = floors.t[kink->at];
  if (floors.t.back() - knot_s < kOutlasts * knot_s || n - kink->at < kLeastPoints) return false;
  const Fit late = line_through(floors, kink->at + 1, n);
  const double rise = late.slope_per_s * (floors.t.back() - knot_s);
  if (late.at(knot_s) - floors.bytes.front() < kSlower * rise) return false;
  // The knot lies between two buckets: the points next to it are on neither line.
  if (!(rise > 0) || bends(part(floors.t, kink->at + 2, n), part(floors.bytes, kink->at + 2, n), kRoundingShare * rise))
    return false;
  const Fit early = line_through(floors, 0, std::max<std::size_t>(kink->at + 1, 2));
  double t_s = knot_s;
  if (early.slope_per_s > late.slope_per_s)
    t_s = std::clamp(t_s + (late.at(t_s) - early.at(t_s)) / (early.slope_per_s - late.slope_per_s),
                     knot_s - floors.width_s, knot_s + floors.width_s);
  onset_ = floors.at(t_s);
  onset_bytes_ = floors.base_bytes + late.at(t_s);
  confidence_ = 0;
  follows_ = true;
  foretold_age_s_ = 0;
  foretold_.reset();
  reviewed_age_s_ = seconds_between(onset_, now);
  return true;
}

bool Growth::wants_forecast(Timestamp now) const {
  return lives_ && seconds_between(onset_, now) >= kForecastRatio * foretold_age_s_;
}

void Growth::foretell(const std::optional<Interval>& oom_in_s, Timestamp now) {
  foretold_age_s_ = seconds_between(onset_, now);
  if (!oom_in_s || !(oom_in_s->low > 0)) return foretold_.reset();
  const Interval predicted = narrowed(*oom_in_s, now);
  foretold_ = Foretold{now + from_seconds(predicted.mid), std::log(predicted.high / predicted.mid)};
}

Interval Growth::narrowed(const Interval& oom_in_s, Timestamp now) const {
  if (!foretold_ || !(oom_in_s.low > 0)) return oom_in_s;
  const double left_s = seconds_between(now, foretold_->end);
  const double spread = std::log(oom_in_s.high / oom_in_s.mid);
  if (left_s <= 0 || spread <= foretold_->spread || std::abs(std::log(oom_in_s.mid / left_s)) > foretold_->spread)
    return oom_in_s;
  const double factor = std::exp(foretold_->spread);
  return {oom_in_s.mid / factor, oom_in_s.mid, oom_in_s.mid * factor};
}

void Growth::check(const Scales& scales, std::size_t finest, bool stands, Timestamp now) {
  if (!lives_) return;
  const Level& level = scales.level(seen_level_);
  if (level.size() > 0 && scales.start_of(seen_level_, level.back().slot) >= onset_ &&
      static_cast<double>(level.back().peak_bytes) - onset_bytes_ < kHalfKept * (high_bytes_ - onset_bytes_))
    return end();
  if (stands || seconds_between(seen_, now) < std::max(kUnseen_s, kUnseenShare * seconds_between(onset_, now))) return;
  seen_ = now;
  const Pause pause = pause_of(scales, finest, onset_, high_bytes_ - onset_bytes_, now);
  // A short rise ends sooner than a pause does: what comes next is another growth.
  lives_ = pause.still_s <= std::min(pause.longest_s(), std::max(kUnseen_s, kOutlasts * pause.rose_s));
}

}  // namespace vramtrack
