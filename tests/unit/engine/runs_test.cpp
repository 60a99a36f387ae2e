// Recordings of several runs: each has its end, and the last one is judged separately.
#include <gmock/gmock.h>

#include <tuple>

#include "one_gpu.hpp"
#include "report/conclusion_words.hpp"

namespace vramtrack {
namespace {

constexpr double kEvery_s = 20;
constexpr std::uint64_t kDriver = 400 * kMiB;
constexpr std::uint64_t kFirst = 2 * kGiB;
constexpr std::uint64_t kStep = 62 * kMiB;  // per reading

class Runs : public OneGpu {
 protected:
  void read(std::uint64_t program, int times = 1) {
    for (int i = 0; i < times; ++i, now += kEvery_s) {
      tick(now, kDriver + tenants + program);
      if (++readings % 40 != 0) continue;
      engine->finish();
      seen_cycling |= device().verdict.finding.state == State::cycling;
    }
  }
  /// Leaks from its start until the next reading would not fit, or for `times` readings. Returns the first and the last
  /// time.
  std::pair<double, double> leak(int times = 100000) {
    const double begin = now;
    for (std::uint64_t used = kFirst; kDriver + tenants + used <= 24 * kGiB && times-- > 0; used += kStep) read(used);
    return {begin, now - kEvery_s};
  }
  const SeriesView& device() { return seen(device_series); }

  std::uint64_t tenants = 0;
  double now = 0;
  int readings = 0;
  bool seen_cycling = false;
};

using Case = std::tuple<int, std::uint64_t>;
class CrashLoop : public Runs, public testing::WithParamInterface<Case> {};

TEST_P(CrashLoop, HasARunAnEndAndALeadForEachCrash) {
  const auto [idle, tenant] = GetParam();
  tenants = tenant;
  start();
  std::vector<std::pair<double, double>> truth;
  for (int i = 0; i < 3; ++i) {
    truth.push_back(leak());
    read(0, idle);
  }
  const double again = now;
  leak(60);
  engine->finish();

  const auto& runs = device().runs;
  ASSERT_EQ(runs.size(), 4U);
  for (std::size_t i = 0; i < truth.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_NEAR(seconds_between(at(truth[i].first), runs[i].begin), 0, 2 * kEvery_s);
    EXPECT_EQ(runs[i].end, at(truth[i].second));
    EXPECT_EQ(runs[i].how, EndKind::out_of_memory);
    EXPECT_NEAR(runs[i].growth_bytes_per_s.value_or(0), kStep / kEvery_s, 0.1 * kStep / kEvery_s);
    ASSERT_TRUE(run_lead_s(runs[i]));
    EXPECT_GT(*run_lead_s(runs[i]), 0.3 * (truth[i].second - truth[i].first));
  }
  EXPECT_NEAR(seconds_between(at(again), runs[3].begin), 0, 2 * kEvery_s);
  EXPECT_FALSE(runs[3].end);
  const Verdict& v = device().verdict;
  EXPECT_TRUE(v.finding.leak) << v.finding.because;
  EXPECT_THAT(v.finding.because, testing::HasSubstr("3 earlier runs grew at about this rate and ran out of memory"));
  EXPECT_LE(seconds_between(runs[3].begin, device().alerts.back().raised), 600) << "it grows like those that ran out";
  EXPECT_FALSE(seen_cycling);
  for (std::size_t i = 0; i + 1 < device().alerts.size(); ++i) {
    EXPECT_EQ(device().alerts[i].ended, AlertEnd::process_ended);
    EXPECT_EQ(device().alerts[i].end_kind, EndKind::out_of_memory);
    EXPECT_THAT(device().alerts[i].end_reason, testing::HasSubstr("memory ran out"));
  }
}
INSTANTIATE_TEST_SUITE_P(All, CrashLoop, testing::Combine(testing::Values(0, 2, 15), testing::Values(0, 6 * kGiB)),
                         [](const testing::TestParamInfo<Case>& of) {
                           return "With" + std::to_string(std::get<0>(of.param)) + "IdleReadings" +
                                  (std::get<1>(of.param) > 0 ? "BesideATenant" : "Alone");
                         });

TEST_F(Runs, AHealthyRunAfterACrashIsHealthy) {
  for (const std::uint64_t tenant : {std::uint64_t{0}, 6 * kGiB}) {
    SCOPED_TRACE(tenant);
    tenants = tenant;
    now = 0;
    start();
    leak();
    read(0, 3);
    read(8 * kGiB, 300);
    engine->finish();
    ASSERT_EQ(device().runs.size(), 2U);
    EXPECT_FALSE(device().runs[1].end);
    EXPECT_EQ(device().verdict.finding.state, State::steady) << device().verdict.finding.because;
    EXPECT_EQ(told_of(device_series).end.find("its memory was released"), std::string::npos)
        << "it stands under a run that goes on";
  }
}

TEST_F(Runs, ATenantThatIsLeftIsNoRun) {
  tenants = 6 * kGiB;
  start();
  leak();
  read(0, 300);
  engine->finish();
  ASSERT_EQ(device().runs.size(), 1U);
  EXPECT_EQ(device().runs[0].how, EndKind::out_of_memory);
  EXPECT_EQ(device().verdict.finding.state, State::steady);
  EXPECT_THAT(told_of(device_series).verdict, testing::HasSubstr("LEAKED until memory ran out (since then: steady)"));
}

TEST_F(Runs, ARunThatIsStoppedBesideATenantHasEnded) {
  tenants = 6 * kGiB;
  start();
  leak();
  read(0, 4);
  const auto [begin, end] = leak(200);
  read(0, 4);
  engine->finish();
  ASSERT_EQ(device().runs.size(), 2U);
  EXPECT_EQ(device().runs[1].end, at(end));
  EXPECT_EQ(device().runs[1].how, EndKind::ended);
}

/// A run that loads for two readings, leaks, and is killed far below the limit; the next one has begun by the next
/// reading. No source lists processes, but one may report the end.
class RestartBelowTheLimit : public Runs, public testing::WithParamInterface<bool> {
 protected:
  static constexpr std::uint64_t kContext = 700 * kMiB;
  static constexpr std::uint64_t kModel = 10 * kGiB;
  static constexpr int kReadings = 150;

  void load() {
    read(kContext);
    read(kModel / 2);
  }
  void leak_from(std::uint64_t bytes, int times = kReadings) {
    for (int i = 0; i < times; ++i) read(bytes + static_cast<std::uint64_t>(i) * kStep);
  }
  void report_end() {
    Batch batch;
    Event event;
    event.time = at(now - kEvery_s + 0.001);  // after the last reading, as in a log
    event.kind = Event::Kind::process_ended;
    event.text = "a program ended: worker died";
    batch.events.push_back(event);
    engine->ingest(batch);
  }
};

TEST_P(RestartBelowTheLimit, EndsTheRun) {
  start();
  std::vector<double> begins;
  for (int i = 0; i < 3; ++i) {
    if (i > 0 && GetParam()) report_end();
    begins.push_back(now);
    load();
    leak_from(kModel);
  }
  engine->finish();
  const auto& runs = device().runs;
  ASSERT_EQ(runs.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(runs[i].begin, at(begins[i]));
    EXPECT_TRUE(runs[i].first_alert);
    if (i == 2) continue;
    EXPECT_EQ(runs[i].end, at(begins[i + 1] - kEvery_s));
    EXPECT_EQ(runs[i].how, EndKind::ended);
    EXPECT_NEAR(runs[i].growth_bytes_per_s.value_or(0), kStep / kEvery_s, 0.05 * kStep / kEvery_s);
    EXPECT_EQ(device().alerts[i].end_kind, EndKind::ended);
  }
  EXPECT_FALSE(runs[2].end);
  EXPECT_TRUE(device().verdict.finding.leak) << device().verdict.finding.because;
  EXPECT_EQ(device().alerts.size(), 3U) << "one for each run";
  EXPECT_EQ(views.back()->notices.size(), GetParam() ? 2U : 0U) << "who reported it, once for each end";
}
INSTANTIATE_TEST_SUITE_P(All, RestartBelowTheLimit, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& of) { return of.param ? "Reported" : "NotReported"; });

/// A pause in which the model makes room for another program's, after which all leaked memory is still there.
TEST_F(RestartBelowTheLimit, IsNotAModelThatMakesRoom) {
  start();
  load();
  leak_from(kModel);
  load();
  leak_from(kModel + kReadings * kStep, 20);
  engine->finish();
  EXPECT_EQ(device().runs.size(), 1U);
  EXPECT_FALSE(device().runs[0].end);
}

/// The same, and the readings show how the model is loaded again.
TEST_F(RestartBelowTheLimit, IsNotAModelThatIsTakenBackStepByStep) {
  start();
  load();
  leak_from(kModel);
  const std::uint64_t most = kModel + kReadings * kStep;
  read(kContext);
  for (std::uint64_t back = 4 * kGiB; back < most; back += 3 * kGiB) read(back);
  leak_from(most, 20);
  engine->finish();
  EXPECT_EQ(device().runs.size(), 1U);
  EXPECT_FALSE(device().runs[0].end);
}

/// Helpers die, and the program releases an evaluation's memory: down to more than its load, because it had leaked.
TEST_F(RestartBelowTheLimit, IsNotAHelperThatDiesAfterAnEvaluation) {
  start();
  load();
  std::uint64_t used = kModel;
  for (int i = 0; i < 8; ++i) {
    for (int k = 0; k < 30; ++k) read(used += kStep / 2);
    read(used + 4 * kGiB, 3);
    report_end();
  }
  read(used, 3);
  engine->finish();
  EXPECT_EQ(device().runs.size(), 1U);
  EXPECT_FALSE(device().verdict.end);
  EXPECT_TRUE(device().verdict.finding.leak) << device().verdict.finding.because;
  EXPECT_TRUE(views.back()->notices.empty());
}

/// Nor is a fall of a series that never grew, whichever process has died.
TEST_F(RestartBelowTheLimit, IsNotAFallOfAHealthyProgram) {
  start();
  load();
  read(kModel, 60);
  report_end();
  read(kModel / 2, 30);
  engine->finish();
  EXPECT_EQ(device().runs.size(), 1U);
  EXPECT_FALSE(device().verdict.end);
}

/// The data that a program has collected is released, but its model is not.
TEST_F(RestartBelowTheLimit, IsNotAProgramThatGivesBackWhatItCollected) {
  start();
  load();
  for (int i = 0; i < 3; ++i) leak_from(kModel);
  engine->finish();
  EXPECT_EQ(device().runs.size(), 1U);
  EXPECT_FALSE(device().runs[0].end);
}

/// A program that releases its load from time to time and continues is not assumed to have ended when it releases all.
TEST_F(RestartBelowTheLimit, IsNotAProgramThatHasGivenItsLoadBackBefore) {
  start();
  load();
  leak_from(kModel, 30);
  load();
  leak_from(kModel + 30 * kStep);
  engine->finish();
  ASSERT_TRUE(device().verdict.finding.leak);
  load();
  leak_from(kModel, 30);
  engine->finish();
  EXPECT_EQ(device().runs.size(), 1U);
  EXPECT_FALSE(device().runs[0].end);
}

/// Another program's end is not the end of one that keeps its memory.
TEST_F(RestartBelowTheLimit, IsNotAReportWithoutAFall) {
  start();
  load();
  leak_from(kModel, 100);
  report_end();
  leak_from(kModel + 100 * kStep, 20);
  engine->finish();
  EXPECT_EQ(device().runs.size(), 1U);
  EXPECT_TRUE(device().verdict.finding.leak);
  EXPECT_FALSE(device().verdict.end);
}

/// The device's total may have just jumped when the leaking process is to be reported.
TEST_F(Runs, TheDeviceTellsTheStoryOfTheProcessThatGrows) {
  start();
  std::uint32_t pid = 20;
  std::uint64_t used = kFirst;
  const auto run_to = [&](std::uint64_t most) {
    const SeriesId id = process(++pid, "python train.py");
    for (used = kFirst; kDriver + used <= most; used += kStep, now += kEvery_s) tick(now, kDriver + used, {{id, used}});
    return id;
  };
  for (int i = 0; i < 3; ++i) run_to(24 * kGiB);
  const SeriesId last = run_to(9 * kGiB);
  engine->finish();
  const Finding& process_says = seen(last).verdict.finding;
  const Finding& device_says = device().verdict.finding;
  EXPECT_EQ(device_says.state, process_says.state) << device_says.because;
  EXPECT_NEAR(device_says.growth_bytes_per_s.mid, process_says.growth_bytes_per_s.mid, 0.01 * kMiB);
  ASSERT_EQ(device().runs.size(), 4U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(device().runs[i].how, EndKind::out_of_memory) << i;
  // Devices come first, then living processes.
  for (const SeriesView& s : views.back()->series) {
    if (s.key.metric != Metric::process_used) continue;
    EXPECT_EQ(s.id, last) << "it comes before those that have ended";
    break;
  }
}

/// Four stages and hours without change, after a healthy run and an idle time.
TEST_F(Runs, WhatLoadsInStagesAfterAnEarlierRunRaisesNothing) {
  start();
  read(0, 90);
  read(8 * kGiB, 1000);
  read(0, 600);
  std::uint64_t used = 0;
  for (const int readings_of_stage : {54, 68, 8, 36}) {
    used += 3 * kGiB;
    read(used, readings_of_stage);
  }
  read(used + 28 * kMiB, 720);
  engine->finish();
  EXPECT_TRUE(device().alerts.empty());
  EXPECT_EQ(device().runs.size(), 2U);
}

}  // namespace
}  // namespace vramtrack
