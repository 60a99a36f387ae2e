// The other explanations of a rise: the weight of each rival in an example that can be checked by hand.
#include "detect/rivals.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace vramtrack {
namespace {

constexpr double kMiB = 1048576;
constexpr double kGiB = 1024 * kMiB;

/// One sample per second for `seconds`, and one more to close the last bucket.
Scales watch(int seconds, const std::function<double(double)>& bytes) {
  Scales scales;
  for (int s = 0; s <= seconds; ++s)
    scales.observe(Timestamp{from_seconds(s)}, static_cast<float>(bytes(static_cast<double>(s))));
  return scales;
}

/// A whole level.
class Whole {
 public:
  Whole(const Scales& scales, std::size_t k)
      : floors_(scales, k), window_{scales, scales.level(k), floors_, k, 0, scales.level(k).size() - 1, 0, 0} {}
  operator const Window&() const { return window_; }

 private:
  Floors floors_;
  Window window_;
};

TEST(Rivals, ChanceIsTheNumberOfStartsOverTheEvidence) {
  EXPECT_NEAR(noise_weight(5.65, 10), 0.0352, 1e-3);  // docs/detectors/judge.md
  EXPECT_DOUBLE_EQ(noise_weight(0, 1), 5);            // at least five starts
}

TEST(Rivals, FiveRisingFloorsAreInOrderByChanceOnceIn120) {
  const Scales scales = watch(50, [](double t) { return kGiB + t * kMiB; });
  ASSERT_EQ(scales.level(0).size(), 5U);
  EXPECT_NEAR(order_by_chance(Whole(scales, 0)), 1.0 / 120, 1e-9);
  const Scales falling = watch(50, [](double t) { return kGiB - t * kMiB; });
  EXPECT_DOUBLE_EQ(order_by_chance(Whole(falling, 0)), 0.5);
}

TEST(Rivals, MannKendallOfTenRisesIsTheTablesZ) {
  // S = 45, variance 10 * 9 * 25 / 18 = 125, z = 44 / 11.18 = 3.935: p = 4.15e-5.
  const Scales scales = watch(100, [](double t) { return kGiB + t * kMiB; });
  EXPECT_NEAR(order_by_chance(Whole(scales, 0)), 4.15e-5, 2e-6);
}

TEST(Rivals, StepsThatKeepTimeAreNoChance) {
  const auto stairs = [](std::initializer_list<double> at) {
    return watch(450, [times = std::vector<double>(at)](double t) {
      double bytes = 4 * kGiB;
      for (const double step_s : times) bytes += t >= step_s ? 512 * kMiB : 0;
      return bytes;
    });
  };
  const Scales regular = stairs({50, 130, 210, 290, 370});
  const Scales random = stairs({50, 70, 90, 300, 370});
  EXPECT_GT(keeps_time(Whole(regular, 0), 32 * kMiB), 10);
  EXPECT_DOUBLE_EQ(keeps_time(Whole(random, 0), 32 * kMiB), 1);
  EXPECT_DOUBLE_EQ(keeps_time(Whole(regular, 0), 1024 * kMiB), 1) << "smaller steps are how allocators count";
  EXPECT_DOUBLE_EQ(keeps_time(Whole(stairs({50, 130, 210}), 0), 32 * kMiB), 1) << "three are too few";
}

TEST(Rivals, ASteadyRiseGoesOnAndASlowingOneSettles) {
  EXPECT_GT(going_on_ratio(0.5, 0.01), 10);
  EXPECT_LT(going_on_ratio(0.30, 0.01), 0.01);
  EXPECT_NEAR(going_on_ratio(0.45, 0.3), 1, 0.6) << "what is measured badly says little";
}

TEST(Rivals, ARampThatBeganWithItsProgramIsLikelierThanOneAfterAQuietHour) {
  const double minutes = 60;
  const double with_program = ramp_weight(10 * minutes, 2 * 3600.0, 0, true);
  EXPECT_GT(with_program, 3 * ramp_weight(10 * minutes, 2 * 3600.0, 3600, true));
  EXPECT_GT(with_program, 2 * ramp_weight(10 * minutes, 2 * 3600.0, 0, false));
}

TEST(Rivals, AFastRampIsLikelierThanASlowOneAndALongOneThanNone) {
  EXPECT_GT(ramp_weight(600, 3600, 0, true), 3 * ramp_weight(600, 10 * 3600.0, 0, true));
  EXPECT_GT(ramp_weight(600, 10 * 3600.0, 0, true), 2 * ramp_weight(3 * 3600.0, 10 * 3600.0, 0, true));
  // By half of the way to the end, it has little weight at any speed: a leak must be shown by then.
  for (const double life_s : {3600.0, 2 * 3600.0, 8 * 3600.0})
    EXPECT_LT(ramp_weight(0.5 * life_s, life_s, 0, true), 0.67) << life_s;
}

TEST(Rivals, ADayBendsUpwardsAndALineDoesNot) {
  Evidence e;
  e.duration_s = 4 * 3600.0;
  e.centroid_se = 0.01;
  e.centroid = 0.62;
  EXPECT_GT(day_weight(e, 20 * 3600.0), 0.4);
  e.centroid = 0.51;
  EXPECT_DOUBLE_EQ(day_weight(e, 20 * 3600.0), 0);
  e.centroid = 0.62;
  EXPECT_DOUBLE_EQ(day_weight(e, 3 * 3600.0), 0) << "no day fills the memory in three hours";
  e.quiet_s = 25 * 3600.0;
  EXPECT_DOUBLE_EQ(day_weight(e, 20 * 3600.0), 0) << "a whole day lay still before";
}

TEST(Scales, KnowsHowLongTheFloorLayStill) {
  const Scales scales = watch(900, [](double t) { return t < 600 ? 4 * kGiB : 4 * kGiB + (t - 600) * 10 * kMiB; });
  const Timestamp onset = scales.end_of(0, 59);  // 600 s
  EXPECT_NEAR(scales.quiet_before_s(0, onset, 3.9 * kGiB, 4.1 * kGiB), 600, 1e-6);
  EXPECT_NEAR(scales.quiet_before_s(0, onset, 4.1 * kGiB, 4.2 * kGiB), 0, 1e-6);
}

}  // namespace
}  // namespace vramtrack
