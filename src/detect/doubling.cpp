#include "detect/doubling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "core/median.hpp"
#include "core/units.hpp"

namespace vramtrack {
namespace {

/// Drivers round, and something small may move in the same interval.
constexpr double kTwiceWithin = 0.08;
/// Smaller moves come from something besides the pool, as do those below kLeastStep.
constexpr double kNoiseShare = 1.0 / 8;
constexpr double kLeastStep = 16 * kMiB;
/// From here on, the rest of the limit is less than a pool.
constexpr double kFullShare = 0.9;
constexpr std::size_t kMostSteps = 16;

/// Rates within this factor of their median are one rate. Unrelated rates spread over
/// two decades: one in ten is that close by chance, as in Judge::precedent_odds().
constexpr double kOneRate = 1.4;
constexpr double kAlikeByChance = 0.1;
/// A cache or a warm-up that ends by itself; each pool that it has used up is evidence against it.
constexpr double kEnds = 0.4;
constexpr double kConfirmed = 0.83;
/// A pool that is not used up after this multiple of the earlier times is no longer used up at that rate.
constexpr double kOverdue = 1.5;
constexpr double kSpread = 1.3;  ///< of the remaining life, as a factor

}  // namespace

bool DoublingPool::observe(Timestamp time, double bytes, std::optional<double> limit_bytes) {
  const double rise = bytes - std::exchange(last_bytes_, bytes);
  if (!std::exchange(begun_, true)) return false;
  const double last_step = steps_.empty() ? 0 : steps_.back().bytes;
  if (std::abs(rise) < std::max(kLeastStep, kNoiseShare * last_step)) return false;
  if (rise < 0) {
    steps_.clear();
    return true;
  }
  const bool doubles = std::abs(rise / (2 * last_step) - 1) <= kTwiceWithin;
  const bool takes_the_rest =
      steps_.size() >= kLeastSteps && limit_bytes && rise < 2 * last_step && bytes >= kFullShare * *limit_bytes;
  if (!doubles && !takes_the_rest) steps_.clear();
  steps_.push_back({time, rise});
  if (steps_.size() > kMostSteps) steps_.erase(steps_.begin());
  return true;
}

std::vector<double> DoublingPool::rates() const {
  std::vector<double> out;
  for (std::size_t i = 1; i < steps_.size(); ++i)
    out.push_back(steps_[i - 1].bytes / std::max(1e-9, seconds_between(steps_[i - 1].time, steps_[i].time)));
  return out;
}

void DoublingJudge::observe(Timestamp time, double used_bytes) {
  last_ = time;
  last_bytes_ = used_bytes;
  if (pool_.observe(time, used_bytes, limit_bytes_)) decide();
  if (!suspecting_) return;
  const DoublingPool::Step& step = pool_.steps().back();
  if (seconds_between(step.time, time) > kOverdue * step.bytes / rate_bytes_per_s_)
    end("the pool no longer fills at its earlier rate");
}

void DoublingJudge::decide() {
  const std::vector<double> rates = pool_.rates();
  probability_ = 0;
  if (pool_.steps().size() >= DoublingPool::kLeastSteps) {
    std::vector<double> sorted = rates;
    rate_bytes_per_s_ = upper_median(std::span(sorted));
    // The first ones may belong to a start-up that took other memory, too.
    std::size_t alike = 0;
    for (auto rate = rates.rbegin(); rate != rates.rend(); ++rate, ++alike)
      if (*rate > kOneRate * rate_bytes_per_s_ || *rate < rate_bytes_per_s_ / kOneRate) break;
    const auto count = static_cast<double>(alike);
    if (alike >= 2) probability_ = 1 / (1 + std::pow(kAlikeByChance, count - 1) + kEnds / count);
  }
  if (probability_ < config_.confidence_threshold) {
    if (suspecting_) end("the pool no longer doubles at a steady rate");
    return;
  }
  suspecting_ = true;
  alerting_ |= probability_ >= kConfirmed;
}

void DoublingJudge::end(std::string reason) {
  suspecting_ = alerting_ = false;
  end_reason_ = std::move(reason);
}

int DoublingJudge::doublings_left() const {
  double free = limit_bytes_ ? *limit_bytes_ - last_bytes_ : 0;
  int doublings = 0;
  for (double next = 2 * pool_.steps().back().bytes; free >= next && doublings < 64; next *= 2, ++doublings)
    free -= next;
  return doublings;
}

Finding DoublingJudge::finding() const {
  Finding f;
  f.detector = "judge";
  f.confidence = kUnknownConfidence;
  if (!suspecting_) return f;
  f.confidence = probability_;
  f.leak = alerting_;
  f.stage = alerting_ ? Stage::confirmed : Stage::suspected;
  f.state = alerting_ ? State::leaking : State::growing;
  f.pattern = alerting_ ? Pattern::step_increase : Pattern::none;
  const double rate = rate_bytes_per_s_;
  f.growth_bytes_per_s = {rate / kOneRate, rate, rate * kOneRate};
  f.onset = pool_.steps().front().time;
  const DoublingPool::Step& step = pool_.steps().back();
  const double unused_bytes = std::max(0.0, step.bytes - rate * seconds_between(step.time, last_));
  std::string left;
  if (limit_bytes_) {
    const double left_s = (std::max(0.0, *limit_bytes_ - last_bytes_) + unused_bytes) / rate;
    if (alerting_)
      f.oom_in_s = Interval{left_s / kSpread, left_s, left_s * kSpread};
    else
      f.oom_if_growth_continues_s = left_s;
    const int doublings = doublings_left();
    left = doublings == 0
               ? "; it cannot double again, so memory runs out when what it holds and what is free are used up"
               : fmt::format("; {} doubling{} left", doublings, doublings == 1 ? "" : "s");
  }
  f.because = fmt::format(
      "grows like a doubling pool, which is how JAX and TensorFlow reserve memory: the last {} steps are each twice "
      "the one "
      "before, up to {}, and each was used up at {}{}",
      pool_.steps().size(), figures_.bytes(step.bytes), figures_.scaled_rate(rate), left);
  return f;
}

}  // namespace vramtrack
