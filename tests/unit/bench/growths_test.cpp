// The measure of whether the reports about one growth are consistent, and the level reached.
#include "growths.hpp"

#include <gtest/gtest.h>

namespace vramtrack::accuracy {
namespace {

Told told(double at_s, double onset_s, double probability, std::optional<Interval> end_in_s = {}) {
  return {at_s, true, onset_s, probability, end_in_s};
}

TEST(Growths, AreCountedAsInTheExample) {
  std::vector<Told> all;
  for (int i = 0; i < 10; ++i) all.push_back(told(600 + 60 * i, 300, 0.8));
  all.push_back(told(1200, 500, 0.7, Interval{500, 600, 700}));  // the onset moves, the probability falls
  all.push_back(told(1260, 300, 0.8, Interval{400, 600, 900}));  // wider again
  all.push_back({1320, false, 0, 0.1, {}});                      // it stands still: a story ends
  all.push_back(told(1380, 1300, 0.2, Interval{2000, 2100, 2200}));
  const GrowthSums sums = sums_of(all, 300, 1800);
  EXPECT_EQ(sums.cuts, 13U);
  EXPECT_EQ(sums.stories, 2U);
  EXPECT_EQ(sums.onset_held, 12U);
  EXPECT_EQ(sums.onset_right, 11U);
  EXPECT_EQ(sums.sunk, 1U);
  EXPECT_EQ(sums.sunken_stories, 1U);
  EXPECT_EQ(sums.ends, 3U);
  EXPECT_EQ(sums.ends_right, 2U);
  EXPECT_EQ(sums.wider, 1U);
  EXPECT_EQ(sums_of(all, 1260, {}).cuts, 2U) << "what was said before the leak is not counted";
}

TEST(Growths, TheirMovesAreListed) {
  const std::vector<Told> all{
      told(600, 300, 0.8), told(660, 310, 0.8), told(720, 500, 0.8), told(780, 500, 0.7), {840, false, 0, 0.1, {}}};
  EXPECT_EQ(moves_of(all),
            "       12 min: since 8 min, probability 0.80\n"
            "       13 min: probability 0.70 after 0.80\n"
            "       14 min: nothing rises\n");
}

// The level reached on steady leaks; `accuracy --sections growths` has all of them.
TEST(Growths, OfSteadyLeaksAreOneStory) {
  GrowthSums all;
  for (const Trace& trace : growing_traces(Split::tune, 1, 1))
    if (trace.family == "linear" || trace.family == "from_start" || trace.family == "late" ||
        trace.family == "requests" || trace.family == "concave")
      all += follow_growth(trace, Config{});
  ASSERT_GT(all.cuts, 500U);
  EXPECT_GE(static_cast<double>(all.onset_held), 0.9 * static_cast<double>(all.cuts));
  EXPECT_GE(static_cast<double>(all.onset_right), 0.8 * static_cast<double>(all.cuts));
  EXPECT_LE(static_cast<double>(all.sunk), 0.02 * static_cast<double>(all.cuts));
}

}  // namespace
}  // namespace vramtrack::accuracy
