#include "detect/run_curve.hpp"

#include <algorithm>
#include <cmath>

#include "core/units.hpp"

namespace vramtrack {
namespace {

constexpr double kParts = 16;
constexpr double kLeastPart_s = 10;
/// A floor has risen when it is higher by this share, and by no less than kLeastRise_bytes.
constexpr double kRiseShare = 0.02;
constexpr double kLeastRise_bytes = 32 * kMiB;
/// A run that still rose in this last share of its life, or within its last kLastParts parts, by kRisingShare of its
/// level in the second half, had not settled. A floor is that of two parts: a rise in the last two does not show.
constexpr double kLastShare = 0.15;
constexpr double kLastParts = 2;
constexpr double kRisingShare = 0.05;
constexpr double kLeastRising_bytes = 64 * kMiB;
/// A run with an active alert did settle if its floor was flat for this last share of its life: an alert outlives
/// the growth.
constexpr double kStillShare = 0.25;

std::size_t point_of(double age_s) {
  std::size_t point = 0;
  while (point + 1 < FinishedRun::kPoints && age_s > FinishedRun::age_s(point)) ++point;
  return point;
}

double part_s(std::size_t point) {
  return std::max(kLeastPart_s, FinishedRun::age_s(point) / kParts);
}

}  // namespace

void RunCurve::observe(double age_s, double bytes) {
  ++samples_;
  if (held_age_s_ >= 0) take(held_age_s_, held_bytes_);
  held_age_s_ = age_s;
  held_bytes_ = bytes;
}

void RunCurve::take(double age_s, double bytes) {
  peak_bytes_ = std::max(peak_bytes_, bytes);
  while (point_ + 1 < FinishedRun::kPoints && age_s > FinishedRun::age_s(point_)) {
    close();
    part_ = -1;
    floor_bytes_[++point_] = static_cast<float>(highest_bytes_);
  }
  const auto part = static_cast<std::int64_t>(age_s / part_s(point_));
  if (part != part_) {
    close();
    part_ = part;
    open_bytes_ = bytes;
    open_age_s_ = age_s;
  }
  open_bytes_ = std::min(open_bytes_, bytes);
}

void RunCurve::close() {
  if (part_ < 0) return;
  if (prior_age_s_ >= 0) {
    highest_bytes_ = std::max(highest_bytes_, std::min(prior_bytes_, open_bytes_));
    floor_bytes_[point_] = static_cast<float>(highest_bytes_);
    if (highest_bytes_ > settled_bytes_ + std::max(kRiseShare * settled_bytes_, kLeastRise_bytes)) {
      settled_bytes_ = highest_bytes_;
      warm_up_s_ = prior_age_s_;
    }
  }
  prior_bytes_ = open_bytes_;
  prior_age_s_ = open_age_s_;
}

FinishedRun RunCurve::run(Timestamp begin, Timestamp end, bool alerted, bool out_of_memory, bool from_start) const {
  RunCurve whole = *this;
  const double life_s = seconds_between(begin, end);
  // A later one shows what happened to the memory.
  if (held_age_s_ >= 0 && held_age_s_ <= life_s) whole.take(held_age_s_, held_bytes_);
  whole.close();
  FinishedRun run;
  run.begin = begin;
  run.end = end;
  run.seen_from_start = from_start;
  run.settled_bytes = whole.highest_bytes_;
  run.peak_bytes = whole.peak_bytes_;
  if (from_start && samples_ > 0) {
    run.warm_up_s = whole.warm_up_s_;
    run.points = whole.point_ + 1;
    run.floor_bytes = whole.floor_bytes_;
  }
  const std::size_t half = point_of(life_s / 2);
  const double before = half > 0 ? static_cast<double>(whole.floor_bytes_[half - 1]) : 0;
  const bool still_rose =
      whole.warm_up_s_ >= life_s - std::max(kLastShare * life_s, kLastParts * part_s(whole.point_)) &&
      whole.highest_bytes_ - before >= std::max(kRisingShare * whole.highest_bytes_, kLeastRising_bytes);
  if (out_of_memory)
    run.outcome = RunOutcome::out_of_memory;
  else if (alerted && whole.warm_up_s_ >= (1 - kStillShare) * life_s)
    run.outcome = RunOutcome::leaked;
  else if (still_rose)
    run.outcome = RunOutcome::rising;
  return run;
}

}  // namespace vramtrack
