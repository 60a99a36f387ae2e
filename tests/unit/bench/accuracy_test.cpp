// The accuracy bench judges others: its own arithmetic is held here by hand-checked examples.
#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "families.hpp"
#include "metrics.hpp"
#include "recordings.hpp"

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

TEST(AccuracyFamilies, EveryTraceParsesAndTheSplitsDiffer) {
  std::set<std::string> names;
  for (const Family& family : families()) {
    EXPECT_TRUE(names.insert(std::string(family.name)).second) << family.name;
    for (const Split split : {Split::tune, Split::test}) {
      const Trace trace = make_trace(family, split, 1, 0);
      const auto scenario = sim::parse_scenario(trace.toml, trace.family);
      ASSERT_TRUE(scenario) << family.name << ": " << scenario.error().message;
      EXPECT_EQ(trace.label.leak, family.leak);
      EXPECT_EQ(trace.toml, make_trace(family, split, 1, 0).toml);
    }
    EXPECT_NE(make_trace(family, Split::tune, 1, 0).toml, make_trace(family, Split::test, 1, 0).toml);
  }
}

TEST(AccuracyRecordings, AreReadWithTheirLabels) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "vramtrack_accuracy_test";
  std::filesystem::create_directories(folder);
  EXPECT_TRUE(own_recordings((folder / "none").string(), Split::test).empty());
  std::ofstream(folder / "labels.csv") << "name,framework,kind,leak,pattern,onset_s,oom_s,end_s,cap_bytes,wave\n"
                                          "one,pytorch,outputs_kept,1,step_increase,2.00,9.00,10.00,1000,2\n";
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
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace vramtrack::accuracy
