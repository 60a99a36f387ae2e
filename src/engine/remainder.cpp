#include "engine/remainder.hpp"

#include <algorithm>
#include <cmath>

namespace vramtrack {
namespace {

/// A process that was absent from this many listings is no longer listed; until then, it was only missed.
constexpr double kMissedPeriods = 3;
/// If nothing is listed, the lowest of this many looks certainly contains no job that a listing missed.
constexpr int kLooks = 8;
/// Periods that differ by less are the same; a look after this many periods cannot have missed a listing.
constexpr double kSamePeriod = 1.5;
/// A single reading may fall between two events; two in a row do not.
constexpr int kSeenTwice = 2;
/// How fast the estimate of a period forgets a gap.
constexpr double kForget = 0.1;

void note_period(double& period_s, const std::optional<Timestamp>& last, Timestamp time) {
  if (!last || time <= *last) return;
  const double interval_s = seconds_between(*last, time);
  period_s = period_s == 0 || interval_s < period_s ? interval_s : period_s + kForget * (interval_s - period_s);
}

}  // namespace

void Remainder::read(Timestamp time, std::uint64_t used_bytes) {
  if (now_ && time == now_->time) {
    now_->used_bytes = static_cast<double>(used_bytes);
    return;
  }
  note_period(reading_period_s_, now_ ? std::optional(now_->time) : std::nullopt, time);
  before_ = now_;
  least_used_bytes_ = std::min(least_used_bytes_, static_cast<double>(used_bytes));
  now_ = Reading{time, static_cast<double>(used_bytes)};
}

void Remainder::list(SeriesId process, Timestamp time, std::uint64_t bytes) {
  if (!last_listing_ || time > *last_listing_) {
    note_period(listing_period_s_, last_listing_, time);
    last_listing_ = time;
  }
  // A process that holds nothing is not listed again until it holds something.
  if (bytes == 0)
    held_.erase(process);
  else
    held_[process] = {static_cast<double>(bytes), time};
}

void Remainder::also(SeriesId series, std::uint64_t bytes) {
  if (bytes == 0)
    also_.erase(series);
  else
    also_[series] = static_cast<double>(bytes);
}

void Remainder::end(SeriesId process, Timestamp time, double release_s) {
  const auto it = held_.find(process);
  if (it == held_.end()) return;
  Release release{it->second.bytes, time + from_seconds(release_s), {process, time, it->second.bytes}};
  for (Release& other : releases_) other.of.is_one_of_several = release.of.is_one_of_several = true;
  releases_.push_back(release);
  held_.erase(it);
}

double Remainder::look_s() const {
  return listing_period_s_ > kSamePeriod * reading_period_s_ ? kSamePeriod * listing_period_s_ : 0;
}

double Remainder::longest_silence_s() const {
  return kMissedPeriods * std::max(listing_period_s_, reading_period_s_);
}

/// Processes that have not been listed for long are dropped: a log may not report that a process ended.
bool Remainder::all_listed(Timestamp time) {
  const double longest_s = longest_silence_s();
  std::erase_if(held_, [&](const auto& held) { return seconds_between(held.second.listed, time) > longest_s; });
  return std::all_of(held_.begin(), held_.end(), [&](const auto& held) { return held.second.listed == time; });
}

double Remainder::being_released(Timestamp time) {
  for (const Release& release : releases_) {
    if (release.until >= time || release.closes < kSeenTwice || 2 * release.bytes < release.of.held_bytes) continue;
    if (overdue_.empty()) base_bytes_ = value_.value_or(0);
    overdue_.push_back({release.of, release.bytes});
    overdue_.back().of.bytes = release.bytes;
  }
  std::erase_if(releases_, [&](const Release& release) { return release.until < time; });
  double bytes = 0;
  for (const Release& release : releases_) bytes += release.bytes;
  return bytes;
}

/// Memory no longer needed to explain the reading has been released.
void Remainder::shrink_releases(double most_bytes) {
  std::for_each(releases_.rbegin(), releases_.rend(), [&](Release& release) {
    release.bytes = std::clamp(release.bytes, 0.0, std::max(0.0, most_bytes));
    most_bytes -= release.bytes;
    ++release.closes;
  });
  std::erase_if(releases_, [](const Release& release) { return release.bytes <= 0; });
}

/// Memory no longer needed to explain the remainder has been released after all. The remainder itself follows two
/// listings later.
void Remainder::shrink_overdue() {
  base_bytes_ = std::min(base_bytes_, *value_);
  double most_bytes = *value_ - base_bytes_;
  std::for_each(overdue_.rbegin(), overdue_.rend(), [&](Overdue& overdue) {
    if (++overdue.closes < kSeenTwice) return;
    overdue.of.bytes = std::min(overdue.of.bytes, most_bytes);
    most_bytes -= overdue.of.bytes;
  });
  std::erase_if(overdue_, [](const Overdue& overdue) { return 2 * overdue.of.bytes < overdue.first_bytes; });
}

std::vector<Remainder::Unreleased> Remainder::unreleased() const {
  std::vector<Unreleased> found;
  for (const Overdue& overdue : overdue_)
    if (overdue.closes >= kSeenTwice) found.push_back(overdue.of);
  return found;
}

std::optional<std::uint64_t> Remainder::close(Timestamp time) {
  const bool listed_now = last_listing_ == time;
  const bool read_now = now_ && now_->time == time;
  const bool listed_ever = last_listing_.has_value();
  if (!listed_ever || !now_) return std::nullopt;
  // Between two listings, the processes are unknown. Once all have ended there is nothing to list; a process that has
  // come since would have been listed by the next look.
  const bool rests = held_.empty() && read_now && (!closed_ || seconds_between(*closed_, time) >= look_s());
  if (!listed_now && !rests) return std::nullopt;
  if (!all_listed(time)) return std::nullopt;
  if (!read_now && seconds_between(now_->time, time) > kMissedPeriods * reading_period_s_) return std::nullopt;

  double listed_bytes = 0;
  for (const auto& [id, held] : held_) listed_bytes += held.bytes;
  double also_bytes = 0;
  for (const auto& [id, bytes] : also_) also_bytes += bytes;
  counts_also_ = also_bytes > 0 && listed_bytes + also_bytes <= now_->used_bytes;
  if (counts_also_) listed_bytes += also_bytes;
  // A figure may be as old as the previous one: the device's always, the processes' if they are read separately.
  const double other_used = rests ? least_used_bytes_ : before_ ? before_->used_bytes : now_->used_bytes;
  const double other_listed = read_now ? listed_bytes : listed_before_.value_or(listed_bytes);
  const double exact = now_->used_bytes - listed_bytes;
  const Bounds seen{
      std::min(now_->used_bytes, other_used) - std::max(listed_bytes, other_listed) - being_released(time),
      std::max(now_->used_bytes, other_used) - std::min(listed_bytes, other_listed)};
  const Bounds before = bounds_.value_or(seen);
  bounds_ = seen;
  listed_before_ = listed_bytes;
  closed_ = time;
  looks_ = rests ? looks_ + 1 : 0;
  if (looks_ % kLooks == 0) least_used_bytes_ = now_->used_bytes;
  if (!value_) value_ = exact;
  value_ = std::clamp(*value_, std::min(before.low, seen.low), std::max(before.high, seen.high));
  shrink_releases(exact - *value_);
  shrink_overdue();
  return static_cast<std::uint64_t>(std::llround(std::max(0.0, *value_)));
}

bool Remainder::known(Timestamp time) const {
  if (!closed_) return false;
  return seconds_between(*closed_, time) <= longest_silence_s() + reading_period_s_;
}

}  // namespace vramtrack
