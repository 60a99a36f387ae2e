#include "engine/paging.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "core/median.hpp"
#include "core/units.hpp"

namespace vramtrack {
namespace {

/// For a life that is shorter than three times the lead time, the last third is what a person gets.
constexpr double kLifeShare = 1.0 / 3;
/// From here on, too little is left to wait for the next move.
constexpr double kNearlyFull = 0.9;

// How long an alert stands over a line that does not move.

constexpr double kLeastPatience_s = kSecondsPerMinute;
constexpr double kLeastPeriods = 2;
constexpr double kLeftShare = 0.5;
constexpr double kUsualPauses = 2;
constexpr double kMostPatience_s = kSecondsPerHour;
/// Near a full card: the night of a service whose clients sleep.
constexpr double kNight_s = 12 * kSecondsPerHour;
/// Nothing is raised that has stood still for this share of its patience, and for longer than usual.
constexpr double kFreshShare = 0.5;

/// A rise to a height at which an earlier run stood still must pass it by this share to count as something else.
constexpr double kSameHeight = 0.02;

constexpr double kQuantumShare = 0.05;
constexpr double kQuantum_s = 5 * kSecondsPerMinute;
constexpr double kWindowShare = 1.0 / 8;
constexpr double kMostWindow_s = 10 * kSecondsPerMinute;
/// The time of a move is known to this share of its quantum.
constexpr double kStepShare = 0.5;

double patience_s(const PageFacts& f) {
  const double left_s = f.left_s ? f.left_s->mid : kMostPatience_s / kLeftShare;
  // Between two lows, nothing can be seen to move.
  const double cycle_s = kUsualPauses * f.cycle_s;
  return std::max(cycle_s, std::min(kMostPatience_s, std::max({kLeastPatience_s, kLeastPeriods * f.period_s,
                                                               kLeftShare * left_s, kUsualPauses * f.usual_pause_s})));
}

/// For how long a line that stands still counts as rising: no longer than it usually pauses.
double fresh_s(const PageFacts& f) {
  return std::max(kFreshShare * patience_s(f), std::min(kMostPatience_s, f.usual_pause_s));
}

std::string basis_words(Basis basis) {
  switch (basis) {
    case Basis::allocator:
      return "the framework's allocator shows that live memory grows";
    case Basis::lifetimes:
      return "what the program allocates stays";
    case Basis::runs:
      return "this run differs from healthy earlier runs of the program";
    case Basis::siblings:
      return "the other ranks of the job do not grow";
    case Basis::curve:
      break;
  }
  return {};
}

/// Why the alert is due now; `what` is never `withdraw`.
PageDecision due(const PageFacts& f, const Scale& scale) {
  if (f.stage == Stage::confirmed_at_end) return {Paging::shown, "the recording ended before an alert was due"};
  if (f.at_rest) return {Paging::shown, "memory does not grow at this moment"};
  if (f.still_s > fresh_s(f) || has_stood_still(f)) return {Paging::shown, still_words(f, scale)};
  if (f.in_band) return {Paging::shown, "the device has moved up and down between these levels before"};
  if (f.lead_s <= 0) return {Paging::page, {}};
  if (f.basis != Basis::curve) return {Paging::page, basis_words(f.basis)};
  if (f.grown_s < f.least_s)
    return {Paging::shown,
            fmt::format("it has grown for {}; an alert requires {}", scale.span(f.grown_s), scale.span(f.least_s))};
  if (f.left_bytes && *f.left_bytes < f.free_bytes)
    return {Paging::shown, fmt::format("the growth is slowing down: it will add at most {}, and {} are free",
                                       scale.bytes(*f.left_bytes), scale.bytes(f.free_bytes))};
  if (f.stood_bytes && f.used_bytes < (1 + kSameHeight) * *f.stood_bytes &&
      kSameHeight * *f.stood_bytes < f.used_bytes + f.free_bytes - *f.stood_bytes)
    return {Paging::shown, fmt::format("an earlier run levelled off at {}", scale.bytes(*f.stood_bytes))};
  if (!f.left_s) return {Paging::page, "it is not known how much time is left"};
  const double needed = needed_s(f.lead_s, f.grown_s, f.left_s->mid);
  const std::string left = scale.duration(f.left_s->low);
  const std::string lead = "lead-time is " + scale.duration(f.lead_s);
  const bool is_short = needed < f.lead_s;  // the growth ends before the whole lead time could be given
  if (f.left_s->low <= needed)
    return {Paging::page, fmt::format("memory may run out in {}{}; {}", left,
                                      is_short ? ", within the last third of this growth" : "", lead)};
  return {Paging::shown,
          fmt::format("memory lasts at least {}; an alert is raised when {} are left{}", left, scale.span(needed),
                      is_short ? fmt::format(", the last third of this growth, which is less than lead-time ({})",
                                             scale.duration(f.lead_s))
                               : std::string(" (lead-time)"))};
}

}  // namespace

bool has_stood_still(const PageFacts& f) {
  // A level is known to be held after two windows, which end with a sample.
  return f.flat_s > fresh_s(f) + 2 * f.period_s;
}

std::string still_words(const PageFacts& f, const Scale& scale) {
  const std::string span = scale.span(std::max(f.still_s, f.flat_s));
  return f.of_device
             ? fmt::format("the device's memory has not grown for {}: others release as much as the process takes",
                           span)
             : fmt::format("memory has not grown for {}", span);
}

bool is_nearly_full(double full_ratio) {
  return full_ratio >= kNearlyFull;
}

double needed_s(double lead_s, double grown_s, double left_s) {
  return std::min(lead_s, kLifeShare * (std::max(0.0, grown_s) + std::max(0.0, left_s)));
}

Move Move::of(std::optional<double> free_bytes, double growth_bytes_per_s, double grown_s,
              const std::optional<Interval>& left_s, double cycle_s) {
  Move move;
  const double of_time = std::max(0.0, growth_bytes_per_s) * kQuantum_s;
  const double of_free = free_bytes ? kQuantumShare * std::max(0.0, *free_bytes) : of_time;
  move.quantum_bytes = of_time > 0 ? std::min(of_free, of_time) : of_free;
  const double span_s = left_s ? std::min(grown_s, left_s->mid) : grown_s;
  move.window_s = std::max(cycle_s, std::clamp(kWindowShare * span_s, 0.0, kMostWindow_s));
  return move;
}

void Standstill::observe(Timestamp time, double bytes, const Move& move) {
  last_ = time;
  reach(time, bytes, kStepShare * move.quantum_bytes);
  if (!begun_) {
    begun_ = true;
    moved_ = flat_ = window_begun_ = time;
    highest_bytes_ = lowest_bytes_ = lowest_before_bytes_ = bytes;
    return;
  }
  if (seconds_between(window_begun_, time) >= move.window_s) {
    window_begun_ = time;
    lowest_before_bytes_ = std::exchange(lowest_bytes_, bytes);
    knows_a_window_ = true;
  }
  lowest_bytes_ = std::min(lowest_bytes_, bytes);
  const double level_bytes = std::min(lowest_bytes_, lowest_before_bytes_);
  // It may have begun at the top of a cycle.
  if (!knows_a_window_) {
    moved_ = flat_ = time;
    highest_bytes_ = level_bytes;
    return;
  }
  if (level_bytes > highest_bytes_ + move.quantum_bytes) {
    // The time before the first visible move is not a pause between two.
    if (has_moved_) gaps_s_[gaps_++ % kGaps] = static_cast<float>(seconds_between(moved_, time));
    has_moved_ = true;
    moved_ = time;
    flat_ = reached_at(level_bytes);
    highest_bytes_ = level_bytes;
  }
  if (std::abs(bytes - highest_bytes_) > move.quantum_bytes) flat_ = time;
}

/// Keeps the levels that the line has held until now, in steps of `step_bytes`, each with the time at which it was
/// reached.
void Standstill::reach(Timestamp time, double bytes, double step_bytes) {
  Timestamp since = time;
  while (held_count_ > 0 && held_[held_count_ - 1].bytes >= bytes) since = held_[--held_count_].since;
  if (held_count_ > 0 && bytes < held_[held_count_ - 1].bytes + step_bytes) return;
  if (held_count_ == held_.size()) {  // the lowest is the first that has been a level for two windows
    std::shift_left(held_.begin(), held_.end(), 1);
    --held_count_;
  }
  held_[held_count_++] = {since, bytes};
}

/// When the line reached a level that it has held since.
Timestamp Standstill::reached_at(double level_bytes) const {
  Timestamp since = held_[0].since;
  for (std::size_t i = 1; i < held_count_ && held_[i].bytes <= level_bytes; ++i) since = held_[i].since;
  return since;
}

double Standstill::usual_s() const {
  constexpr std::size_t kLeastGaps = 2;
  if (gaps_ < kLeastGaps) return 0;
  std::array<float, kGaps> sorted = gaps_s_;
  return static_cast<double>(upper_median(std::span(sorted).first(std::min(gaps_, kGaps))));
}

PageDecision decide_page(const PageFacts& f, const Scale& scale) {
  if (f.paged) {
    if (f.held) return {Paging::page, {}};  // it stands still because of the policy
    if (f.given_back) return {Paging::withdraw, "the program is releasing the growth"};
    if (f.still_s > (is_nearly_full(f.full_ratio) ? kNight_s : patience_s(f)))
      return {Paging::withdraw, "the growth did not continue: " + still_words(f, scale)};
    // That the curve no longer shows it is no reason near a full card.
    if (f.leak || is_nearly_full(f.full_ratio)) return {Paging::page, {}};
    return {Paging::withdraw, "the growth did not continue"};
  }
  if (f.leak) return due(f, scale);
  return {f.stage == Stage::none ? Paging::nothing : Paging::suspected, {}};
}

}  // namespace vramtrack
