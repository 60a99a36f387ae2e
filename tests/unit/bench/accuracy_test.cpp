// The accuracy bench judges others: its own arithmetic is checked here with examples calculated by hand.
#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "metrics.hpp"
#include "must_show.hpp"
#include "recordings.hpp"
#include "tables.hpp"

namespace vramtrack::accuracy {
namespace {

Trace leak_from(double onset_s) {
  Trace trace;
  trace.capacity_bytes = 24.0 * 1073741824;
  trace.label.leak = true;
  trace.label.onset_s = onset_s;
  return trace;
}

Played played(double end_s, std::optional<double> oom_s = {}) {
  Played p;
  p.end_s = end_s;
  p.oom_s = oom_s;
  for (int i = 0; i <= 1000; ++i) p.points.push_back({end_s * i / 1000, 0});
  return p;
}

TEST(AccuracyScore, CountsAlarmsOfHealthOnceAnHour) {
  Trace healthy;
  Outcome outcome;
  outcome.alarms = {{100, 200}, {3000, 3100}, {9000, 9100}};  // the second is within an hour of the first's end
  const Scored s = score(healthy, played(86400), outcome);
  EXPECT_EQ(s.false_episodes, 2);
  EXPECT_DOUBLE_EQ(s.healthy_s, 86400);
  EXPECT_FALSE(s.detected);
}

TEST(AccuracyScore, AnAlarmBeforeTheLeakIsFalseAndOneThatStandsIntoItCounts) {
  Outcome outcome;
  outcome.alarms = {{500, 900}, {5000, 7000}};
  const Scored s = score(leak_from(6000), played(16000, 16000), outcome);
  EXPECT_EQ(s.false_episodes, 2);
  EXPECT_TRUE(s.detected);
  EXPECT_DOUBLE_EQ(s.delay_s, 0);
  EXPECT_DOUBLE_EQ(s.life_s, 10000);
  EXPECT_DOUBLE_EQ(s.limit_s, 500);  // 5 % of life
}

TEST(AccuracyScore, ALeakFoundInTheSecondHalfOfItsLifeIsLate) {
  Outcome outcome;
  outcome.alarms = {{7000, 10000}};
  const Scored s = score(leak_from(0), played(10000, 10000), outcome);
  EXPECT_TRUE(s.detected);
  EXPECT_FALSE(s.before_half);
}

TEST(AccuracyScore, EachMarkIsCountedByItself) {
  Played p = played(10000, 10000);
  p.ours.suspicions = {{1000, 10000}};
  p.ours.told = {{3000, 10000}};
  p.ours.told_elsewhere = 1;
  p.ours.alarms = {{7000, 10000}};
  const Trace leak = leak_from(0);
  EXPECT_DOUBLE_EQ(score(leak, p, Mark::suspected).delay_s, 1000);
  EXPECT_DOUBLE_EQ(score(leak, p, Mark::told).delay_s, 3000);
  EXPECT_DOUBLE_EQ(score(leak, p, Mark::paged).delay_s, 7000);
  EXPECT_EQ(score(leak, p, Mark::told).false_episodes, 1);
  EXPECT_EQ(score(leak, p, Mark::paged).false_episodes, 0);
}

TEST(AccuracyScore, ALeakIsDueAnHourOrAThirdOfItsLifeBeforeItsEnd) {
  Trace leak = leak_from(1000);
  leak.label.life_s = 90000;
  EXPECT_FALSE(score(leak, played(1000 + 90000 - 3601), Outcome{}).due);
  EXPECT_TRUE(score(leak, played(1000 + 90000 - 3600), Outcome{}).due);
  leak.label.life_s = 3000;
  EXPECT_FALSE(score(leak, played(2999), Outcome{}).due);
  EXPECT_TRUE(score(leak, played(3000), Outcome{}).due);
  Summary s;
  s.leaks = 10;
  s.detected = 6;
  s.due = 8;
  s.due_detected = 6;
  s.healthy = 4;
  s.alarmed = 1;
  EXPECT_DOUBLE_EQ(s.due_recall(), 0.75);
  EXPECT_DOUBLE_EQ(s.due_f1(), 0.75) << "precision 0.75 / (0.75 + 0.25)";
}

TEST(AccuracySummary, PrecisionFollowsThePrevalence) {
  Summary s;
  s.leaks = 10;
  s.detected = 9;
  s.healthy = 100;
  s.alarmed = 2;
  EXPECT_DOUBLE_EQ(s.recall(), 0.9);
  EXPECT_NEAR(s.precision(1), 0.9 / 0.92, 1e-12);
  EXPECT_NEAR(s.precision(50), 0.9 / 1.9, 1e-12);
  EXPECT_NEAR(s.f1(), 2 * 0.9 * (0.9 / 0.92) / (0.9 + 0.9 / 0.92), 1e-12);
}

TEST(AccuracySummary, ThePoissonIntervalOfNothingIsThreeInTwentySix) {
  // Garwood: the 97.5 % upper bound of no event is -ln(0.025) = 3.689.
  const Interval none = poisson_rate(0, 26);
  EXPECT_DOUBLE_EQ(none.low, 0);
  EXPECT_NEAR(none.high, 3.689 / 26, 1e-3);
  const Interval ten = poisson_rate(10, 1);  // the textbook's 4.80 to 18.39
  EXPECT_NEAR(ten.low, 4.795, 1e-2);
  EXPECT_NEAR(ten.high, 18.39, 1e-2);
}

TEST(AccuracyScore, AnAlarmOfTheNextLifeDoesNotCountForTheFirst) {
  Outcome outcome;
  outcome.alarms = {{12000, 13000}};
  EXPECT_FALSE(score(leak_from(0), played(20000, 10000), outcome).detected);
}

TEST(AccuracyDays, CountByTheDayOnWhichTheyWereRaised) {
  accuracy::Run run;
  run.played.end_s = 4 * 86400;
  run.played.ours.alarms = {{3600, 7200}};
  run.played.ours.suspicions = {{3600, 7200}, {86400 + 10, 90000}, {86400 + 20000, 110000}, {3 * 86400 + 5, 300000}};
  DayCount days;
  days.add(run);
  EXPECT_EQ(days.at(Mark::paged).on_first, 1);
  EXPECT_EQ(days.at(Mark::suspected).on_first, 1);
  EXPECT_EQ(days.at(Mark::told).on_first, 0);
  EXPECT_EQ(days.at(Mark::paged).later, 0);
  EXPECT_EQ(days.at(Mark::suspected).later, 1) << "a trace counts once";
  EXPECT_EQ(days.at(Mark::suspected).days, 2) << "a day counts once";
  EXPECT_DOUBLE_EQ(days.later_days, 3);
}

TEST(AccuracyEnds, CountTheLeaksOfEachCell) {
  std::vector<accuracy::Run> runs(3);
  for (accuracy::Run& run : runs) {
    run.trace.family = "linear";
    run.trace.label.leak = true;
    run.trace.label.pattern = Pattern::gradual_leak;
  }
  runs[0].played.ours.ends[2] = EndForetold{100, Interval{80, 110, 130}};
  runs[1].played.ours.ends[2] = EndForetold{100, Interval{101, 120, 130}};
  runs[2].played.ours.ends[2] = EndForetold{100, std::nullopt};
  for (const EndsCell& cell : ends_cells(runs)) {
    EXPECT_DOUBLE_EQ(cell.life_share, 0.5);
    EXPECT_EQ(cell.leaks, 3);
    EXPECT_EQ(cell.given, 2);
    EXPECT_EQ(cell.covered, 1);
    EXPECT_NEAR(cell.errors.at(0), 0.1, 1e-12);
  }
}

TEST(AccuracyFrontier, AHigherBarFindsLessAndAlarmsLess) {
  std::vector<accuracy::Run> runs(2);
  runs[0].trace.label.leak = true;
  runs[0].ours.life_s = 1000;
  for (std::size_t i = 0; i < 5; ++i) runs[0].played.ours.bars[i].leaking_s = 100.0 * static_cast<double>(i + 1);
  runs[1].played.ours.bars[0].while_healthy = true;
  for (accuracy::Run& run : runs) run.ours.trace = run.told.trace = run.suspected.trace = &run.trace;
  const std::string table = frontier_table(runs);
  EXPECT_NE(table.find("| 0.30 | 1.000 | 0.500 | 1.000 | 10.0 |"), std::string::npos) << table;
  EXPECT_NE(table.find("| 0.50 | 1.000 | 1.000 | 0.000 | 20.0 |"), std::string::npos) << table;
  EXPECT_NE(table.find("| 0.99 | 0.000 |"), std::string::npos) << table;
}

TEST(AccuracyForecast, TheDemoIsFollowedToItsEndAndLinesToTheirs) {
  const ForecastFigures figures = measure_forecast(1, 16, 1, Config{}, 1);
  EXPECT_GT(figures.looks, 0);
  EXPECT_LE(figures.missed, figures.looks);
  EXPECT_GT(figures.clean_within, 0.5) << "a straight line without noise";
}

TEST(AccuracyRequirements, WhatWasNotPlayedIsNotClaimed) {
  EXPECT_EQ(must_show_table({}).find("reached"), std::string::npos);
}

TEST(AccuracyRecordings, AreReadWithTheirLabels) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "vramtrack_accuracy_test";
  std::filesystem::create_directories(folder);
  EXPECT_TRUE(own_recordings((folder / "none").string(), Split::test).empty());
  std::ofstream(folder / "labels.csv")
      << "name,framework,kind,leak,pattern,onset_s,oom_s,end_s,cap_bytes,process_limit_bytes,wave\n"
         "one,pytorch,outputs_kept,1,step_increase,2.00,9.00,10.00,1000,1500,2\n";
  const gzFile file = gzopen((folder / "one.csv.gz").c_str(), "wb");
  gzputs(file, "t_s,device_used_bytes,process_used_bytes,allocated_bytes,reserved_bytes\n");
  for (int i = 0; i < 100; ++i) {
    const std::string line = std::to_string(0.1 * i) + ",,,," + (i == 5 ? "" : std::to_string(10 * i)) + "\n";
    gzputs(file, line.c_str());
  }
  gzclose(file);
  const std::vector<Trace> traces = own_recordings(folder.string(), Split::test);
  EXPECT_TRUE(own_recordings(folder.string(), Split::tune).empty()) << "a wave is in one split";
  ASSERT_EQ(traces.size(), 1U);
  EXPECT_EQ(traces[0].label.pattern, Pattern::step_increase);
  EXPECT_DOUBLE_EQ(traces[0].label.onset_s, 120);
  EXPECT_EQ(traces[0].points.size(), 90U);  // up to out-of-memory, without the reading that failed
  EXPECT_DOUBLE_EQ(traces[0].points[1].t_s, 6);
  // The cap of 1,000 bytes and the 500 of the process's context fill a card of 24 GiB.
  const double card = 24.0 * 1073741824;
  EXPECT_DOUBLE_EQ(traces[0].capacity_bytes, card);
  EXPECT_DOUBLE_EQ(traces[0].points[0].used_bytes, 500);
  EXPECT_DOUBLE_EQ(traces[0].points[1].used_bytes, 500 + (card - 500) / 100);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace vramtrack::accuracy
