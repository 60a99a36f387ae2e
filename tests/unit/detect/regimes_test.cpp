#include "detect/regimes.hpp"

#include <gtest/gtest.h>

#include "core/units.hpp"

namespace vramtrack {
namespace {

constexpr auto kGiBf = static_cast<float>(kGiB);

/// Pushes `slots` buckets that lead straight from one level to the other; returns the next slot.
std::int32_t line(Regimes& regimes, std::int32_t slot, int slots, float from_gib, float to_gib) {
  for (int i = 1; i <= slots; ++i)
    regimes.push(slot++, (from_gib + (to_gib - from_gib) * static_cast<float>(i) / static_cast<float>(slots)) * kGiBf);
  return slot;
}

TEST(Regimes, AFallByAFifthBeginsANewOne) {
  Regimes regimes;
  EXPECT_TRUE(regimes.push(0, 50 * kGiBf));
  EXPECT_FALSE(regimes.push(1, 41 * kGiBf));
  EXPECT_EQ(regimes.falls(), 0);
  EXPECT_TRUE(regimes.push(2, 39 * kGiBf));
  EXPECT_EQ(regimes.falls(), 1);
  EXPECT_EQ(regimes.begins(), 2);
}

TEST(Regimes, AFallThatGoesOnIsOneFall) {
  Regimes regimes;
  std::int32_t slot = line(regimes, 0, 10, 78, 78);
  slot = line(regimes, slot, 10, 78, 10);
  EXPECT_EQ(regimes.falls(), 1);
  EXPECT_EQ(regimes.begins(), slot - 1);
}

TEST(Regimes, ALoadedPlateauDoesNotHoldAgainstASlowRise) {
  Regimes regimes;
  std::int32_t slot = line(regimes, 0, 3, 2, 78);
  slot = line(regimes, slot, 300, 78, 78);
  line(regimes, slot, 1, 78, 30);
  ASSERT_EQ(regimes.falls(), 1);
  EXPECT_EQ(regimes.held_against(60), 0);
}

TEST(Regimes, AClimbHoldsWhileTheNextMayBeOneLikeIt) {
  Regimes regimes;
  std::int32_t slot = line(regimes, 0, 100, 8, 14);
  line(regimes, slot, 1, 14, 8);
  EXPECT_NEAR(regimes.held_against(50), 14 * kGiB, 0.1 * kGiB);
  EXPECT_EQ(regimes.held_against(500), 0) << "it has lasted for five of them";
}

TEST(Regimes, WhereFallsAreFrequentEveryLevelHoldsUntilTheRiseHasOutlastedThem) {
  Regimes regimes;
  std::int32_t slot = 0;
  for (int i = 0; i < 4; ++i) {
    slot = line(regimes, slot, 1, 10, 40);
    slot = line(regimes, slot, 20, 40, 40);
    slot = line(regimes, slot, 20, 10, 10);
  }
  ASSERT_EQ(regimes.falls(), 4);
  EXPECT_EQ(regimes.held_against(60), 40 * kGiB);
  EXPECT_EQ(regimes.held_against(200), 0);
}

TEST(Regimes, OldAscentsAreMergedAndStillHold) {
  Regimes regimes;
  std::int32_t slot = line(regimes, 0, 100, 8, 60);
  for (int i = 0; i < 10; ++i) {
    slot = line(regimes, slot, 1, 60, 8);
    slot = line(regimes, slot, 30, 8, 14);
  }
  line(regimes, slot, 1, 14, 8);
  EXPECT_EQ(regimes.held_against(15), 60 * kGiB);
}

TEST(Regimes, AFallThatNoBucketToldIsCounted) {
  Regimes regimes;
  line(regimes, 0, 10, 8, 60);
  regimes.fall();
  EXPECT_EQ(regimes.falls(), 1);
  EXPECT_TRUE(regimes.push(20, 4 * kGiBf));
  EXPECT_EQ(regimes.begins(), 20);
}

TEST(Regimes, ThreeSilentIntervalsAreRareWhereFallsWereFrequent) {
  Regimes regimes;
  std::int32_t slot = line(regimes, 0, 60, 50, 50);
  slot = line(regimes, slot, 1, 50, 30);
  slot = line(regimes, slot, 59, 30, 30);
  // One fall in 120 slots: (1 + 120 / 120)^-2.
  EXPECT_NEAR(regimes.chance_of_no_fall(slot, 120), 0.25, 1e-9);
}

}  // namespace
}  // namespace vramtrack
