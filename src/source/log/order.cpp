#include "source/log/order.hpp"

#include <algorithm>

#include "core/median.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kMostRises = 4096;
/// The period is the third quartile of the forward steps: a longer step is a pause, or due to the order of the rows.
constexpr std::size_t kPeriodNumerator = 3;
constexpr std::size_t kPeriodDenominator = 4;
/// With more than one backward step for every 3 forward steps, the forward steps do not show the period.
constexpr std::uint64_t kShuffledShare = 3;
/// A log that lists its newest rows first may have jitter, too: at most one forward step per 4 backward steps.
constexpr std::uint64_t kRiseShare = 4;
/// If its times are times of day, it also steps forward once a day: at most once per 16 backward steps.
constexpr std::uint64_t kMidnightShare = 16;
/// In the log of a single clock, no backward step spans more than this share of the log.
constexpr double kMostOfTheLog = 0.9;
/// Steps of one kind must outnumber the other 10 to 1 to decide.
constexpr std::uint64_t kMajority = 10;

std::int64_t ns(Timestamp time) {
  return time.time_since_epoch().count();
}

}  // namespace

bool OrderSurvey::Direction::see(std::size_t series, std::int64_t time) {
  if (series >= last.size()) last.resize(series + 1);
  Last& mine = last[series];
  const bool known = mine.stretch == stretch;
  if (known && mine.furthest - time > kClockJitter.count()) {
    // All series start a new stretch: if the others also step back here, it is the same step.
    ++steps;
    mine = {time, ++stretch};
    furthest = time;
    return true;
  }
  if (furthest - time > kInterleaving.count()) blocks = true;
  furthest = std::max(furthest, time);
  mine = {known ? std::max(mine.furthest, time) : time, stretch};
  return false;
}

void OrderSurvey::keep_rise(Duration rise) {
  if (++rises_seen_ % rise_every_ != 0) return;
  rises_.push_back(rise);
  if (rises_.size() < kMostRises) return;
  for (std::size_t i = 0; i < kMostRises / 2; ++i) rises_[i] = rises_[2 * i + 1];
  rises_.resize(kMostRises / 2);
  rise_every_ *= 2;
}

void OrderSurvey::see(std::uint64_t line, Timestamp time, SeriesId series) {
  const std::size_t at = index_of(series);
  if (at >= extents_.size()) extents_.resize(at + 1);
  Extent& extent = extents_[at];
  if (extent.samples == 0) {
    extent.earliest = extent.latest = time;
  } else {
    if (time > extent.last) keep_rise(time - extent.last);
    if (time < extent.last) ++falls_seen_;
    extent.earliest = std::min(extent.earliest, time);
    extent.latest = std::max(extent.latest, time);
  }
  extent.last = time;
  ++extent.samples;
  ++samples_;
  earliest_ = std::min(earliest_, time);
  latest_ = std::max(latest_, time);
  last_ = time;
  if (ahead_.see(at, ns(time)) && line_ == 0) line_ = line;
  behind_.see(at, -ns(time));
}

bool OrderSurvey::newest_first(bool wraps) const {
  return ahead_.steps > 0 && rises_seen_ * kRiseShare <= falls_seen_ &&
         (behind_.steps == 0 || (wraps && behind_.steps * kMidnightShare <= ahead_.steps));
}

bool OrderSurvey::is_shuffled() const {
  return ahead_.steps * kShuffledShare > rises_seen_;
}

Duration OrderSurvey::period() const {
  if (!is_shuffled() && !rises_.empty()) {
    std::vector<Duration> rises = rises_;
    return nth_smallest(std::span(rises), (rises.size() - 1) * kPeriodNumerator / kPeriodDenominator);
  }
  // Use the series with the most frequent samples. In such an order, a process that some readings do not list seems to
  // end and start again, and each of its apparent lives has only occasional samples across the whole log.
  Duration shortest{};
  for (const Extent& extent : extents_) {
    if (extent.latest == extent.earliest) continue;
    const Duration period = (extent.latest - extent.earliest) / static_cast<std::int64_t>(extent.samples - 1);
    if (shortest == Duration{} || period < shortest) shortest = period;
  }
  return shortest;
}

void StretchSurvey::close(const Stretch& stretch) {
  if (closed_.size() < kMostStretches) closed_.push_back(stretch);
}

void StretchSurvey::see(Timestamp time, SeriesId series) {
  const std::size_t at = index_of(series);
  if (at >= open_.size()) open_.resize(at + 1);
  Stretch& s = open_[at];
  const std::int64_t now = ns(time);
  const std::int64_t back_ns = s.is_open && s.last_ns - now > kClockJitter.count() ? s.last_ns - now : 0;
  if (s.is_open && back_ns == 0 && now - s.last_ns <= pause_.count()) {
    s.first_ns = std::min(s.first_ns, now);
    s.last_ns = std::max(s.last_ns, now);
    return;
  }
  if (s.is_open) close(s);
  s = {now, now, back_ns, index_of(series), true};
}

bool StretchSurvey::begins_before(const Stretch& a, const Stretch& b) const {
  if (a.series != b.series) return a.series < b.series;
  return a.first_ns != b.first_ns ? a.first_ns < b.first_ns : a.last_ns > b.last_ns;
}

LogOrder StretchSurvey::order() {
  for (const Stretch& s : open_)
    if (s.is_open) close(s);
  open_.clear();
  std::sort(closed_.begin(), closed_.end(), [this](const Stretch& a, const Stretch& b) { return begins_before(a, b); });
  // `b` does not begin before `a`. It lies among the samples of `a` if it also ends there, or if the two overlap by
  // more than jitter.
  const auto among = [](std::int64_t a_last, const Stretch& b) {
    return b.last_ns <= a_last || a_last - b.first_ns > kClockJitter.count();
  };
  std::uint64_t steps = 0;
  std::uint64_t of_clock = 0;
  std::int64_t reached = 0;  // latest end of the series' stretches so far; below: the second latest
  std::int64_t reached_twice = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t most_back = 0;
  bool is_one_clock = true;
  for (std::size_t i = 0; i < closed_.size(); ++i) {
    const Stretch& s = closed_[i];
    const bool first = i == 0 || closed_[i - 1].series != s.series;
    const bool last = i + 1 == closed_.size() || closed_[i + 1].series != s.series;
    if (first) {
      begin = s.first_ns;
      end = s.last_ns;
      most_back = 0;
      reached = reached_twice = INT64_MIN / 2;
    }
    if (s.back_ns > 0) {
      ++steps;
      most_back = std::max(most_back, s.back_ns);
      if (among(reached, s) || (!last && among(s.last_ns, closed_[i + 1]))) ++of_clock;
    }
    if (among(reached_twice, s)) is_one_clock = false;
    end = std::max(end, s.last_ns);
    reached_twice = std::max(reached_twice, std::min(reached, s.last_ns));
    reached = std::max(reached, s.last_ns);
    if (last && static_cast<double>(most_back) > kMostOfTheLog * static_cast<double>(end - begin)) is_one_clock = false;
  }
  if (steps == 0) return LogOrder::unclear;
  if (of_clock * kMajority <= steps) return LogOrder::by_time;
  if ((steps - of_clock) * kMajority <= steps && (is_one_clock || !is_dated_)) return LogOrder::as_written;
  return LogOrder::unclear;
}

}  // namespace vramtrack
