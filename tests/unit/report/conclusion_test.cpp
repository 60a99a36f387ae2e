#include "report/conclusion.hpp"

#include <gmock/gmock.h>

#include "report/conclusion_words.hpp"
#include "report/report.hpp"
#include "sample_view.hpp"

namespace vramtrack {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// A GPU with a job that leaked until memory ran out; one sample has followed since.
SeriesView out_of_memory() {
  SeriesView s = leaking_device();
  End end;
  end.how = EndKind::out_of_memory;
  end.time = at(7190);
  end.pid = 4242;
  end.used_bytes = 24 * kGiB;
  end.growth_bytes_per_s = 1e6;
  end.onset = at(500);
  s.alerts[0].cleared = at(7190);
  s.alerts[0].ended = AlertEnd::process_ended;
  s.alerts[0].end_kind = EndKind::out_of_memory;
  s.verdict = Verdict{};
  s.verdict.end = end;
  s.verdict.finding.detector = "judge";
  s.verdict.finding.confidence = 0.02;
  s.verdict.finding.because = "too few samples since the run that grew ended to tell what comes next";
  s.verdict.dissent = {s.verdict.finding};
  return s;
}

/// The same, long after.
SeriesView steady_since() {
  SeriesView s = out_of_memory();
  s.verdict.finding.state = State::steady;
  s.verdict.finding.because = "memory has not grown since the run that grew ended";
  return s;
}

std::string text_of(const SeriesView& s, const char* form) {
  View view;
  view.time = at(7199);
  view.series = {s};
  return find_report(form)->render(view, {});
}

TEST(Conclusion, IsOfThePresentWhereNoLeakCameBeforeIt) {
  SeriesView grows_again = steady_since();
  grows_again.verdict.finding.state = State::growing;
  for (const SeriesView& s : {leaking_device(), steady_process(), grows_again}) {
    const Conclusion conclusion({}, s);
    EXPECT_FALSE(conclusion.is_of_ended_run());
    EXPECT_EQ(&conclusion.verdict(), &s.verdict);
  }
}

TEST(Conclusion, IsOfTheRunThatLeakedUntilSomethingGrowsAgain) {
  EXPECT_TRUE(Conclusion({}, steady_since()).is_of_ended_run());
  const SeriesView s = out_of_memory();
  const Conclusion conclusion({}, s);
  EXPECT_TRUE(conclusion.is_of_ended_run());
  const Finding& f = conclusion.finding();
  EXPECT_TRUE(f.leak);
  EXPECT_EQ(f.state, State::leaking);
  EXPECT_EQ(f.confidence, 0.97);
  EXPECT_EQ(f.growth_bytes_per_s, (Interval{1e6, 1e6, 1e6})) << "as at its end";
  EXPECT_EQ(f.onset, at(500));
  EXPECT_EQ(f.oom_in_s, std::nullopt) << "it has happened";
  EXPECT_EQ(f.because, s.alerts[0].finding.because);
  EXPECT_EQ(conclusion.verdict().severity, Severity::critical);
  EXPECT_TRUE(conclusion.verdict().dissent.empty()) << "that was about what came after";
}

TEST(Conclusion, ARunThatDidNotLeakSaysNothingOfALeak) {
  SeriesView s = out_of_memory();
  s.alerts.clear();
  EXPECT_FALSE(Conclusion({}, s).is_of_ended_run());
  EXPECT_FALSE(has_leaked(s));
  s = out_of_memory();
  s.alerts[0].ended = AlertEnd::withdrawn;
  EXPECT_FALSE(has_leaked(s));
}

TEST(Conclusion, EveryFormSaysTheSame) {
  const std::string text = text_of(out_of_memory(), "text");
  EXPECT_THAT(text, HasSubstr("LEAKED until memory ran out, +57.2 MiB/min, R² 0.982, probability of a leak 97 %\n"));
  EXPECT_THAT(text, HasSubstr("because    " + out_of_memory().alerts[0].finding.because));
  EXPECT_THAT(text, Not(HasSubstr("too few samples")));
  const std::string line = text_of(out_of_memory(), "json");
  EXPECT_THAT(line, AllOf(HasSubstr(R"("leaked":true,"verdict":{"leak":true,"state":"leaking")"),
                          HasSubstr(R"("confidence":0.97)"), HasSubstr(R"("oom_in_s":null)"),
                          HasSubstr(R"("dissent":[])"), Not(HasSubstr("too_short"))));
}

TEST(Conclusion, WhatCameAfterIsNoReasonForTheLeak) {
  const std::string text = text_of(steady_since(), "text");
  EXPECT_THAT(text, HasSubstr("LEAKED until memory ran out (since then: steady), +57.2 MiB/min, R² 0.982, "
                              "probability of a leak 97 %\n"));
  EXPECT_THAT(text, HasSubstr("  because    " + steady_since().alerts[0].finding.because));
  EXPECT_THAT(text, HasSubstr("  now        " + steady_since().verdict.finding.because));
  SeriesView s = steady_since();
  s.alerts.clear();
  EXPECT_THAT(text_of(s, "text"), AllOf(HasSubstr("ran out of memory; now steady"), HasSubstr("  now        memory"),
                                        Not(HasSubstr("because"))));
  EXPECT_THAT(text_of(steady_since(), "json"), HasSubstr(R"("leaked":true,"verdict":{"leak":true,"state":"leaking")"));
}

TEST(Conclusion, OneGrowthHasOneOnset) {
  View view;
  view.series = {leaking_device(), leaking_device()};
  SeriesView& process = view.series[1];
  process.key.pid = view.series[0].verdict.suspect->pid;
  process.key.pid_start_ticks = view.series[0].verdict.suspect->pid_start_ticks;
  process.verdict.suspect.reset();
  process.verdict.finding.onset = at(900);
  view.series[0].verdict.finding.onset = at(894);
  for (const SeriesView& s : view.series) EXPECT_EQ(Conclusion(view, s).finding().onset, at(894));
  view.series[0].verdict.finding.onset = at(1000);
  for (const SeriesView& s : view.series) EXPECT_EQ(Conclusion(view, s).finding().onset, at(900));
}

TEST(Conclusion, OneEndHasOneOnset) {
  View view;
  view.series = {out_of_memory(), out_of_memory()};
  view.series[1].key.pid = 4242;
  view.series[1].verdict.end->onset = at(490);
  for (const SeriesView& s : view.series) EXPECT_EQ(Conclusion(view, s).finding().onset, at(490));
}

TEST(Conclusion, OneSeriesThatLeakedIsEnoughForTheExitStatus) {
  View view;
  view.series = {steady_process()};
  EXPECT_FALSE(has_leaked(view));
  view.series.push_back(steady_since());
  EXPECT_TRUE(has_leaked(view));
}

}  // namespace
}  // namespace vramtrack
