// Money figures that can be checked by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "period_fixture.hpp"

namespace vramtrack {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

void expect_near(const std::optional<Interval>& i, double low, double mid, double high) {
  ASSERT_TRUE(i);
  EXPECT_NEAR(i->low, low, 1e-9);
  EXPECT_NEAR(i->mid, mid, 1e-9);
  EXPECT_NEAR(i->high, high, 1e-9);
}

PeriodReport with(const CostRules& rules) {
  PeriodReport r = example_report();
  r.rules = rules;
  reckon(r);
  return r;
}

TEST(Money, WithoutACheckpointAllWorkSinceTheStartIsLost) {
  const Money money = example_report().money;
  ASSERT_EQ(money.jobs.size(), 1U);
  const JobRisk& job = money.jobs[0];
  EXPECT_EQ(job.kind, "Slurm job");
  EXPECT_EQ(job.id, "1234");
  EXPECT_THAT(job.pids, ElementsAre(4242U));
  EXPECT_THAT(job.devices, ElementsAre("GPU-0"));
  EXPECT_EQ(job.basis, JobLoss::Basis::start);
  // It began 5 minutes in, so it is 3300 s old; 2400, 3000 and 3900 s are still to come; one GPU at 2.5 USD per hour.
  expect_near(job.lost.gpu_h, 5700 / 3600.0, 6300 / 3600.0, 7200 / 3600.0);
  expect_near(job.lost.usd, 2.5 * 5700 / 3600, 2.5 * 6300 / 3600, 2.5 * 2);
  expect_near(money.at_risk.usd, job.lost.usd->low, job.lost.usd->mid, job.lost.usd->high);
}

TEST(Money, AJobThatWasThereBeforeTheRecordingLosesAtLeastThat) {
  PeriodReport r = example_report();
  r.series[2].seen_from_start = true;
  reckon(r);
  EXPECT_EQ(r.money.jobs[0].basis, JobLoss::Basis::first_seen);
}

TEST(Money, ACrashFallsAnywhereBetweenTwoCheckpoints) {
  CostRules rules;
  rules.checkpoint_every_s = 1800;
  const JobRisk job = with(rules).money.jobs.at(0);
  EXPECT_EQ(job.basis, JobLoss::Basis::checkpoint_every);
  expect_near(job.lost.gpu_h, 0.05, 0.25, 0.45);
  EXPECT_FALSE(job.lost.usd);  // no known price means no amount, not zero
}

TEST(Money, BeforeItsFirstCheckpointAJobLosesAll) {
  CostRules rules;
  rules.checkpoint_every_s = 100 * 3600;
  EXPECT_EQ(with(rules).money.jobs.at(0).basis, JobLoss::Basis::start);
}

TEST(Money, AKnownLastCheckpointWinsAndTheJobsOwnWinsOverAll) {
  CostRules rules;
  rules.checkpoint_every_s = 1800;
  rules.last_checkpoints = {{"4242", minutes_in(50)}, {"", minutes_in(0)}, {"99", minutes_in(60)}};
  const JobRisk job = with(rules).money.jobs.at(0);
  EXPECT_EQ(job.basis, JobLoss::Basis::last_checkpoint);
  expect_near(job.lost.gpu_h, 3000 / 3600.0, 3600 / 3600.0, 4500 / 3600.0);
  rules.last_checkpoints = {{"1234", minutes_in(60)}};
  expect_near(with(rules).money.jobs.at(0).lost.gpu_h, 2400 / 3600.0, 3000 / 3600.0, 3900 / 3600.0);
}

TEST(Money, AJobOnSeveralGpusLosesThemAllAndIsCountedOnce) {
  PeriodReport r = example_report();
  PeriodSeries other = r.series[2];
  other.view.key.device_id = "GPU-1";
  other.view.key.pid = 4243;
  other.view.process->pid = 4243;
  other.view.verdict.finding.oom_in_s = Interval{600, 1200, 1800};
  r.series.push_back(other);
  reckon(r);
  ASSERT_EQ(r.money.jobs.size(), 1U);
  EXPECT_THAT(r.money.jobs[0].devices, ElementsAre("GPU-0", "GPU-1"));
  // The earlier end counts: 3300 s old, 1200 s still to come, two GPUs.
  EXPECT_THAT(r.money.jobs[0].lost.gpu_h->mid, DoubleNear(2 * 4500 / 3600.0, 1e-9));
}

TEST(Money, JobsAreSummed) {
  PeriodReport r = example_report();
  PeriodSeries other = r.series[2];
  other.view.key.pid = 5;
  other.view.process->pid = 5;
  other.view.process->slurm_job.clear();
  other.view.process->container = "0123456789abcdef0123";
  r.series.push_back(other);
  reckon(r);
  ASSERT_EQ(r.money.jobs.size(), 2U);
  EXPECT_THAT(r.money.at_risk.gpu_h->mid, DoubleNear(2 * 6300 / 3600.0, 1e-9));
  EXPECT_EQ(job_words(r.money.jobs[1].kind, r.money.jobs[1].id), "container 0123456789ab");
}

TEST(Money, WhenNobodyVisibleGrowsTheLossIsNotKnown) {
  PeriodReport r = example_report();
  r.series.erase(r.series.begin() + 2);
  r.series[0].view.verdict.suspect = Suspect{0, 0, "", 0.9};
  reckon(r);
  ASSERT_EQ(r.money.jobs.size(), 1U);
  EXPECT_FALSE(r.money.jobs[0].lost.gpu_h);
  EXPECT_FALSE(r.money.at_risk.gpu_h);
  EXPECT_THAT(r.money.jobs[0].devices, ElementsAre("GPU-0"));
}

TEST(Money, WhatHasEndedOrIsIgnoredLosesNothingAnyMore) {
  PeriodReport r = example_report();
  for (PeriodSeries& s : r.series) s.view.ended = s.view.key.pid != 0;
  reckon(r);
  EXPECT_TRUE(r.money.jobs.empty());
  r = example_report();
  for (PeriodSeries& s : r.series) s.gone = s.view.key.pid != 0;
  reckon(r);
  EXPECT_TRUE(r.money.jobs.empty());
  r = example_report();
  for (PeriodSeries& s : r.series) s.view.ignored = true;
  reckon(r);
  EXPECT_TRUE(r.money.jobs.empty());
}

/// The example, with a leak that exhausted memory ten minutes before the hour.
PeriodReport crashed_report() {
  PeriodReport r = example_report();
  vramtrack::Run run;
  run.begin = kBegin;
  run.end = minutes_in(50);
  run.how = EndKind::out_of_memory;
  run.pid = 4242;
  r.series[0].view.runs.push_back(run);
  r.series[0].view.verdict.finding = {};
  r.series[2].view.ended = true;
  r.series[2].view.last = minutes_in(50);
  return r;
}

TEST(Money, ACrashHasLostTheWorkSinceTheJobBegan) {
  PeriodReport r = crashed_report();
  reckon(r);
  EXPECT_TRUE(r.money.jobs.empty());
  ASSERT_EQ(r.money.crashes.size(), 1U);
  const JobCrash& crash = r.money.crashes[0];
  EXPECT_EQ(crash.kind, "Slurm job");
  EXPECT_EQ(crash.id, "1234");
  EXPECT_EQ(crash.command, "python train.py --config a.yaml");
  EXPECT_THAT(crash.devices, ElementsAre("GPU-0"));
  EXPECT_EQ(crash.time, minutes_in(50));
  EXPECT_EQ(crash.basis, JobLoss::Basis::start);
  expect_near(crash.lost.gpu_h, 0.75, 0.75, 0.75);  // from minute 5 to minute 50
  expect_near(crash.lost.usd, 0.75 * 2.5, 0.75 * 2.5, 0.75 * 2.5);
  expect_near(r.money.crashed.usd, 0.75 * 2.5, 0.75 * 2.5, 0.75 * 2.5);
  EXPECT_FALSE(r.money.at_risk.gpu_h) << "what is lost is not at risk any more";
}

TEST(Money, ACrashLosesTheWorkSinceTheLastCheckpoint) {
  PeriodReport r = crashed_report();
  r.rules.last_checkpoints = {{"1234", minutes_in(40)}};
  reckon(r);
  expect_near(r.money.crashes.at(0).lost.gpu_h, 1 / 6.0, 1 / 6.0, 1 / 6.0);
}

TEST(Money, ACheckpointAfterTheCrashSavedAnotherRun) {
  PeriodReport r = crashed_report();
  r.rules.last_checkpoints = {{"1234", minutes_in(55)}};
  reckon(r);
  EXPECT_EQ(r.money.crashes.at(0).basis, JobLoss::Basis::start);
  expect_near(r.money.crashes.at(0).lost.gpu_h, 0.75, 0.75, 0.75);
}

TEST(Money, ACrashOfAnUnknownProcessHasLostItsRun) {
  PeriodReport r = crashed_report();
  r.series.resize(2);
  r.series[0].view.runs[0].pid = 0;
  reckon(r);
  EXPECT_EQ(r.money.crashes.at(0).id, "");
  EXPECT_EQ(r.money.crashes[0].basis, JobLoss::Basis::first_seen);
  expect_near(r.money.crashes[0].lost.gpu_h, 50 / 60.0, 50 / 60.0, 50 / 60.0);
  r.series[0].view.runs[0].begin = minutes_in(20);
  reckon(r);
  EXPECT_EQ(r.money.crashes.at(0).basis, JobLoss::Basis::start);
  expect_near(r.money.crashes[0].lost.gpu_h, 0.5, 0.5, 0.5);
}

TEST(Money, AJobThatCrashesOnSeveralGpusHasLostThemAllOnce) {
  PeriodReport r = crashed_report();
  r.series[3].view.process->slurm_job = "1234.0";
  r.series[3].first_seen = minutes_in(5);
  r.series[3].view.last = minutes_in(50);
  vramtrack::Run run = r.series[0].view.runs[0];
  run.pid = 7;
  r.series[1].view.runs.push_back(run);
  reckon(r);
  ASSERT_EQ(r.money.crashes.size(), 1U);
  EXPECT_THAT(r.money.crashes[0].pids, ElementsAre(4242U, 7U));
  EXPECT_THAT(r.money.crashes[0].devices, ElementsAre("GPU-0", "GPU-1"));
  expect_near(r.money.crashes[0].lost.gpu_h, 1.5, 1.5, 1.5);
}

TEST(Money, OnlyACrashLosesWork) {
  PeriodReport r = crashed_report();
  r.series[0].view.runs[0].how = EndKind::ended_near_limit;
  reckon(r);
  EXPECT_TRUE(r.money.crashes.empty());
  r = crashed_report();
  r.first = minutes_in(55);
  reckon(r);
  EXPECT_TRUE(r.money.crashes.empty()) << "it was before the period";
}

TEST(Money, MemoryThatStaysBehindIsIdle) {
  const Money money = example_report().money;
  ASSERT_EQ(money.idle.size(), 2U);
  // GPU 0: the driver has 0.4 GiB in addition to the process. Before its start, 8.4 GiB had no owner for 5 minutes.
  EXPECT_NEAR(money.idle[0].orphaned_h, 5 / 60.0, 1e-9);
  // GPU 1: 3 GiB of 24 for half an hour.
  EXPECT_NEAR(money.idle[1].observed_h, 1, 1e-9);
  EXPECT_NEAR(money.idle[1].orphaned_h, 0.5, 1e-9);
  EXPECT_NEAR(money.idle[1].share_h, 0.5 * 3 / 24, 1e-9);
  EXPECT_EQ(money.idle[1].most_bytes, 3 * kGiB);
  EXPECT_TRUE(money.idle[1].processes_known);
  EXPECT_FALSE(money.idle[1].utilisation_known);
}

TEST(Money, WithoutProcessesIdleMemoryIsNotKnown) {
  PeriodReport r = example_report();
  std::erase_if(r.series, [](const PeriodSeries& s) { return s.view.key.pid != 0; });
  reckon(r);
  EXPECT_FALSE(r.money.idle[1].processes_known);
  EXPECT_EQ(r.money.idle[1].orphaned_h, 0);
}

TEST(Money, MemoryHeldWhileNoKernelRanIsIdle) {
  PeriodReport r = example_report();
  for (std::size_t i = 0; i < 20; ++i) r.series[1].history[i].utilisation = i < 15 ? 0.0 : 0.3;
  reckon(r);
  EXPECT_TRUE(r.money.idle[1].utilisation_known);
  EXPECT_NEAR(r.money.idle[1].unused_h, 0.25, 1e-9);
  EXPECT_NEAR(r.money.idle[1].orphaned_h, 0.5, 1e-9);
  EXPECT_NEAR(r.money.idle[1].share_h, 0.5 * 3 / 24 + 0.25 * 10 / 24, 1e-9);
}

TEST(Money, AWithdrawnAlertIsNoLeak) {
  PeriodReport r = example_report();
  EXPECT_TRUE(has_leak(r));
  for (PeriodSeries& s : r.series)
    for (PeriodAlert& a : s.alerts) a.alert.ended = AlertEnd::withdrawn;
  EXPECT_FALSE(has_leak(r));
}

}  // namespace
}  // namespace vramtrack
