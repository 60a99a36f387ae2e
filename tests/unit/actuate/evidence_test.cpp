#include "actuate/evidence.hpp"

#include <gmock/gmock.h>

#include "fleet_views.hpp"

namespace vramtrack::actuate {
namespace {

using ::testing::HasSubstr;

Evidence look(const act::Climb& one, const View& view, const std::string& host = "gn1") {
  return evidence_of(one, "gn1", host, observation_of({host, view}, "gn1"));
}
Evidence look(const act::Claim& claim, const View& view, const std::string& host = "gn1") {
  return look(climb_of(claim), view, host);
}

TEST(Evidence, IsTheProcessThatTheAlertNames) {
  const Evidence found = look(alert_of("gn1"), leaking_view());
  ASSERT_TRUE(found.subject) << found.why;
  EXPECT_EQ(found.subject->process, (ProcessKey{4242, 777, "gn1"}));
  EXPECT_EQ(found.subject->node, "gn1");
  EXPECT_EQ(found.subject->job, "7.batch");
  EXPECT_EQ(found.subject->labels.at("alertname"), "GpuMemoryLeak") << "the alert's labels are the subject's";
  EXPECT_EQ(found.subject->labels.at("framework"), "PyTorch") << "and the agent's go before";
  EXPECT_EQ(act::subject_words(*found.subject), "pid 4242 (python train.py, user alice) on gn1");
}

TEST(Evidence, WhatTheAlertNamesMustAgree) {
  const auto with = [](const char* name, const char* value) {
    act::Claim one = alert_of("gn1");
    one.labels[name] = value;
    return look(one, leaking_view());
  };
  EXPECT_TRUE(with("pid_start_ticks", "777").subject);
  EXPECT_THAT(with("pid", "4243").why,
              HasSubstr("the alert is about pid 4243, but the agent's alert is about pid 4242"));
  EXPECT_EQ(with("pid", "4243").refusal, Refusal::mismatch);
  EXPECT_THAT(with("pid_start_ticks", "778").why, HasSubstr("no longer the process of the alert"));
  EXPECT_THAT(with("slurm_job_id", "8").why, HasSubstr("about Slurm job 8, but pid 4242 belongs to job 7.batch"));
  EXPECT_THAT(with("pod_uid", "11-22").why,
              HasSubstr("the alert is about the pod 11-22, but pid 4242 belongs to none"));
  EXPECT_EQ(with("UUID", "GPU-2").refusal, Refusal::no_evidence);
  EXPECT_EQ(with("Hostname", "gn2").refusal, Refusal::mismatch);
  EXPECT_TRUE(with("Hostname", "gn1.cluster.example").subject);
}

TEST(Evidence, AnAlertThatStandsNoMoreIsNone) {
  View view = leaking_view();
  view.series[1].alerts[0].ended = AlertEnd::withdrawn;
  const Evidence gone = look(alert_of("gn1"), view);
  EXPECT_FALSE(gone.subject);
  EXPECT_EQ(gone.refusal, Refusal::no_evidence);
}

TEST(Evidence, AClimbIsOfItsProcessAlone) {
  act::Claim claim = alert_of("gn1");
  claim.labels.erase("pid");
  act::Climb one = climb_of(claim);
  one.phase = act::Climb::Phase::climbing;
  one.subject.process = {4242, 776, "gn1"};
  EXPECT_EQ(look(one, leaking_view()).refusal, Refusal::no_evidence) << "the pid was reused";
  one.subject.process.start_ticks = 777;
  EXPECT_TRUE(look(one, leaking_view()).subject);
}

TEST(Evidence, TheSameProcessOfTheSameUserAndJob) {
  View view = leaking_view();
  put_on_node(view, "gn1");
  const act::Subject subject = *look(alert_of("gn1"), leaking_view()).subject;
  ASSERT_TRUE(same_process(subject, view));
  EXPECT_EQ(same_process(subject, view)->command, "python train.py");
  view.series[1].process->user = "bob";
  EXPECT_THAT(same_process(subject, view).error().message, HasSubstr("belongs to user bob"));
  view = leaking_view();
  put_on_node(view, "gn2");
  EXPECT_THAT(same_process(subject, view).error().message, HasSubstr("is active any more"));
}

TEST(Evidence, IsOnlyWhatIsSaidOfNow) {
  const auto why = [](const View& view, double now_s, const std::string& simulated = {}) {
    Witness witness{"gn1", view, simulated};
    const Status current = check_current(witness, at(now_s));
    return current ? std::string() : current.error().message;
  };
  View view = leaking_view();
  for (SeriesView& series : view.series) series.interval_s = 5;
  EXPECT_EQ(why(view, 0), "");
  EXPECT_EQ(why(view, 24), "") << "a few periods, and what a request takes";
  EXPECT_THAT(why(view, 26), HasSubstr("the agent's last sample is 26s old"));
  EXPECT_EQ(why(view, -24), "");
  EXPECT_THAT(why(view, -26), HasSubstr("the agent's clock is 26s ahead"));
  EXPECT_THAT(why(view, 0, "training job"), HasSubstr("simulates the scenario 'training job'"));
  view.clock_is_relative = true;
  EXPECT_THAT(why(view, 0), HasSubstr("has no date"));
  view = leaking_view();
  view.series[0].interval_s = 1e9;  // a period that would excuse any age
  EXPECT_THAT(why(view, 301), HasSubstr("old"));
}

TEST(Evidence, AProcessThatIsNoLongerSampledIsNone) {
  Witness witness{"gn1", leaking_view(), {}};
  witness.view.series[1].last = at(-60);  // its device continues
  ASSERT_TRUE(check_current(witness, at(0)));
  EXPECT_FALSE(evidence_of(climb_of(alert_of("gn1")), "gn1", "gn1", observation_of(witness, "gn1")).subject);
  EXPECT_FALSE(same_process(*look(alert_of("gn1"), leaking_view()).subject, witness.view));
}

}  // namespace
}  // namespace vramtrack::actuate
