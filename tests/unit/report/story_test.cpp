#include "report/story.hpp"

#include <gmock/gmock.h>

namespace vramtrack {
namespace {

using testing::ElementsAre;

Timestamp at(double s) {
  return Timestamp{from_seconds(s)};
}

struct One {
  One(std::uint32_t pid, double raised_s, std::optional<double> cleared_s = {}, const std::string& device = "GPU-0") {
    key = {pid == 0 ? Metric::device_used : Metric::process_used, device, pid, pid};
    alert.raised = at(raised_s);
    alert.finding.leak = true;
    if (!cleared_s) return;
    alert.cleared = at(*cleared_s);
    alert.ended = AlertEnd::process_ended;
  }
  SeriesKey key;
  Alert alert;
};

std::vector<std::size_t> told(const std::vector<One>& all) {
  std::vector<AlertOf> alerts;
  for (const One& one : all) alerts.push_back({one.key, one.alert});
  return told_with(alerts);
}

TEST(Story, AProcessIsToldWithItsDevice) {
  EXPECT_THAT(told({{0, 100}, {42, 90}}), ElementsAre(0, 0));
  EXPECT_THAT(told({{42, 90, 200}, {0, 100, 205}}), ElementsAre(1, 1));
}

TEST(Story, AnotherTimeOrAnotherGpuIsAnotherLeak) {
  EXPECT_THAT(told({{0, 100, 200}, {42, 300, 400}}), ElementsAre(0, 1));
  EXPECT_THAT(told({{0, 100}, {42, 90, {}, "GPU-1"}}), ElementsAre(0, 1));
}

TEST(Story, WhatStandsIsNotHiddenBehindWhatHasEnded) {
  EXPECT_THAT(told({{0, 100, 200}, {42, 90}}), ElementsAre(0, 1));
  EXPECT_THAT(told({{0, 100}, {42, 90, 150}}), ElementsAre(0, 0));
}

TEST(Story, ProcessesAreNotToldWithEachOther) {
  EXPECT_THAT(told({{42, 100}, {43, 100}}), ElementsAre(0, 1));
}

TEST(Story, WhatTheAllocatorReportsIsToldWithItsProcess) {
  One process{42, 100};
  One allocated{42, 95};
  One reserved{42, 110};
  allocated.key.metric = Metric::allocator_allocated;
  reserved.key.metric = Metric::allocator_reserved;
  EXPECT_THAT(told({reserved, allocated}), ElementsAre(1, 1));
  EXPECT_THAT(told({reserved, allocated, process}), ElementsAre(2, 2, 2));
  EXPECT_THAT(told({reserved, allocated, process, {0, 120}}), ElementsAre(3, 3, 3, 3));

  // Of another process, or after it.
  One other = reserved;
  other.key.pid = 43;
  EXPECT_THAT(told({other, allocated}), ElementsAre(0, 1));
  allocated.alert.cleared = at(99);
  allocated.alert.ended = AlertEnd::released;
  EXPECT_THAT(told({reserved, allocated}), ElementsAre(0, 1));
}

TEST(Story, WhoSpeaksForOthersMayBeToldWithAnotherAlert) {
  // The process's alert had ended when the reserve's was raised; that of what is allocated stood with both.
  One process{42, 90};
  One reserved{42, 300};
  One allocated{42, 200, 310};
  process.alert.cleared = at(250);
  process.alert.ended = AlertEnd::process_ended;
  allocated.key.metric = Metric::allocator_allocated;
  reserved.key.metric = Metric::allocator_reserved;
  reserved.alert.cleared = at(400);
  reserved.alert.ended = AlertEnd::process_ended;
  allocated.alert.ended = AlertEnd::process_ended;
  EXPECT_THAT(told({reserved, allocated, process}), ElementsAre(2, 2, 2));
}

TEST(Story, StandingLeaksAreCountedAsPeopleDo) {
  std::vector<SeriesView> series;
  for (const One& one : std::vector<One>{{0, 100}, {42, 90}, {42, 10, 20}, {43, 90, {}, "GPU-1"}}) {
    SeriesView view;
    view.key = one.key;
    view.alerts.push_back(one.alert);
    series.push_back(std::move(view));
  }
  std::vector<const SeriesView*> all;
  for (const SeriesView& s : series) all.push_back(&s);
  EXPECT_EQ(standing_count(all), 2);
}

/// What people are told of the changes of the alerts of one GPU.
class StoriesTest : public testing::Test {
 protected:
  std::optional<AlertNews> told(std::uint32_t pid, AlertNews news, Severity severity = Severity::warning,
                                bool leak = true) {
    One one{pid, 100};
    one.alert.series = SeriesId{pid};
    one.alert.severity = severity;
    one.alert.finding.leak = leak;
    const StoryNews told = stories_.news(one.key, one.alert, news);
    with_ = told.series;
    return told.news;
  }
  Stories stories_;
  std::vector<SeriesKey> with_;  ///< what the last of them was told with
};

TEST_F(StoriesTest, ALeakOfADeviceAndItsProcessIsToldOnce) {
  EXPECT_EQ(told(0, AlertNews::raised), AlertNews::raised);
  EXPECT_EQ(told(42, AlertNews::raised), std::nullopt);
  EXPECT_EQ(told(0, AlertNews::escalated, Severity::critical), AlertNews::escalated);
  EXPECT_EQ(told(42, AlertNews::escalated, Severity::critical), std::nullopt);
  EXPECT_EQ(told(0, AlertNews::cleared), std::nullopt);
  EXPECT_EQ(told(42, AlertNews::cleared), AlertNews::cleared);
  EXPECT_EQ(told(42, AlertNews::raised), AlertNews::raised) << "the next leak is another story";
}

TEST_F(StoriesTest, WhoComesSecondTellsWhatIsWorse) {
  EXPECT_EQ(told(42, AlertNews::raised, Severity::watch), AlertNews::raised);
  EXPECT_EQ(told(0, AlertNews::raised, Severity::critical), AlertNews::escalated);
  EXPECT_EQ(told(42, AlertNews::escalated, Severity::warning), std::nullopt);
}

TEST_F(StoriesTest, TwoProcessesAreTwoLeaksUntilTheirDeviceLeaks) {
  EXPECT_EQ(told(42, AlertNews::raised), AlertNews::raised);
  EXPECT_EQ(told(43, AlertNews::raised), AlertNews::raised);
  EXPECT_THAT(with_, ElementsAre(One(43, 0).key));
  EXPECT_EQ(told(0, AlertNews::raised), std::nullopt);
  EXPECT_THAT(with_, testing::UnorderedElementsAre(One(0, 0).key, One(42, 0).key, One(43, 0).key));
  EXPECT_EQ(told(42, AlertNews::cleared), std::nullopt);
  EXPECT_THAT(with_, testing::SizeIs(3)) << "which has ended, but was of it";
  EXPECT_EQ(told(43, AlertNews::cleared), std::nullopt);
  EXPECT_EQ(told(0, AlertNews::cleared), AlertNews::cleared);
}

TEST_F(StoriesTest, WhatTheAllocatorOfAProcessReportsIsNotToldAgain) {
  const auto told_of = [&](Metric metric, std::uint32_t pid, AlertNews news) {
    One one{pid, 100};
    one.key.metric = metric;
    one.alert.series = SeriesId{100 * pid + static_cast<std::uint32_t>(metric)};
    return stories_.news(one.key, one.alert, news).news;
  };
  EXPECT_EQ(told_of(Metric::allocator_reserved, 42, AlertNews::raised), AlertNews::raised);
  EXPECT_EQ(told_of(Metric::allocator_allocated, 42, AlertNews::raised), std::nullopt);
  EXPECT_EQ(told_of(Metric::process_used, 42, AlertNews::raised), std::nullopt);
  EXPECT_EQ(told_of(Metric::allocator_allocated, 43, AlertNews::raised), AlertNews::raised) << "another process";
  EXPECT_EQ(told_of(Metric::allocator_reserved, 42, AlertNews::cleared), std::nullopt);
  EXPECT_EQ(told_of(Metric::process_used, 42, AlertNews::cleared), std::nullopt);
  EXPECT_EQ(told_of(Metric::allocator_allocated, 42, AlertNews::cleared), AlertNews::cleared);
}

TEST_F(StoriesTest, AProcessThatLeaksAndStallsIsTwo) {
  One one{42, 100};
  one.alert.series = SeriesId{42};
  one.alert.kind = AlertKind::stall;
  one.alert.finding.leak = false;
  EXPECT_EQ(told(42, AlertNews::raised), AlertNews::raised);
  EXPECT_EQ(stories_.news(one.key, one.alert, AlertNews::raised).news, AlertNews::raised);
  EXPECT_EQ(told(42, AlertNews::cleared), AlertNews::cleared);
  EXPECT_EQ(stories_.news(one.key, one.alert, AlertNews::cleared).news, AlertNews::cleared);
}

TEST_F(StoriesTest, WhatIsNoLeakIsToldByItself) {
  EXPECT_EQ(told(0, AlertNews::raised), AlertNews::raised);
  EXPECT_EQ(told(42, AlertNews::raised, Severity::warning, false), AlertNews::raised);
  EXPECT_EQ(told(42, AlertNews::cleared, Severity::warning, false), AlertNews::cleared);
}

}  // namespace
}  // namespace vramtrack
