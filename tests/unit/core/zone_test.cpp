#include "core/zone.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace vramtrack {
namespace {

// Seconds on the wall clock, counted as if it were UTC.
constexpr std::int64_t kSpringGap = 1774751400;     // 2026-03-29 02:30, which Berlin skips
constexpr std::int64_t kAutumnTwice = 1792895400;   // 2026-10-25 02:30, which Berlin has twice
constexpr std::int64_t kJulyNoon = 1782907200;      // 2026-07-01 12:00
constexpr std::int64_t kLongAgo = -4'000'000'000;   // local mean time
constexpr std::int64_t kFarAhead = 10'000'000'000;  // 2286: beyond every table

Zone berlin() {
  auto zone = Zone::open("Europe/Berlin");
  EXPECT_TRUE(zone.has_value()) << (zone ? "" : zone.error().message);
  return zone ? *zone : Zone{};
}

TEST(Zone, ConvertsWithTheOffsetOfTheDay) {
  Zone zone = berlin();
  EXPECT_EQ(zone.to_utc(kJulyNoon, INT64_MIN / 2), kJulyNoon - 7200);
  EXPECT_EQ(zone.to_utc(kJulyNoon + 1, INT64_MIN / 2), kJulyNoon + 1 - 7200) << "from the cache";
  EXPECT_EQ(zone.to_utc(kJulyNoon - 182 * 86400, INT64_MIN / 2), kJulyNoon - 182 * 86400 - 3600);
  EXPECT_EQ(zone.to_utc(kFarAhead, INT64_MIN / 2), kFarAhead - 3600) << "2286-11-20, by the yearly rule";
}

TEST(Zone, SkippedHourIsReadWithTheOffsetBefore) {
  EXPECT_EQ(berlin().to_utc(kSpringGap, INT64_MIN / 2), kSpringGap - 3600);
}

TEST(Zone, RepeatedHourGoesOnFromWhereTheLogStands) {
  Zone zone = berlin();
  EXPECT_EQ(zone.to_utc(kAutumnTwice, kAutumnTwice - 7200 - 60), kAutumnTwice - 7200);
  EXPECT_EQ(zone.to_utc(kAutumnTwice, kAutumnTwice - 7200 + 1800), kAutumnTwice - 3600) << "the clock went back";
}

TEST(Zone, CacheHoldsNothingNearAChange) {
  // Every hour of 2026: a fresh zone, without a cache, must give the same result.
  Zone cached = berlin();
  for (std::int64_t local_s = kJulyNoon - 181 * 86400; local_s < kJulyNoon + 183 * 86400; local_s += 1800) {
    Zone fresh = berlin();
    ASSERT_EQ(cached.to_utc(local_s, INT64_MIN / 2), fresh.to_utc(local_s, INT64_MIN / 2)) << local_s;
  }
}

TEST(Zone, UtcAndUnknown) {
  auto utc = Zone::open("UTC");
  ASSERT_TRUE(utc.has_value());
  EXPECT_EQ(utc->to_utc(kLongAgo, 0), kLongAgo);
  const auto unknown = Zone::open("Europe/Berlln");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_NE(unknown.error().message.find("Europe/Berlln"), std::string::npos);
}

}  // namespace
}  // namespace vramtrack
