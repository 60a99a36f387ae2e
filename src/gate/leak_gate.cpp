#include "gate/leak_gate.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace vramtrack::gate {
namespace {

constexpr double kSteady = 0.75;  ///< growth of the later half of the blocks, by that of the earlier half

}  // namespace

LeakGate::LeakGate(const GrowthLimits& limits, const Iterations& iterations)
    : limits_(limits), share_(limits), iterations_(iterations), next_look_(0) {
  // Twice what the test needs: up to half of the iterations may be warm-up.
  iterations_.most = std::max(iterations_.most, 2 * least_iterations(limits));
  iterations_.first = std::clamp<std::size_t>(iterations_.first, 1, iterations_.most);
  std::size_t looks = 1;
  for (std::size_t n = iterations_.first; n < iterations_.most; n *= 2) ++looks;
  // The first of several looks cannot fail alone.
  const std::size_t shares = std::max<std::size_t>(1, looks - 1);
  share_.error_rate = limits.error_rate / static_cast<double>(shares);
  share_.stated_error_rate = error_rate_words(limits.error_rate);
  if (shares > 1) share_.stated_error_rate += fmt::format(" over {} looks", shares);
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
  // Before the last look, only what does not slow down at all: more iterations will tell the rest.
  const bool fails = result_.outcome == Outcome::fails && (last || result_.late_to_early >= kSteady);
  if (result_.outcome == Outcome::fails && !fails) result_.outcome = Outcome::warming_up;
  // Not yet: it might be a warm-up that is longer than half of what was seen.
  if (fails && !failed_before_ && !last) result_.outcome = Outcome::warming_up;
  finished_ = last || (fails && failed_before_) || (result_.settled && result_.outcome == Outcome::passes);
  failed_before_ = fails;
  next_look_ = std::min(iterations_.most, 2 * used_bytes_.size());
}

}  // namespace vramtrack::gate
