#include "fleet/packed.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace {

using vramtrack::fleet::PackedSeries;
using vramtrack::fleet::Reading;

std::vector<Reading> through(const std::vector<Reading>& readings) {
  PackedSeries packed;
  for (const Reading& r : readings) packed.append(r.time_ms, r.bytes);
  std::vector<Reading> out;
  packed.unpack(out);
  return out;
}

TEST(PackedSeries, GivesBackWhatWasPutIn) {
  const bool held = rc::check("any readings", [](const std::vector<std::pair<std::int64_t, std::uint64_t>>& pairs) {
    std::vector<Reading> readings;
    for (const auto& [time_ms, bytes] : pairs) readings.push_back({time_ms, bytes});
    RC_ASSERT(through(readings) == readings);
  });
  EXPECT_TRUE(held);
}

TEST(PackedSeries, ExtremesWrapAroundAndBack) {
  const std::vector<Reading> readings = {
      {INT64_MIN, UINT64_MAX}, {INT64_MAX, 0}, {0, UINT64_MAX}, {INT64_MIN, 1}, {-1, 0}};
  EXPECT_EQ(through(readings), readings);
}

TEST(PackedSeries, ARegularSeriesThatDoesNotChangeTakesTwoBytesASample) {
  PackedSeries packed;
  for (int i = 0; i < 10'000; ++i) packed.append(1'770'000'000'000 + i * 30'000, 40ULL << 30);
  EXPECT_LE(packed.packed_bytes(), 2 * 10'000 * 2U);  // a string's capacity doubles
  EXPECT_EQ(packed.size(), 10'000U);
  EXPECT_EQ(packed.first_ms(), 1'770'000'000'000);
  EXPECT_EQ(packed.last_ms(), 1'770'000'000'000 + 9'999 * 30'000);
}

TEST(PackedSeries, TellsWhetherTimesRose) {
  PackedSeries packed;
  packed.append(1000, 1);
  packed.append(2000, 1);
  EXPECT_TRUE(packed.is_sorted());
  packed.append(2000, 1);
  EXPECT_FALSE(packed.is_sorted());
}

}  // namespace
