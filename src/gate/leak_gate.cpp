#include "gate/leak_gate.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace vramtrack::gate {
namespace {

constexpr double kRoom = 0.9;     ///< share of the capacity that may be filled
constexpr double kSteady = 0.75;  ///< growth of the later half of the blocks divided by that of the earlier half

}  // namespace

LeakGate::LeakGate(const GrowthLimits& limits, const Iterations& iterations, double capacity_bytes)
    : limits_(limits), share_(limits), iterations_(iterations), capacity_bytes_(capacity_bytes), next_look_(0) {
  // Allow twice as many as the test needs, because up to half of the iterations may be warm-up.
  iterations_.most = std::max(iterations_.most, 2 * least_iterations(limits));
  iterations_.first = std::clamp<std::size_t>(iterations_.first, 1, iterations_.most);
  std::size_t looks = 1;
  for (std::size_t n = iterations_.first; n < iterations_.most; n *= 2) ++looks;
  // The first of several looks cannot fail on its own.
  const std::size_t parts = std::max<std::size_t>(1, looks - 1);
  share_.error_rate = limits.error_rate / static_cast<double>(parts);
  share_.stated_error_rate = error_rate_words(limits.error_rate);
  if (parts > 1) share_.stated_error_rate += fmt::format(" over {} looks", parts);
  iterations_.most = std::max(iterations_.most, 2 * least_iterations(share_));
  next_look_ = iterations_.first;
  used_bytes_.reserve(iterations_.most);
}

void LeakGate::add(double used_bytes) {
  if (finished_) return;
  used_bytes_.push_back(used_bytes);
  if (used_bytes_.size() >= next_look_) look();
}

void LeakGate::look() {
  result_ = test_growth(used_bytes_, share_);
  const bool last = used_bytes_.size() >= iterations_.most;
  next_look_ = std::min(iterations_.most, 2 * used_bytes_.size());
  // Until it is full, a cache grows as steadily as a leak, so a leak is reported only at the last look, unless memory
  // would run out before the next one: then even a cache would not fit.
  const bool fails = result_.outcome == Outcome::fails && result_.late_to_early >= kSteady;
  const double at_next_look =
      used_bytes_.back() + result_.growth_bytes * static_cast<double>(next_look_ - used_bytes_.size());
  const bool no_room = fails && failed_before_ && at_next_look > kRoom * capacity_bytes_;
  if (result_.outcome == Outcome::fails && !last && !no_room) result_.outcome = Outcome::warming_up;
  // A rare leak may lie within the part that was cut off as warm-up.
  const bool long_enough = 4 * result_.tested_iterations >= 3 * used_bytes_.size();
  finished_ = last || no_room || (result_.settled && result_.outcome == Outcome::passes && long_enough);
  failed_before_ = fails;
}

}  // namespace vramtrack::gate
