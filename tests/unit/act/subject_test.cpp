#include "act/subject.hpp"

#include <gtest/gtest.h>

#include "subjects.hpp"

namespace vramtrack::act {
namespace {

Alert alert_of(AlertKind kind, Severity severity) {
  Alert alert;
  alert.kind = kind;
  alert.raised = at(100);
  alert.severity = severity;
  alert.finding.confidence = 0.8;
  alert.finding.because = kind == AlertKind::leak ? "it grows" : "it ran no kernel";
  return alert;
}

SeriesView series_of(std::uint32_t pid, std::vector<Alert> alerts) {
  SeriesView series;
  series.key.metric = pid == 0 ? Metric::device_used : Metric::process_used;
  series.key.device_id = "GPU-1";
  series.key.pid = pid;
  series.key.pid_start_ticks = pid == 0 ? 0 : 1000 + pid;
  series.used_bytes = 1 << 30;
  series.verdict.severity = Severity::critical;
  series.verdict.finding.pattern = Pattern::gradual_leak;
  series.verdict.finding.confidence = 0.97;
  series.verdict.finding.because = "it grows";
  series.alerts = std::move(alerts);
  return series;
}

std::vector<Subject> subjects(std::vector<SeriesView> series) {
  View view;
  view.time = at(160);
  view.series = std::move(series);
  return subjects_of(view);
}

const Alert kLeak = alert_of(AlertKind::leak, Severity::warning);
const Alert kStall = alert_of(AlertKind::stall, Severity::watch);

TEST(SubjectsOf, ALeakHasTheFiguresOfItsVerdict) {
  const auto found = subjects({series_of(7, {kLeak})});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].trouble, Trouble::leak);
  EXPECT_EQ(found[0].severity, Severity::critical);
  EXPECT_EQ(found[0].pattern, Pattern::gradual_leak);
  EXPECT_EQ(found[0].confidence, 0.97);
  EXPECT_NEAR(found[0].held_s, 60, 1e-3);
}

/// Whatever its verdict about memory, no policy for leaks applies to it.
TEST(SubjectsOf, AStalledProcessIsNoLeak) {
  const auto found = subjects({series_of(7, {kStall})});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].trouble, Trouble::stalled);
  EXPECT_EQ(found[0].severity, Severity::watch);
  EXPECT_EQ(found[0].pattern, Pattern::none);
  EXPECT_EQ(found[0].confidence, 0.8);
  EXPECT_EQ(found[0].because, "it ran no kernel");
  const Policies leaks =
      policies_of("[[policy]]\nname = 'a'\nallow = { users = ['*'] }\nsteps = [{ do = 'terminate' }]\n");
  EXPECT_NE(why_not(leaks.rules.at(0), acting(), found[0]), "");
  EXPECT_NE(why_not(leaks.rules.at(0), acting(), found[0]).find("its kind is 'stalled', not 'leak'"),
            std::string::npos);
}

/// A process that has ended receives no signals: only its parent can act.
TEST(SubjectsOf, AProcessThatIsNotReapedIsNone) {
  SeriesView series = series_of(7, {kStall});
  series.stall = Stall{};
  series.stall->cause = StallCause::exited;
  EXPECT_TRUE(subjects({series}).empty());
  series.stall->cause = StallCause::orphaned;
  EXPECT_EQ(subjects({series}).size(), 1U);
}

TEST(SubjectsOf, OfBothItIsTheLeak) {
  EXPECT_EQ(subjects({series_of(7, {kLeak, kStall})}).at(0).trouble, Trouble::leak);
  // One on each of two devices, the worse figures with the stall.
  SeriesView other = series_of(7, {kStall});
  other.key.device_id = "GPU-2";
  const auto found = subjects({other, series_of(7, {kLeak})});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].trouble, Trouble::leak);
}

TEST(SubjectsOf, ADeviceIsOneWhereNoProcessExplainsItsLeak) {
  EXPECT_EQ(subjects({series_of(0, {kLeak}), series_of(7, {kLeak})}).size(), 1U);
  const auto found = subjects({series_of(0, {kLeak}), series_of(7, {kStall})});
  ASSERT_EQ(found.size(), 2U);  // a stalled process explains no growth
  EXPECT_EQ(found[1].process.pid, 0U);
}

TEST(SubjectsOf, WhatHasEndedIsNone) {
  SeriesView ended = series_of(7, {kLeak});
  ended.ended = true;
  SeriesView ignored = series_of(8, {kLeak});
  ignored.ignored = true;
  Alert cleared = kLeak;
  cleared.cleared = at(150);
  cleared.ended = AlertEnd::withdrawn;
  EXPECT_TRUE(subjects({ended, ignored, series_of(9, {cleared}), series_of(10, {})}).empty());
}

}  // namespace
}  // namespace vramtrack::act
