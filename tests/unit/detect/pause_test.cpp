// How long a rise has stood still, compared with how it rose.
#include "detect/pause.hpp"

#include <gtest/gtest.h>

#include "../at.hpp"
#include "core/units.hpp"

namespace vramtrack {
namespace {

constexpr double kPeriod_s = 15;

/// Steps of 1 GiB at these minutes, up to `until_min`.
Pause after_steps(const std::vector<double>& steps_min, double until_min) {
  Scales scales;
  for (double t = 0; t <= until_min * 60; t += kPeriod_s) {
    double bytes = 4 * kGiB;
    for (const double step : steps_min) bytes += t >= step * 60 ? kGiB : 0;
    scales.observe(at(t), static_cast<float>(bytes));
  }
  return pause_of(scales, 0, at(0), static_cast<double>(steps_min.size()) * kGiB, at(until_min * 60));
}

TEST(PauseOfARise, ASteadyRiseDoesNotPause) {
  Scales scales;
  for (double t = 0; t <= 7200; t += kPeriod_s) scales.observe(at(t), static_cast<float>(kGiB + t * kMiB));
  const Pause pause = pause_of(scales, 0, at(0), 7200 * kMiB, at(7200));
  EXPECT_LT(pause.still_s, 0.1 * 7200);
  EXPECT_FALSE(pause.is_long());
}

TEST(PauseOfARise, IsHeldAgainstHalfOfTheRise) {
  // 80 min of rise, with 20 between steps: it may stand still for 40.
  const std::vector<double> steps{20, 40, 60, 80};
  EXPECT_FALSE(after_steps(steps, 99).is_long());
  EXPECT_TRUE(after_steps(steps, 105).is_long());
  EXPECT_FALSE(after_steps(steps, 115).has_ended());
  EXPECT_TRUE(after_steps(steps, 125).has_ended());
}

TEST(PauseOfARise, IsHeldAgainstTheUsualPauseBetweenItsSteps) {
  // 60 min of rise, with a mean of 30: 60 min count, not 30.
  const std::vector<double> steps{30, 60};
  EXPECT_NEAR(after_steps(steps, 62).usual_s, 1800, 180);
  EXPECT_FALSE(after_steps(steps, 112).has_ended());
  EXPECT_TRUE(after_steps(steps, 128).has_ended());
}

TEST(PauseOfARise, TenMinutesAreNeverTooLong) {
  EXPECT_FALSE(after_steps({1, 2, 3}, 12).has_ended());
  EXPECT_TRUE(after_steps({1, 2, 3}, 15).has_ended());
}

TEST(PauseOfARise, WhatHasFallenDoesNotStandStill) {
  Scales scales;
  for (double t = 0; t <= 6 * 3600; t += kPeriod_s) {
    const double rise = std::min(t, 7200.0) * kMiB;
    scales.observe(at(t), static_cast<float>(kGiB + (t < 10800 ? rise : rise / 2)));
  }
  EXPECT_FALSE(pause_of(scales, 0, at(0), 7200 * kMiB, at(6 * 3600)).has_ended());
}

TEST(PauseOfARise, OfNothingIsNone) {
  const Scales scales;
  EXPECT_FALSE(pause_of(scales, 0, at(0), 0, at(10)).has_ended());
}

}  // namespace
}  // namespace vramtrack
