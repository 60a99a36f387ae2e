#include "period/history.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

#include "../at.hpp"

namespace vramtrack {
namespace {

const SeriesKey kDevice{Metric::device_used, "GPU-0", 0, 0};
const SeriesKey kProcess{Metric::process_used, "GPU-0", 7, 70};

TEST(Histories, KeepsLeastMeanAndGreatest) {
  Histories h;
  h.add(kDevice, at(10.1), 100);
  h.add(kDevice, at(10.5), 300);
  h.add(kDevice, at(11.0), 50);
  const auto& points = h.points(kDevice);
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].start, at(10));
  EXPECT_EQ(points[0].min, 100U);
  EXPECT_EQ(points[0].max, 300U);
  EXPECT_EQ(points[0].mean, 200);
  EXPECT_EQ(points[0].count, 2U);
}

TEST(Histories, UtilisationIsTheGreatestAndMakesNoPointAlone) {
  Histories h;
  h.add(kDevice, at(1), 100);
  h.add_utilisation("GPU-0", at(1.5), 0.2);
  h.add_utilisation("GPU-0", at(1.6), 0.1);
  h.add_utilisation("GPU-0", at(9), 1);
  ASSERT_EQ(h.points(kDevice).size(), 1U);
  EXPECT_EQ(h.points(kDevice)[0].utilisation, 0.2);
}

TEST(Histories, UtilisationOfAStretchIsThatOfEachOfItsPoints) {
  Histories h;
  for (const int second : {0, 59, 60, 119, 120}) h.add(kDevice, at(second), 100);
  h.add_utilisation("GPU-0", at(60), at(120), 0.5);
  h.add_utilisation("GPU-1", at(60), at(120), 0.7);
  const auto& points = h.points(kDevice);
  ASSERT_EQ(points.size(), 5U);
  EXPECT_FALSE(points[1].utilisation);
  EXPECT_EQ(points[2].utilisation, 0.5);
  EXPECT_EQ(points[3].utilisation, 0.5);
  EXPECT_FALSE(points[4].utilisation);
}

TEST(Histories, SeriesNobodyAddedHaveNone) {
  Histories h;
  EXPECT_TRUE(h.points(kDevice).empty());
}

TEST(HistoriesProperty, NothingIsLostHoweverLongItIs) {
  EXPECT_TRUE(rc::check([](const std::vector<std::pair<std::uint16_t, std::uint32_t>>& steps, bool before_epoch) {
    Histories h;
    double now = before_epoch ? -50000 : 0;
    std::uint64_t count = 0;
    std::uint64_t least = UINT64_MAX;
    std::uint64_t greatest = 0;
    double sum = 0;
    for (int round = 0; round < 20; ++round)
      for (const auto& [step, bytes] : steps) {
        now += step;
        h.add(kDevice, at(now), bytes);
        if (step % 3 == 0) h.add(kProcess, at(now), 1);
        ++count;
        least = std::min<std::uint64_t>(least, bytes);
        greatest = std::max<std::uint64_t>(greatest, bytes);
        sum += bytes;
      }
    const auto points = h.points(kDevice);
    RC_ASSERT(points.size() <= Histories::kMostPoints);
    std::uint64_t seen = 0;
    double seen_sum = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const HistoryPoint& p = points[i];
      RC_ASSERT(p.min >= least && p.max <= greatest && p.min <= p.max);
      RC_ASSERT(p.mean >= static_cast<double>(p.min) - 1 && p.mean <= static_cast<double>(p.max) + 1);
      RC_ASSERT(p.start.time_since_epoch().count() % std::llround(h.width_s() * 1e9) == 0);
      if (i > 0) RC_ASSERT(points[i - 1].start < p.start);
      seen += p.count;
      seen_sum += p.mean * static_cast<double>(p.count);
    }
    RC_ASSERT(seen == count);
    RC_ASSERT(std::abs(seen_sum - sum) <= 1e-6 * sum + 1);
  }));
}

}  // namespace
}  // namespace vramtrack
