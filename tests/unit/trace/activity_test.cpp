// At each of its points, the timeline in bounded memory equals a full replay at that moment.
#include "trace/activity.hpp"

#include <gmock/gmock.h>

#include <map>
#include <random>

namespace vramtrack::trace {
namespace {

std::int64_t at(const Activity& activity, Holder holder, std::uint32_t point) {
  std::int64_t bytes = 0;
  activity.changes([&](const Activity::Change& change) {
    if (change.holder == holder && change.point <= point) bytes += change.bytes;
  });
  return bytes;
}

TEST(Activity, OfFewEventsEachIsAPoint) {
  Activity activity(8);
  activity.begin_with(7, 100);
  activity.take(10, 1, 50, 512);
  activity.take(11, 2, 30, 512);
  activity.take(12, 1, -50, 512);
  const auto points = activity.points();
  ASSERT_EQ(points.size(), 3U);
  EXPECT_EQ(points[0].live_bytes, 150);
  EXPECT_EQ(points[1].live_bytes, 180);
  EXPECT_EQ(points[2].live_bytes, 130);
  EXPECT_EQ(points[2].time_us, 12);
  EXPECT_EQ(points[1].reserved_bytes, 512);
  EXPECT_THAT(activity.peaks(),
              testing::ElementsAre(testing::Pair(7, 100), testing::Pair(1, 50), testing::Pair(2, 30)));
  EXPECT_EQ(at(activity, 1, 1), 50);
  EXPECT_EQ(at(activity, 1, 2), 0);
}

TEST(Activity, EachPointIsTheHighestMomentOfItsPartAndKnowsWhoHeldWhat) {
  for (const unsigned seed : {1U, 2U, 3U, 4U, 5U}) {
    std::mt19937 random(seed);
    Activity activity(16);
    std::map<Holder, std::int64_t> held{{9, 1000}};
    activity.begin_with(9, 1000);
    std::vector<std::map<Holder, std::int64_t>> every;
    const std::size_t events = 37 + random() % 3000;
    for (std::size_t i = 0; i < events; ++i) {
      const auto holder = static_cast<Holder>(random() % 12);
      std::int64_t& bytes = held[holder];
      const std::int64_t change =
          bytes > 0 && random() % 2 == 0 ? -bytes : 1 + static_cast<std::int64_t>(random() % 90);
      bytes += change;
      activity.take(static_cast<std::int64_t>(i) * 3, holder, change, 0);
      every.push_back(held);
    }
    ASSERT_GE(activity.part_count(), 8U);
    ASSERT_LE(activity.part_count(), 16U);
    const auto sum_at = [&](std::uint64_t event) {
      std::int64_t sum = 0;
      for (const auto& [holder, bytes] : every[event]) sum += bytes;
      return sum;
    };
    std::int64_t highest = 0;
    for (std::size_t event = 0; event < events; ++event) highest = std::max(highest, sum_at(event));
    for (const unsigned times : {0U, 1U, 2U, 5U}) {  // the coarser levels, too
      const Activity level = activity.joined(times);
      ASSERT_EQ(level.part_count(), (activity.part_count() + (1U << times) - 1) >> times);
      const auto points = level.points();
      std::map<Holder, std::vector<std::int64_t>> held_at;
      level.changes([&](const Activity::Change& change) {
        auto& its = held_at[change.holder];
        its.resize(points.size());
        for (std::size_t i = change.point; i < points.size(); ++i) its[i] += change.bytes;
      });
      for (const auto& [holder, bytes] : level.peaks())
        EXPECT_EQ(bytes, *std::max_element(held_at[holder].begin(), held_at[holder].end()));
      std::int64_t shown = 0;
      for (std::uint32_t i = 0; i < points.size(); ++i) {
        shown = std::max(shown, points[i].live_bytes);
        EXPECT_EQ(points[i].live_bytes, sum_at(points[i].event));
        EXPECT_LE(points[i].least_bytes, points[i].live_bytes);
        for (const auto& [holder, its] : held_at)
          EXPECT_EQ(its[i], every[points[i].event][holder]) << "point " << i << " holder " << holder;
      }
      EXPECT_EQ(shown, highest);
    }
  }
}

}  // namespace
}  // namespace vramtrack::trace
