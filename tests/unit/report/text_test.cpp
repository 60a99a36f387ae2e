#include <gmock/gmock.h>

#include <sstream>

#include "core/format.hpp"
#include "core/option.hpp"
#include "report/conclusion_words.hpp"
#include "report/report.hpp"
#include "report/status.hpp"
#include "report/words.hpp"
#include "sample_view.hpp"

namespace vramtrack {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string text(const View& view, bool colour = false) {
  return find_report("text")->render(view, {colour});
}

TEST(TextReport, TheHeadlineSaysItAll) {
  EXPECT_THAT(
      text(sample_view()),
      HasSubstr(
          "GPU 0 NVIDIA A10: LEAK (gradual leak), +50.0 MiB/min (45.8 to 52.1), R² 0.982, probability of a leak 97 %, "
          "out of memory in 0h 47m (38m–1h 05m)\n"));
}

TEST(TextReport, ReasonsSuspectCausesDissentAndTheNextStepFollow) {
  const std::string out = text(sample_view());
  EXPECT_THAT(out, HasSubstr("because    floor and peak rose together over 38 min\n"));
  EXPECT_THAT(out, HasSubstr("suspect    pid 4242 python train.py: 96 % of the growth, PyTorch\n"));
  EXPECT_THAT(out, HasSubstr("causes     growing loss history\n"));
  EXPECT_THAT(out, HasSubstr("try        keep loss.item(), not the tensor\n"));
  EXPECT_THAT(out, HasSubstr("linear_trend says no leak: slope below 1 MB/s"));
  EXPECT_THAT(
      out,
      HasSubstr(
          "next       save a checkpoint within 38m; then look into pid 4242; try: keep loss.item(), not the tensor"));
  EXPECT_THAT(
      out, HasSubstr("raised 2026-01-02T03:29:05Z, probability of a leak 97 %, predicted then: out of memory in 0h 47m "
                     "(38m–1h 05m); highest severity critical; still active\n"));
}

TEST(TextReport, WordsOfAnotherProgramAreMadeHarmless) {
  // A View may come from an agent, and an alert from a store: their texts are as foreign as a command.
  const std::string hostile = "x\x1b[31m\xff\xc2\x9b\xe2\x80\xae";
  View view = sample_view();
  for (SeriesView& series : view.series) {
    Verdict& v = series.verdict;
    v.finding.detector = v.finding.because = v.framework = hostile;
    v.causes = v.advice = {hostile};
    series.explain = {hostile};
    for (Finding& other : v.dissent) other.detector = other.because = hostile;
    for (Alert& alert : series.alerts) alert.finding.because = alert.end_reason = hostile;
  }
  std::string out = text(view) + status_table(view, {});
  for (const SeriesView& series : view.series)
    for (const Alert& alert : series.alerts)
      for (const AlertNews news : {AlertNews::raised, AlertNews::escalated, AlertNews::cleared})
        out += alert_lines(view, series, alert, news, {});
  EXPECT_THAT(out, HasSubstr("x?[31m"));
  EXPECT_EQ(printable_lines(out), out);
}

TEST(TextReport, ASteadyProcessIsOneLine) {
  EXPECT_THAT(text(sample_view()), HasSubstr("GPU 0 NVIDIA A10, pid 4243 python serve.py (alice): steady, "));
}

TEST(TextReport, SkippedLinesAndWarningsAreNamed) {
  const std::string out = text(sample_view());
  EXPECT_THAT(out, HasSubstr("2 lines could not be read and were skipped\n  gpu.csv:17: expected 4 fields, found 3\n"));
  EXPECT_THAT(out, HasSubstr("warning: times are taken as local; say --timezone UTC"));
}

TEST(TextReport, UnknownCapacitySaysHowToGiveIt) {
  View v = sample_view();
  v.series[0].device.capacity_bytes.reset();
  v.series[0].verdict.finding.oom_in_s.reset();
  v.series[0].alerts[0].finding.oom_in_s.reset();
  EXPECT_THAT(text(v), HasSubstr("--capacity 24GiB"));
  EXPECT_THAT(text(v), Not(HasSubstr("out of memory in 0h")));
}

/// While it lives, sentences are in Python's form.
struct InPython {
  InPython() { set_surface(Surface::python); }
  ~InPython() { set_surface(Surface::command_line); }
  InPython(const InPython&) = delete;
  InPython& operator=(const InPython&) = delete;
};

TEST(TextReport, InPythonArgumentsAreNamedAndNoOptions) {
  const InPython python;
  View v = sample_view();
  v.warnings.clear();
  v.series[0].device.capacity_bytes.reset();
  v.series[0].alerts.resize(10, v.series[0].alerts[0]);
  EXPECT_THAT(text(v), AllOf(HasSubstr("pass capacity_bytes, for example capacity_bytes=24 * 2**30\n"),
                             HasSubstr("2 earlier ones are in Verdict.alerts\n"), Not(HasSubstr("--"))));
  v.series[0].verdict = Verdict{};
  v.series[0].verdict.finding.state = State::too_short;
  v.files.clear();
  EXPECT_THAT(conclusion_words(v, v.series[0]).next, HasSubstr("(interval_s of a Watch)"));
  EXPECT_THAT(find_report("json")->render(v, {}), Not(HasSubstr("--")));
  EXPECT_EQ(name_of(Option::line_pattern), "the command line's --line-pattern");
}

TEST(TextReport, GrowthOfNoVisibleProcessIsAnAnswer) {
  View v = sample_view();
  v.series[0].verdict.suspect = Suspect{0, 0, "", 1};
  EXPECT_THAT(text(v), HasSubstr("suspect    no visible process"));
  EXPECT_THAT(text(v), HasSubstr("as root"));
}

TEST(TextReport, ColourOnlyWhenAskedFor) {
  EXPECT_THAT(text(sample_view()), Not(HasSubstr("\033")));
  EXPECT_THAT(text(sample_view(), true), HasSubstr("\033[1;31mLEAK (gradual leak)\033[0m"));
}

TEST(TextReport, RelativeTimesAreNeverDates) {
  View v = sample_view();
  v.clock_is_relative = true;
  for (SeriesView& s : v.series) {
    s.verdict.finding.onset.reset();
    for (Alert& a : s.alerts) a.raised = Timestamp{std::chrono::seconds{1500}};
  }
  EXPECT_THAT(text(v), HasSubstr("raised 0h 25m 00s after the start"));
  EXPECT_THAT(text(v), Not(HasSubstr("2026")));
}

TEST(TextReport, AdviceForTooFewSamplesFitsWhereTheyComeFrom) {
  View v = sample_view();
  v.series[0].verdict = Verdict{};
  v.series[0].verdict.finding.state = State::too_short;
  // In analyze, --interval has another meaning.
  EXPECT_THAT(text(v), AllOf(HasSubstr("nvidia-smi ... -l 1"), Not(HasSubstr("(--interval)"))));
  v.files.clear();
  EXPECT_THAT(text(v), HasSubstr("(--interval)"));
}

TEST(StatusTable, OneLineADeviceItsProcessesBelow) {
  const std::string out = status_table(sample_view(), {});
  EXPECT_THAT(out, HasSubstr("GPU 0 NVIDIA A10"));
  EXPECT_THAT(out, HasSubstr("12.0/24.0 GiB"));
  EXPECT_THAT(
      out,
      HasSubstr("LEAK (gradual leak), probability of a leak 97 %, out of memory in 0h 47m (38m–1h 05m), by pid 4242"));
  EXPECT_THAT(out, HasSubstr("  pid 4243 python serve.py (alice)"));
}

TEST(StatusTable, ALeakWithoutAnAlertSaysWhyOnce) {
  View view = sample_view();
  for (SeriesView& s : view.series)
    if (s.verdict.finding.leak) s.paging = "memory lasts at least 2h 11m; an alert is raised when 60 min are left";
  const std::string why = "    no alert  memory lasts at least 2h 11m; an alert is raised when 60 min are left\n";
  const std::string out = status_table(view, {});
  const std::size_t at = out.find(why);
  ASSERT_NE(at, std::string::npos) << out;
  EXPECT_EQ(out.find("no alert", at + why.size()), std::string::npos) << "the device speaks for its processes";
  EXPECT_THAT(status_table(view, {false, 60}), HasSubstr("    no alert  memory lasts at least 2h 11m; an alert is\n"
                                                         "              raised when 60 min are left\n"));
  for (SeriesView& s : view.series)
    if (s.key.pid == 0) s.paging.clear();
  const std::string of_processes = status_table(view, {});
  EXPECT_EQ(of_processes.find(why) != std::string::npos,
            std::any_of(view.series.begin(), view.series.end(), [](const SeriesView& s) { return !s.paging.empty(); }))
      << of_processes;
}

TEST(StatusTable, ManySteadyProcessesAreSummedUp) {
  View v = sample_view();
  for (std::uint32_t i = 0; i < 20; ++i) {
    v.series.push_back(steady_process());
    v.series.back().key.pid = 5000 + i;
  }
  EXPECT_THAT(status_table(v, {}, 4), HasSubstr("and 17 more processes with 51.0 GiB, not growing\n"));
}

TEST(StatusTable, ADeviceWithoutATotalStillHeadsItsProcesses) {
  View v = sample_view();
  v.series.erase(v.series.begin());
  EXPECT_THAT(status_table(v, {}), HasSubstr("the whole device's use is unknown\n  pid 4243"));
}

/// The lines of the table at a width, without their colours; checks that none is longer.
std::vector<std::string> lines_at(std::size_t width, const View& view) {
  std::istringstream in(status_table(view, {false, width}));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line); lines.push_back(line)) EXPECT_LE(columns(line), width) << line;
  return lines;
}

TEST(StatusTable, ANarrowTerminalTakesFromTheNamesBeforeTheVerdictAndTheEnd) {
  const View v = sample_view();
  EXPECT_THAT(lines_at(80, v)[1], AllOf(HasSubstr("  LEAK, out of memory in 0h 47m"), StartsWith("GPU 0 NV")));
  EXPECT_THAT(lines_at(100, v)[1], EndsWith("  LEAK, out of memory in 0h 47m, by pid 4242"));
  EXPECT_THAT(
      lines_at(200, v)[1],
      HasSubstr("  LEAK (gradual leak), probability of a leak 97 %, out of memory in 0h 47m (38m–1h 05m), by pid"));
  EXPECT_THAT(lines_at(200, v)[1], StartsWith("GPU 0 NVIDIA A10 "));
}

TEST(StatusTable, WhatDoesNotFitIsCutAtAnyWidth) {
  View v = sample_view();
  v.series[0].utilisation_ratio = 0.97;
  for (std::size_t width = 60; width < 200; ++width) EXPECT_EQ(lines_at(width, v).size(), lines_at(200, v).size());
  EXPECT_THAT(lines_at(60, v)[1], HasSubstr("LEAK, out of"));
  EXPECT_THAT(lines_at(60, v)[1], EndsWith("…"));
}

TEST(Status, SaysHowBusyADeviceIsWhereTheDriverTells) {
  View v = sample_view();
  EXPECT_THAT(status_table(v, {}), Not(HasSubstr("busy")));
  v.series[0].utilisation_ratio = 0.97;
  EXPECT_THAT(status_table(v, {}), HasSubstr(", GPU 97 % busy\n"));
}

TEST(AlertLines, RaiseSaysWhyAndWhatNext) {
  const View v = sample_view();
  const std::string out = alert_lines(v, v.series[0], v.series[0].alerts[0], AlertNews::raised, {});
  EXPECT_THAT(out, HasSubstr("2026-01-02T03:29:05Z  CRITICAL  GPU 0 NVIDIA A10: gradual leak, +50.0 MiB/min"));
  EXPECT_THAT(out, HasSubstr("because  floor and peak rose together"));
  EXPECT_THAT(out, HasSubstr("next     save a checkpoint within 38m"));
}

TEST(AlertLines, AStalledProcessSaysSinceWhenWhyAndWhatNext) {
  View v = sample_view();
  v.series[1].stall = lasting_stall();
  const std::string out = alert_lines(v, v.series[1], stall_alert(), AlertNews::raised, {});
  EXPECT_THAT(out, HasSubstr("STALLED  GPU 0 NVIDIA A10, pid 4243 python serve.py (alice): holds 3.0 GiB and has made "
                             "no progress for 30m, with a confidence of 80 %\n"));
  EXPECT_THAT(out, HasSubstr("because  it ran no kernel"));
  EXPECT_THAT(out, HasSubstr("py-spy dump --pid 4243"));
  EXPECT_THAT(out, Not(HasSubstr("leak")));
  Alert over = stall_alert();
  over.cleared = at(7000);
  over.ended = AlertEnd::resumed;
  over.end_reason = "it makes progress again";
  EXPECT_THAT(
      alert_lines(v, v.series[1], over, AlertNews::cleared, {}),
      HasSubstr("CLEARED  GPU 0 NVIDIA A10, pid 4243 python serve.py (alice): resumed, it makes progress again"));
}

TEST(TextReport, AStalledProcessIsToldWithItsEvidence) {
  View v = sample_view();
  EXPECT_THAT(text(v), Not(HasSubstr("progress")));
  v.series[1].stall = lasting_stall();
  v.series[1].stall->evidence.push_back("waits in \x1b[31m");
  v.series[1].alerts = {stall_alert()};
  EXPECT_THAT(text(v), HasSubstr("stalled for 43m (confidence 80 %)\n             it ran no kernel\n"));
  EXPECT_THAT(text(v), HasSubstr("stalled process raised 2026-01-02"));
  EXPECT_THAT(text(v), Not(HasSubstr("\x1b")));
  EXPECT_THAT(status_table(v, {}), HasSubstr(", stalled for 43m (confidence 80 %)"));
  v.series[1].stall->judgement = StallJudgement::idle;
  v.series[1].stall->what = "Jupyter kernel";
  EXPECT_THAT(status_table(v, {}), Not(HasSubstr("43m"))) << "that it rests is no news";
  EXPECT_EQ(stall_words(*v.series[1].stall, kSecondsAndBytes), "idle for 43m (Jupyter kernel)");
  EXPECT_EQ(stall_next_step(*v.series[1].stall, 4243), "");
}

TEST(AlertLines, EscalationSaysWhatItHasBecome) {
  View v = sample_view();
  v.series[0].verdict.finding.oom_in_s = Interval{900, 1200, 1500};  // now; at the raise it was 47 minutes
  EXPECT_EQ(alert_lines(v, v.series[0], v.series[0].alerts[0], AlertNews::escalated, {}),
            format_moment(v.time, false) + "  ESCALATED  GPU 0 NVIDIA A10: now CRITICAL, out of memory in " +
                format_eta({900, 1200, 1500}) + "\n");
}

TEST(AlertLines, ClearSaysHowItEnded) {
  View v = sample_view();
  Alert a = v.series[0].alerts[0];
  a.cleared = at(2000);
  a.ended = AlertEnd::released;
  a.end_reason = "the memory was freed";
  EXPECT_THAT(alert_lines(v, v.series[0], a, AlertNews::cleared, {}),
              HasSubstr("CLEARED  GPU 0 NVIDIA A10: released, the memory was freed\n"));
  a.ended = AlertEnd::process_ended;
  a.end_kind = EndKind::out_of_memory;
  a.end_reason = "memory ran out at 24.0 GiB, and pid 4242 ended";
  EXPECT_THAT(alert_lines(v, v.series[0], a, AlertNews::cleared, {}),
              HasSubstr("OUT OF MEMORY  GPU 0 NVIDIA A10: memory ran out at 24.0 GiB, and pid 4242 ended\n"));
}

TEST(TextReport, SamplesLengthAndIntervalLeadToEachOther) {
  View v = sample_view();
  SeriesView& s = v.series[0];
  s.first = at(0);
  s.interval_s = 5;
  const auto said = [&](std::uint64_t samples, double length_s) {
    s.samples = samples;
    s.last = at(length_s);
    const std::string out = find_report("text")->render(v, {});
    const std::size_t from = out.find("samples over");
    return out.substr(from, out.find('\n', from) - from);
  };
  EXPECT_EQ(said(721, 3600), "samples over 1h 00m, every 5s");
  EXPECT_EQ(said(700, 3600), "samples over 1h 00m, every 5s") << "some are missing in every log";
  EXPECT_EQ(said(571, 72000), "samples over 20h 00m, every 5s except for 19h 13m without samples");
  EXPECT_EQ(said(3601, 3600), "samples over 1h 00m, every 1s on average");
}

TEST(Words, EveryStateHasAWord) {
  SeriesView s = steady_process();
  for (int i = 0; i <= static_cast<int>(State::too_short); ++i) {
    s.verdict.finding.state = static_cast<State>(i);
    const ConclusionWords told = conclusion_words({}, s);
    EXPECT_NE(told.verdict, "unknown");
    EXPECT_NE(told.word, "unknown");
  }
}

TEST(TextReport, WhatDoesNotFitIsAFact) {
  View v = sample_view();
  EXPECT_THAT(text(v), Not(HasSubstr("headroom")));
  v.series[0].headroom = Headroom{25 * kGiB, 5 * kGiB, 3, -static_cast<std::int64_t>(kGiB), 4243, 88};
  EXPECT_THAT(text(v),
              HasSubstr("headroom   peaks at 25.0/24.0 GiB; the last 3 runs of the program of pid 4243 needed up "
                        "to 5.0 GiB more than this run does now: does not fit beside pid 88, 1.0 GiB short"));
}

TEST(TextReport, MemoryThatWasNotReleasedIsSaidWithWhatToDo) {
  View v = sample_view();
  Alert left = stall_alert();
  left.kind = AlertKind::unreleased;
  left.finding.because = "it held 3.0 GiB and ended 1m ago\x1b[31m";
  v.series[1].alerts = {left};
  const std::string raised = alert_lines(v, v.series[1], left, AlertNews::raised, {});
  EXPECT_THAT(raised,
              HasSubstr("NOT RELEASED  GPU 0 NVIDIA A10, pid 4243 python serve.py (alice): it has ended, but memory "
                        "that it held is still in use\n    because  it held 3.0 GiB and ended 1m ago?[31m\n"));
  EXPECT_THAT(raised, HasSubstr("    next     'sudo vramtrack holders' names"));
  EXPECT_THAT(text(v), HasSubstr("not released raised 2026-01-02"));
  EXPECT_THAT(text(v), Not(HasSubstr("not released raised 2026-01-02T04:50:44Z, probability")));
}

}  // namespace
}  // namespace vramtrack
