#include "core/incident.hpp"

#include <gmock/gmock.h>

#include "../at.hpp"
#include "core/series_text.hpp"

namespace vramtrack {
namespace {

using testing::ElementsAre;

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

/// For each alert, the index of the one that represents it.
std::vector<std::size_t> told(const std::vector<One>& all) {
  std::vector<AlertOf> alerts;
  for (const One& one : all) alerts.push_back({one.key, one.alert});
  std::vector<std::size_t> out(all.size());
  for (const Incident& incident : incidents_of(alerts))
    for (const std::size_t i : incident.members) out[i] = incident.speaks;
  return out;
}

TEST(IncidentsOf, AProcessIsToldWithItsDevice) {
  EXPECT_THAT(told({{0, 100}, {42, 90}}), ElementsAre(0, 0));
  EXPECT_THAT(told({{42, 90, 200}, {0, 100, 205}}), ElementsAre(1, 1));
}

TEST(IncidentsOf, AnotherTimeOrAnotherGpuIsAnotherLeak) {
  EXPECT_THAT(told({{0, 100, 200}, {42, 300, 400}}), ElementsAre(0, 1));
  EXPECT_THAT(told({{0, 100}, {42, 90, {}, "GPU-1"}}), ElementsAre(0, 1));
}

TEST(IncidentsOf, WhatStandsSpeaksForWhatHasEnded) {
  EXPECT_THAT(told({{0, 100, 200}, {42, 90}}), ElementsAre(1, 1));
  EXPECT_THAT(told({{0, 100}, {42, 90, 150}}), ElementsAre(0, 0));
}

TEST(IncidentsOf, AnIncidentStandsUntilItsLastAlertHasEnded) {
  One device{0, 100, 200};
  One process{42, 90};
  device.alert.severity = Severity::critical;
  const auto of = [&] {
    return incidents_of(std::vector<AlertOf>{{device.key, device.alert}, {process.key, process.alert}});
  };
  ASSERT_EQ(of().size(), 1);
  EXPECT_EQ(of()[0].begin, at(90));
  EXPECT_EQ(of()[0].end, std::nullopt);
  EXPECT_EQ(of()[0].severity, Severity::critical);
  EXPECT_EQ(standing(of()), 1);
  process.alert.cleared = at(210);
  process.alert.ended = AlertEnd::process_ended;
  EXPECT_EQ(of()[0].end, at(210));
  EXPECT_EQ(standing(of()), 0);
}

TEST(IncidentsOf, TheNamesThatTheEngineGaveDecide) {
  std::vector<One> all = {{42, 100}, {43, 100}};
  for (One& one : all) one.alert.incident = "one";
  EXPECT_THAT(told(all), ElementsAre(0, 0));
  all[1].alert.incident = "another";
  EXPECT_THAT(told(all), ElementsAre(0, 1));
}

TEST(IncidentsOf, ProcessesAreNotToldWithEachOther) {
  EXPECT_THAT(told({{42, 100}, {43, 100}}), ElementsAre(0, 1));
}

TEST(IncidentsOf, WhatTheAllocatorReportsIsToldWithItsProcess) {
  One process{42, 100};
  One allocated{42, 95};
  One reserved{42, 110};
  allocated.key.metric = Metric::allocator_allocated;
  reserved.key.metric = Metric::allocator_reserved;
  EXPECT_THAT(told({reserved, allocated}), ElementsAre(1, 1));
  EXPECT_THAT(told({reserved, allocated, process}), ElementsAre(2, 2, 2));
  EXPECT_THAT(told({reserved, allocated, process, {0, 120}}), ElementsAre(3, 3, 3, 3));

  // For another process, or after it.
  One other = reserved;
  other.key.pid = 43;
  EXPECT_THAT(told({other, allocated}), ElementsAre(0, 1));
  allocated.alert.cleared = at(99);
  allocated.alert.ended = AlertEnd::released;
  EXPECT_THAT(told({reserved, allocated}), ElementsAre(0, 1));
}

TEST(IncidentsOf, WhoSpeaksForOthersMayBeToldWithAnotherAlert) {
  // The process's alert had ended when the reserve's was raised; the allocated memory's was active with both.
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

TEST(IncidentsOf, StandingLeaksAreCountedAsPeopleDo) {
  std::vector<SeriesView> series;
  for (const One& one : std::vector<One>{{0, 100}, {42, 90}, {42, 10, 20}, {43, 90, {}, "GPU-1"}}) {
    SeriesView view;
    view.key = one.key;
    view.alerts.push_back(one.alert);
    series.push_back(std::move(view));
  }
  std::vector<const SeriesView*> all;
  for (const SeriesView& s : series) all.push_back(&s);
  EXPECT_EQ(standing(incidents_of(all)), 2);
}

/// The notifications about the alerts of one GPU.
class IncidentsTest : public testing::Test {
 protected:
  std::optional<AlertNews> told(One one, AlertNews news, Severity severity = Severity::warning,
                                const std::string& work = {}) {
    one.alert.severity = severity;
    renamed_.clear();
    if (news == AlertNews::raised) renamed_ = incidents_.raise(one.key, one.alert, work);
    change_ = incidents_.report(one.key, one.alert, news);
    return change_.news;
  }
  std::optional<AlertNews> told(std::uint32_t pid, AlertNews news, Severity severity = Severity::warning) {
    return told(One{pid, 100}, news, severity);
  }
  Incidents incidents_;
  IncidentChange change_;
  std::vector<SeriesKey> renamed_;
};

TEST_F(IncidentsTest, ALeakOfADeviceAndItsProcessIsToldOnce) {
  EXPECT_EQ(told(0, AlertNews::raised), AlertNews::raised);
  EXPECT_EQ(told(42, AlertNews::raised), std::nullopt);
  EXPECT_EQ(told(0, AlertNews::escalated, Severity::critical), AlertNews::escalated);
  EXPECT_EQ(told(42, AlertNews::escalated, Severity::critical), std::nullopt);
  EXPECT_EQ(told(0, AlertNews::cleared), std::nullopt);
  EXPECT_EQ(told(42, AlertNews::cleared), AlertNews::cleared);
  EXPECT_EQ(told(42, AlertNews::raised), AlertNews::raised) << "the next leak is another story";
}

TEST_F(IncidentsTest, WhoComesSecondTellsWhatIsWorse) {
  EXPECT_EQ(told(42, AlertNews::raised, Severity::watch), AlertNews::raised);
  EXPECT_EQ(told(0, AlertNews::raised, Severity::critical), AlertNews::escalated);
  EXPECT_EQ(told(42, AlertNews::escalated, Severity::warning), std::nullopt);
}

TEST_F(IncidentsTest, TwoProcessesAreTwoLeaksUntilTheirDeviceLeaks) {
  EXPECT_EQ(told(42, AlertNews::raised), AlertNews::raised);
  const std::string first = change_.id;
  EXPECT_EQ(told(43, AlertNews::raised), AlertNews::raised);
  const std::string second = change_.id;
  EXPECT_NE(first, second);
  EXPECT_EQ(told(0, AlertNews::raised), std::nullopt);
  EXPECT_EQ(change_.id, first) << "the older name goes on";
  EXPECT_THAT(change_.also, ElementsAre(second));
  EXPECT_THAT(renamed_, ElementsAre(One(43, 0).key));
  EXPECT_EQ(told(42, AlertNews::cleared), std::nullopt);
  EXPECT_EQ(told(43, AlertNews::cleared), std::nullopt);
  EXPECT_EQ(change_.id, first);
  EXPECT_EQ(told(0, AlertNews::cleared), AlertNews::cleared);
  EXPECT_EQ(change_.id, first);
  EXPECT_THAT(change_.also, ElementsAre(second)) << "who was told of two is told that both are over";
}

TEST_F(IncidentsTest, MemoryThatNoProcessHoldsIsOneWithItsDevice) {
  One rest{0, 100};
  rest.key.metric = Metric::device_unattributed;
  EXPECT_EQ(told(rest, AlertNews::raised), AlertNews::raised);
  EXPECT_EQ(told(0, AlertNews::raised), std::nullopt);
  EXPECT_EQ(told(rest, AlertNews::cleared), std::nullopt);
  EXPECT_EQ(told(0, AlertNews::cleared), AlertNews::cleared);
}

TEST_F(IncidentsTest, TheNameIsThatOfTheFirstAlertWhoeverSpeaks) {
  told(42, AlertNews::raised);
  const std::string id = change_.id;
  EXPECT_EQ(id, alert_id(One(42, 0).key, at(100)));
  Incidents again;
  One same{42, 100};
  again.raise(same.key, same.alert);
  EXPECT_EQ(same.alert.incident, id) << "a replay gives the same";
}

TEST_F(IncidentsTest, ARestartGoesOnWithTheNameThatPeopleKnow) {
  One before{42, 50};
  before.alert.incident = "known";
  EXPECT_EQ(told(42, AlertNews::raised), AlertNews::raised);
  incidents_.adopt(before.key, before.alert, true, {});
  EXPECT_EQ(told(0, AlertNews::raised), std::nullopt);
  EXPECT_EQ(change_.id, "known");
  EXPECT_EQ(told(42, AlertNews::cleared), std::nullopt);
  EXPECT_EQ(told(0, AlertNews::cleared), AlertNews::cleared);
}

TEST_F(IncidentsTest, WhatIsRaisedAgainSoonAfterARestartIsTheSame) {
  One before{42, 50};
  before.alert.incident = "known";
  incidents_.adopt(before.key, before.alert, false, at(3600));
  Incidents later = incidents_;
  EXPECT_EQ(told(0, AlertNews::raised), AlertNews::raised);
  EXPECT_EQ(change_.id, "known");
  One late{42, 4000};
  later.raise(late.key, late.alert);
  EXPECT_NE(late.alert.incident, "known");
}

TEST_F(IncidentsTest, TwoThatProvedToBeOneBeforeARestartStayOne) {
  One device{0, 50};
  One process{42, 40};
  device.alert.incident = "first";
  process.alert.incident = "second";  // the record of it was truncated
  incidents_.adopt(device.key, device.alert, true, {});
  incidents_.adopt(process.key, process.alert, true, {});
  EXPECT_EQ(process.alert.incident, "first");
  EXPECT_EQ(told(42, AlertNews::cleared), std::nullopt);
  EXPECT_EQ(told(0, AlertNews::cleared), AlertNews::cleared);
  EXPECT_THAT(change_.also, ElementsAre("second"));
}

TEST_F(IncidentsTest, WhatTheAllocatorOfAProcessReportsIsNotToldAgain) {
  const auto told_of = [&](Metric metric, std::uint32_t pid, AlertNews news) {
    One one{pid, 100};
    one.key.metric = metric;
    return told(one, news);
  };
  EXPECT_EQ(told_of(Metric::allocator_reserved, 42, AlertNews::raised), AlertNews::raised);
  EXPECT_EQ(told_of(Metric::allocator_allocated, 42, AlertNews::raised), std::nullopt);
  EXPECT_EQ(told_of(Metric::process_used, 42, AlertNews::raised), std::nullopt);
  EXPECT_EQ(told_of(Metric::allocator_allocated, 43, AlertNews::raised), AlertNews::raised) << "another process";
  EXPECT_EQ(told_of(Metric::allocator_reserved, 42, AlertNews::cleared), std::nullopt);
  EXPECT_EQ(told_of(Metric::process_used, 42, AlertNews::cleared), std::nullopt);
  EXPECT_EQ(told_of(Metric::allocator_allocated, 42, AlertNews::cleared), AlertNews::cleared);
}

TEST_F(IncidentsTest, TheRanksOfAJobAreOne) {
  const auto rank = [&](std::uint32_t pid, const std::string& device, AlertNews news, const std::string& work) {
    return told(One{pid, 100, {}, device}, news, Severity::warning, work);
  };
  EXPECT_EQ(rank(1, "GPU-0", AlertNews::raised, "job 7"), AlertNews::raised);
  const std::string id = change_.id;
  EXPECT_EQ(rank(2, "GPU-1", AlertNews::raised, "job 7"), std::nullopt);
  EXPECT_EQ(change_.id, id);
  EXPECT_EQ(rank(0, "GPU-1", AlertNews::raised, "job 7"), std::nullopt) << "a device of one of them";
  EXPECT_EQ(rank(3, "GPU-2", AlertNews::raised, "job 8"), AlertNews::raised) << "another job";
  EXPECT_EQ(rank(4, "GPU-3", AlertNews::raised, ""), AlertNews::raised) << "nobody knows of which";
  EXPECT_EQ(rank(1, "GPU-0", AlertNews::cleared, ""), std::nullopt);
  EXPECT_EQ(rank(2, "GPU-1", AlertNews::cleared, ""), std::nullopt);
  EXPECT_EQ(rank(0, "GPU-1", AlertNews::cleared, ""), AlertNews::cleared);
  EXPECT_EQ(change_.id, id);
}

TEST_F(IncidentsTest, WorkThatIsStartedAgainAndLeaksAgainIsTheSameForAnHour) {
  const auto run = [&](std::uint32_t pid, double raised_s, const std::string& work) {
    const std::optional<AlertNews> raised = told(One{pid, raised_s}, AlertNews::raised, Severity::warning, work);
    const std::string id = change_.id;
    EXPECT_EQ(raised, AlertNews::raised) << "people are told that it leaks again";
    EXPECT_EQ(told(One{pid, raised_s, raised_s + 100}, AlertNews::cleared), AlertNews::cleared);
    EXPECT_EQ(change_.id, id);
    return id;
  };
  const std::string id = run(1, 100, "job 7");
  EXPECT_EQ(run(2, 1000, "job 7"), id);
  EXPECT_NE(run(3, 2000, "job 8"), id) << "on the same GPU, but it is another job";
  EXPECT_EQ(run(4, 3000, "job 7"), id);
  EXPECT_NE(run(5, 3000 + 100 + Incidents::kSameWork_s + 1, "job 7"), id);
}

TEST_F(IncidentsTest, ARankThatIsRaisedAfterARestartIsOfTheIncidentOfItsJob) {
  One before{1, 50};
  before.alert.incident = "known";
  incidents_.adopt(before.key, before.alert, true, {}, "job 7");
  told(One{2, 100, {}, "GPU-1"}, AlertNews::raised, Severity::warning, "job 7");
  EXPECT_EQ(change_.id, "known");
}

TEST_F(IncidentsTest, AProcessThatLeaksAndStallsIsTwo) {
  One stalled{42, 101};
  stalled.alert.kind = AlertKind::stall;
  EXPECT_EQ(told(42, AlertNews::raised), AlertNews::raised);
  EXPECT_EQ(told(stalled, AlertNews::raised), AlertNews::raised);
  EXPECT_EQ(told(42, AlertNews::cleared), AlertNews::cleared);
  EXPECT_EQ(told(stalled, AlertNews::cleared), AlertNews::cleared);
}

TEST_F(IncidentsTest, WhatIsNoLeakIsToldByItself) {
  One stalled{42, 101};
  stalled.alert.kind = AlertKind::stall;
  EXPECT_EQ(told(0, AlertNews::raised), AlertNews::raised);
  EXPECT_EQ(told(stalled, AlertNews::raised), AlertNews::raised);
  EXPECT_EQ(told(stalled, AlertNews::cleared), AlertNews::cleared);
}

}  // namespace
}  // namespace vramtrack
