// The levels between which a total has moved up and down before: engine/band.hpp.
#include "engine/band.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/units.hpp"

namespace vramtrack {
namespace {

Timestamp at(double minutes) {
  return Timestamp{} + from_seconds(60 * minutes);
}

History history(double minutes, double (*gib)(double)) {
  History out;
  for (double m = 0; m <= minutes; m += 0.25) out.observe(at(m), gib(m) * kGiB);
  return out;
}

/// An 11 GiB card with several tenants: between 9.7 and 10.3 GiB, then a rise from 60 min on.
double tenants(double minute) {
  if (minute < 60) return 10.0 + 0.3 * std::sin(minute / 2.5);
  return 9.7 + 0.1 * (minute - 60);
}

TEST(Band, TenantsThatMoveUpAndDown) {
  const auto band = band_of(history(65, tenants), at(0), at(60));
  ASSERT_TRUE(band);
  EXPECT_GE(band->swings, 2);
  EXPECT_NEAR(band->lowest_bytes / kGiB, 9.7, 0.01);
  EXPECT_NEAR(band->highest_bytes / kGiB, 10.3, 0.01);
}

TEST(Band, AboveItTheRiseIsNewTerritory) {
  EXPECT_TRUE(band_of(history(66, tenants), at(0), at(60)));
  EXPECT_FALSE(band_of(history(68, tenants), at(0), at(60))) << "10.5 GiB";
}

TEST(Band, NoneWithoutAPast) {
  EXPECT_FALSE(band_of(History{}, at(0), at(0)));
  EXPECT_FALSE(band_of(history(65, tenants), at(0), at(0)));
  EXPECT_FALSE(band_of(history(65, tenants), at(58), at(60))) << "an earlier run does not count";
}

TEST(Band, OneFallIsNoBand) {
  const auto plateau = [](double m) { return m < 30 ? 20.0 : m < 60 ? 5.0 : 5 + 0.2 * (m - 60); };
  EXPECT_FALSE(band_of(history(90, plateau), at(0), at(60)));
}

TEST(Band, AProgramThatBeganAnewIsAnotherRun) {
  const auto runs = [](double m) { return std::fmod(m, 30) < 1 ? 0.5 : 0.5 + 0.5 * std::fmod(m, 30); };
  EXPECT_FALSE(band_of(history(115, runs), at(0), at(91)));
}

TEST(Band, ASteadyLineThatLeaksHasNone) {
  const auto leak = [](double m) { return m < 60 ? 10.0 + 0.01 * std::sin(m) : 10 + 0.1 * (m - 60); };
  EXPECT_FALSE(band_of(history(70, leak), at(0), at(60)));
}

}  // namespace
}  // namespace vramtrack
