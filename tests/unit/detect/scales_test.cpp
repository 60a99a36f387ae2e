#include "detect/scales.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "../at.hpp"
#include "detect/evidence.hpp"

namespace vramtrack {
namespace {

constexpr float kMiB = 1048576.0F;

TEST(DriftEvidence, TenEqualRises) {
  // docs/detectors/judge.md: log(e^2 / cosh 2) = 0.675 each at the second scale.
  DriftEvidence drift;
  for (int i = 0; i < 10; ++i) drift.observe(8 * kMiB);
  EXPECT_NEAR(drift.log_e[1], 10 * (2 - std::log(std::cosh(2.0))), 1e-3);
  EXPECT_NEAR(drift.log_e[1] - std::log(3.0), 5.65, 0.01);
}

TEST(DriftEvidence, OneJumpOfAnySizeIsWorthAtMostLnTwo) {
  DriftEvidence drift;
  drift.observe(40 * 1024 * kMiB);
  EXPECT_LE(drift.nats(), std::log(2.0F));
}

TEST(DriftEvidence, AFallTakesAwayWhatFiveRisesGave) {
  DriftEvidence drift;
  for (int i = 0; i < 4; ++i) drift.observe(8 * kMiB);
  drift.observe(-8 * kMiB);
  EXPECT_EQ(drift.log_e[1], 0.0F);
}

TEST(DriftEvidence, IsAMartingaleOverFairSigns) {
  // All sign patterns of six given sizes: the mean of the product of gains is exactly 1.
  const float sizes[6] = {1, 3, 2, 8, 1, 5};
  double mean = 0;
  for (unsigned pattern = 0; pattern < 64; ++pattern) {
    DriftEvidence drift;
    double log_product = 0;
    for (unsigned i = 0; i < 6; ++i) {
      const float x = (pattern >> i & 1U) != 0 ? sizes[i] : -sizes[i];
      log_product += static_cast<double>(drift.observe(x)[0]);
    }
    mean += std::exp(log_product) / 64;
  }
  EXPECT_NEAR(mean, 1.0, 1e-5);
}

/// The same from its definition: the highest floor of all buckets that count.
double highest_floor_since(const Scales& scales, Timestamp time) {
  double highest = 0;
  for (std::size_t k = 0; k < Scales::kLevels && scales.level(k).size() > 0; ++k) {
    const Level& level = scales.level(k);
    for (std::size_t i = 0; i < level.size(); ++i)
      if (i + 1 == level.size() || scales.end_of(k, level[i].slot) > time)
        highest = std::max(highest, static_cast<double>(level[i].floor_bytes));
    if (scales.start_of(k, level[0].slot) <= time) break;
  }
  return highest;
}

TEST(Scales, ReachesWhatItsHighestFloorSinceReaches) {
  EXPECT_FALSE(Scales().reaches_since(at(0), 1));
  EXPECT_TRUE(Scales().reaches_since(at(0), 0));
  for (const double begins_s : {0.0, 1.75e9 + 0.25}) {
    Scales scales;
    for (int i = 0; i < 2000; ++i)  // a staircase with falls and a gap
      scales.observe(at(begins_s + 7.3 * i + (i > 900 ? 5000 : 0)), static_cast<float>((i * 37 % 101 + i / 9) % 240));
    for (double before_s = -20; before_s < 21'000; before_s += 2.5) {
      const Timestamp time = at(begins_s + 7.3 * 1999 + 5000 - before_s);
      const double highest = highest_floor_since(scales, time);
      EXPECT_TRUE(scales.reaches_since(time, highest)) << before_s;
      EXPECT_FALSE(scales.reaches_since(time, highest + 0.5)) << before_s;
    }
    for (std::size_t k = 0; k < 4; ++k)  // at the boundaries of buckets, to the nanosecond
      for (std::size_t i = 0; i < scales.level(k).size(); ++i)
        for (const std::int64_t off_ns : {-1, 0, 1}) {
          const Timestamp time = scales.end_of(k, scales.level(k)[i].slot) + std::chrono::nanoseconds(off_ns);
          const double highest = highest_floor_since(scales, time);
          EXPECT_TRUE(scales.reaches_since(time, highest));
          EXPECT_FALSE(scales.reaches_since(time, highest + 0.5));
        }
  }
}

TEST(Scales, ABucketHoldsItsFloorAndPeakAtEveryLevel) {
  Scales scales;
  // 0..79 s: value = second, so level 0 bucket i holds 10 i .. 10 i + 9, and level 2 (40 s) 0 .. 39.
  for (int s = 0; s <= 80; ++s) scales.observe(at(s), static_cast<float>(s));
  ASSERT_EQ(scales.level(0).size(), 8U);
  EXPECT_EQ(scales.level(0)[3].floor_bytes, 30);
  EXPECT_EQ(scales.level(0)[3].peak_bytes, 39);
  ASSERT_EQ(scales.level(2).size(), 2U);
  EXPECT_EQ(scales.level(2)[0].floor_bytes, 0);
  EXPECT_EQ(scales.level(2)[0].peak_bytes, 39);
  EXPECT_EQ(scales.level(3).size(), 1U);
}

TEST(Scales, AGapMakesNoBuckets) {
  Scales scales;
  scales.observe(at(0), 1);
  scales.observe(at(5), 2);
  scales.observe(at(100000), 3);
  ASSERT_EQ(scales.level(0).size(), 1U);
  EXPECT_EQ(scales.level(0)[0].peak_bytes, 2);
}

TEST(Scales, WhatLeavesTheRingIsStillSeenBefore) {
  Scales scales;
  scales.observe(at(0), 1000);
  for (int s = 10; s < 1000; s += 10) scales.observe(at(s), 900);
  EXPECT_EQ(scales.level(0).forgotten_floor(), 1000);
  scales.observe(at(1000), 700);  // a fall by more than a fifth
  for (int s = 1010; s < 2000; s += 10) scales.observe(at(s), 710);
  EXPECT_EQ(scales.level(0).forgotten_floor(), 710) << "what was before the fall is of another regime";
  scales.restart(false);
  EXPECT_EQ(scales.level(0).forgotten_floor(), 0);
  ASSERT_EQ(scales.level(0).size(), 1U);
  EXPECT_EQ(scales.level(0)[0].floor_bytes, 710);
}

// After a fall, a series must behave like one that begins there.
TEST(Scales, IsFlatOnceAllThatIsKeptIsTheSame) {
  Scales scales;
  int bucket = 0;
  const auto close = [&](float bytes) { scales.observe(at(10.0 * bucket++), bytes); };
  close(kMiB);
  for (int i = 0; i < 60; ++i) close(2 * kMiB);
  const Level& level = scales.level(0);
  EXPECT_TRUE(level.is_flat());
  close(3 * kMiB);
  for (std::size_t i = 1; i < Level::kCapacity; ++i) {
    close(3 * kMiB);
    ASSERT_FALSE(level.is_flat()) << i << " buckets after a step";
  }
  close(3 * kMiB);
  EXPECT_TRUE(level.is_flat());
  EXPECT_GE(level.drift().nats(), 0.5F) << "what was seen before is not forgotten";
  EXPECT_FALSE(weigh(scales, 0, {}));
}

TEST(Scales, TheBucketThatShowsARestartIsTheFirstOfTheNewEpoch) {
  Scales scales;
  Scales fresh;
  for (int s = 0; s < 1280; s += 10) scales.observe(at(s), 900);
  std::uint32_t mask = 0;
  for (int s = 1280; s < 1900; s += 10) {
    const auto bytes = static_cast<float>(100 + s % 70);
    mask = scales.observe(at(s), bytes);
    const std::uint32_t of_fresh = fresh.observe(at(s), bytes);
    if (s == 1290) scales.restart(false);
    if (s > 1290) {
      EXPECT_EQ(mask, of_fresh) << s;
    }
  }
  for (std::size_t k = 0; k < 5; ++k) {
    ASSERT_EQ(scales.level(k).size(), fresh.level(k).size()) << k;
    for (std::size_t i = 0; i < fresh.level(k).size(); ++i) {
      EXPECT_EQ(scales.level(k)[i].floor_bytes, fresh.level(k)[i].floor_bytes) << k << ' ' << i;
      EXPECT_EQ(scales.level(k)[i].peak_bytes, fresh.level(k)[i].peak_bytes) << k << ' ' << i;
    }
  }
}

TEST(Scales, StateIsUnderTwentyKibibytes) {
  EXPECT_LT(sizeof(Scales), 16U * 1024U);
}

TEST(Evidence, ASteadyRiseHasItsCentroidInTheMiddle) {
  Scales scales;
  for (int s = 0; s <= 400; s += 10) scales.observe(at(s), (4096.0F + static_cast<float>(s)) * kMiB);
  const auto e = weigh(scales, 0, EvidenceContext{.limit_bytes = 24e9});
  ASSERT_TRUE(e);
  EXPECT_NEAR(e->centroid, 0.5, 0.01);
  EXPECT_TRUE(e->admissible());
  EXPECT_NEAR(e->net_bytes / e->duration_s, static_cast<double>(kMiB), 1);
}

TEST(Evidence, ALogarithmHasItsCentroidEarly) {
  Scales scales;
  for (int s = 0; s <= 470; s += 10)
    scales.observe(at(s), static_cast<float>(4096 + 500 * std::log1p(s / 25.0)) * kMiB);
  const auto e = weigh(scales, 0, EvidenceContext{});
  ASSERT_TRUE(e);
  EXPECT_LT(e->centroid, 0.35);
  EXPECT_LT(e->probability, 0.2);
}

TEST(Evidence, ASecondRampIsNotNewTerritory) {
  Scales scales;
  for (int s = 0; s < 400; s += 10) scales.observe(at(s), (4096.0F + 8 * static_cast<float>(s % 200)) * kMiB);
  const auto e = weigh(scales, 0, EvidenceContext{});
  ASSERT_TRUE(e);
  EXPECT_FALSE(e->new_high);
  EXPECT_LE(e->probability, 0.2);
}

}  // namespace
}  // namespace vramtrack
