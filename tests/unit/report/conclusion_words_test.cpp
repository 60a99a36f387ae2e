#include "report/conclusion_words.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <vector>

#include "core/end_words.hpp"
#include "core/format.hpp"
#include "paths.hpp"
#include "report/headline.hpp"
#include "report/report.hpp"
#include "report/words.hpp"
#include "sample_view.hpp"

namespace vramtrack {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

View with(SeriesView series) {
  View view;
  view.time = at(7199);
  view.series = {std::move(series)};
  return view;
}

ConclusionWords words_about(SeriesView series) {
  const View view = with(std::move(series));
  return conclusion_words(view, view.series[0]);
}

SeriesView steady_device() {
  SeriesView s = leaking_device();
  s.verdict = {};
  s.verdict.finding.state = State::steady;
  s.alerts.clear();
  return s;
}

End end_of(EndKind how, double time_s) {
  End end;
  end.how = how;
  end.time = at(time_s);
  end.used_bytes = 24 * kGiB;
  return end;
}

TEST(ConclusionWords, ALeakBySeverity) {
  SeriesView s = leaking_device();
  for (const auto& [severity, word, tone] : {std::tuple{Severity::critical, "CRITICAL", Tone::critical},
                                             {Severity::warning, "WARNING", Tone::warning},
                                             {Severity::watch, "LEAK", Tone::watch}}) {
    s.verdict.severity = severity;
    const ConclusionWords t = words_about(s);
    EXPECT_EQ(t.verdict, "LEAK (gradual leak)");
    EXPECT_EQ(t.severity, word);
    EXPECT_EQ(t.word, word);
    EXPECT_EQ(t.tone, tone);
    EXPECT_EQ(t.concern, 10 + static_cast<int>(severity));
  }
  const ConclusionWords t = words_about(s);
  EXPECT_EQ(t.forecast, "out of memory in 0h 47m (38m–1h 05m)");
  EXPECT_EQ(t.by, "by pid 4242");
  EXPECT_EQ(t.suspect, "pid 4242 python train.py: 96 % of the growth");
}

TEST(ConclusionWords, EveryStateHasWords) {
  for (std::size_t i = 0; i < words_of<State>().size(); ++i) {
    SeriesView s = steady_device();
    s.verdict.finding.state = static_cast<State>(i);
    const ConclusionWords t = words_about(s);
    EXPECT_NE(t.verdict, "unknown");
    EXPECT_NE(t.word, "unknown");
    EXPECT_LE(columns(t.word), 9U);
  }
}

TEST(ConclusionWords, WhatGrowsSlowlyIsWorthALookOnEverySurface) {
  SeriesView s = steady_device();
  EXPECT_EQ(words_about(s).concern, 0);
  for (const State state : {State::slow_growth, State::growing, State::leaking}) {
    s.verdict.finding.state = state;
    EXPECT_EQ(words_about(s).concern, 1);
    EXPECT_EQ(words_about(s).tone, Tone::notice);
  }
}

TEST(ConclusionWords, EveryKindOfEndHasWords) {
  for (std::size_t i = 0; i < words_of<EndKind>().size(); ++i) {
    const auto how = static_cast<EndKind>(i);
    SeriesView s = steady_device();
    s.verdict.end = end_of(how, 7000);
    EXPECT_THAT(words_about(s).end, HasSubstr("24.0/24.0 GiB at"));
    EXPECT_THAT(std::string(end_words(s)), AllOf(Not(IsEmpty()), Not(HasSubstr("leaked"))));
    s.alerts = leaking_device().alerts;
    s.alerts.resize(1);
    s.alerts[0].finding = leak_finding();
    s.alerts[0].raised = at(6000);
    EXPECT_THAT(std::string(end_words(s)), HasSubstr("leaked"));
    EXPECT_THAT(reason_of_end(*s.verdict.end, kSecondsAndBytes),
                AnyOf(HasSubstr("its process ended"), HasSubstr("the kernel ended its process")));
  }
}

TEST(ConclusionWords, AGpuWhoseJobRanOutOfMemoryIsNotWell) {
  SeriesView s = steady_device();
  s.verdict.end = end_of(EndKind::out_of_memory, 7000);
  const ConclusionWords t = words_about(s);
  EXPECT_EQ(t.verdict, "ran out of memory; now steady");
  EXPECT_EQ(t.tone, Tone::warning);
  EXPECT_EQ(t.word, "ran out");
  EXPECT_GT(t.concern, 2) << "more than a suspicion";
  EXPECT_EQ(t.growth_tone, Tone::ok) << "its rate is that of now: nothing grows";
  EXPECT_EQ(t.next,
            "find out what grew before it runs again: 'vramtrack explain' reads the message in its log, and 'vramtrack "
            "run' names the lines that allocate");
}

TEST(ConclusionWords, AGpuWhoseJobEndedAsItShouldNeedsNothing) {
  SeriesView s = steady_device();
  s.verdict.end = end_of(EndKind::ended, 7000);
  EXPECT_EQ(words_about(s).next, "");
  EXPECT_EQ(words_about(s).tone, Tone::ok);
}

TEST(ConclusionWords, ACheckpointInLessThanAMinuteIsDueNow) {
  SeriesView s = leaking_device();
  for (const auto& [low_s, step] : {std::pair{1.2, "save a checkpoint now"},
                                    {59.0, "save a checkpoint now"},
                                    {60.0, "save a checkpoint within 1m"},
                                    {2280.0, "save a checkpoint within 38m"}}) {
    s.verdict.finding.oom_in_s->low = low_s;
    EXPECT_THAT(words_about(s).next, StartsWith(step));
  }
}

TEST(ConclusionWords, WhatToDoFirstSuitsTheProgram) {
  const auto next = [](const char* command, const char* framework) {
    SeriesView s = leaking_device();
    s.verdict.advice.clear();
    s.verdict.suspect->command = command;
    s.verdict.framework = framework;
    return conclusion_words({}, s).next;
  };
  EXPECT_EQ(next("python train.py", "PyTorch"), "save a checkpoint within 38m; then look into pid 4242");
  EXPECT_EQ(next("vllm serve llama", ""), "let pid 4242 finish its requests and restart it within 38m");
  EXPECT_EQ(next("python app.py", "vLLM"), "let pid 4242 finish its requests and restart it within 38m");
  EXPECT_EQ(next("python -m ipykernel_launcher -f x", "PyTorch"), "save the work in pid 4242 within 38m");
  EXPECT_EQ(next("/usr/lib/xorg/Xorg :0", ""), "restart pid 4242 within 38m");
  EXPECT_EQ(next("nvidia-cuda-mps-server", ""), "restart pid 4242 within 38m");
  EXPECT_EQ(next("hashcat -m 0 x", ""), "save the results within 38m; then look into pid 4242");
  EXPECT_EQ(next("./solver", ""), "save the work within 38m (a checkpoint, if it trains); then look into pid 4242");
  for (const char* server : {"torchserve --start", "python -m uvicorn main:app", "python webui.py", "python server.py"})
    EXPECT_EQ(next(server, "PyTorch"), "let pid 4242 finish its requests and restart it within 38m") << server;
}

TEST(ConclusionWords, OnlyAWatchCanGoOn) {
  SeriesView s = steady_process();
  s.verdict.finding.state = State::growing;
  EXPECT_THAT(conclusion_words({}, s).next, testing::StartsWith("keep watching: "));
  EXPECT_THAT(conclusion_words({}, s, {.origin = Origin::files}).next, testing::StartsWith("record for longer: "));
}

TEST(ConclusionWords, WhatGrowsHasAForecastAtItsRate) {
  SeriesView s = steady_device();
  s.verdict.finding.state = State::growing;
  s.verdict.finding.oom_if_growth_continues_s = 7800;
  EXPECT_EQ(words_about(s).forecast, "full in 2h 10m if the growth continues");
}

TEST(ConclusionWords, AfterADayAnEndIsPast) {
  SeriesView s = steady_device();
  s.verdict.end = end_of(EndKind::out_of_memory, 7199 - 25 * 3600);
  EXPECT_EQ(words_about(s).verdict, "ran out of memory; now steady") << "it is still said";
  EXPECT_EQ(words_about(s).tone, Tone::ok);
  EXPECT_EQ(words_about(s).concern, 0);
  EXPECT_EQ(words_about(s).next, "");
}

TEST(ConclusionWords, WhatElseIsTheMatterFollowsTheVerdict) {
  SeriesView s = steady_process();
  s.ended = true;
  EXPECT_EQ(words_about(s).headline, "steady, process ended");
  EXPECT_EQ(words_about(s).word, "ended");
  s = steady_device();
  s.paused = true;
  EXPECT_EQ(words_about(s).headline, "steady, then the GPU was lost");
  EXPECT_EQ(words_about(s).tone, Tone::warning);
  s = steady_process();
  s.ignored = true;
  EXPECT_EQ(words_about(s).headline, "steady, ignored by ignore-patterns");
  EXPECT_EQ(words_about(s).word, "ignored");
}

TEST(ConclusionWords, AStalledProcessSaysSoInItsWord) {
  SeriesView s = steady_process();
  s.stall = lasting_stall();
  EXPECT_EQ(words_about(s).word, "stalled");
  EXPECT_EQ(words_about(s).word_tone, Tone::warning);
  EXPECT_EQ(words_about(s).tone, Tone::ok) << "its memory is steady";
  EXPECT_EQ(words_about(s).stall, "stalled for 43m (confidence 80 %)");
}

TEST(ConclusionWords, ACommandStandsOnlyWhereItMayBeSeen) {
  View view = with(leaking_device());
  view.series.push_back(steady_process());
  SeriesView& process = view.series.back();
  process.key.pid = process.process->pid = 4242;
  process.key.pid_start_ticks = process.process->start_ticks = 77;
  process.process->name = "python";
  const ConclusionWords seen =
      conclusion_words(view, view.series[0], {.may_see = [](const ProcessInfo&) { return false; }});
  EXPECT_EQ(seen.suspect, "pid 4242 python: 96 % of the growth");
  for (const Fact& fact : seen.facts) EXPECT_THAT(fact.text, Not(HasSubstr("train.py")));
  view.series.pop_back();
  EXPECT_EQ(conclusion_words(view, view.series[0], {.may_see = [](const ProcessInfo&) { return true; }}).suspect,
            "pid 4242 : 96 % of the growth")
      << "of who is forgotten nobody can say whose it was";
}

TEST(ConclusionWords, ForeignWordsArePrintable) {
  SeriesView s = leaking_device();
  const std::string hostile = "x\x1b[31m\xff";
  s.verdict.finding.because = s.verdict.framework = s.verdict.suspect->command = hostile;
  s.verdict.causes = s.verdict.advice = {hostile};
  s.verdict.dissent[0].because = hostile;
  const ConclusionWords t = words_about(s);
  for (const auto* facts : {&t.facts, &t.advice, &t.dissent})
    for (const Fact& fact : *facts) EXPECT_THAT(fact.text, AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\xff"))));
  EXPECT_THAT(t.next + t.suspect, Not(HasSubstr("\x1b")));
}

TEST(AlertWords, HowItEnded) {
  Alert a;
  a.finding = leak_finding();
  const auto ended = [&](AlertEnd how, const std::string& reason) {
    a.ended = how;
    a.end_reason = reason;
    return alert_words(a, kSecondsAndBytes).ended;
  };
  EXPECT_EQ(ended(AlertEnd::standing, ""), "still active");
  EXPECT_EQ(ended(AlertEnd::released, "it fell again"), "released, it fell again");
  EXPECT_EQ(ended(AlertEnd::withdrawn, ""), "withdrawn");
  EXPECT_EQ(ended(AlertEnd::resumed, "it makes progress"), "resumed, it makes progress");
  EXPECT_EQ(ended(AlertEnd::process_ended, "memory ran out at 24.0 GiB, and pid 4242 ended"),
            "memory ran out at 24.0 GiB, and pid 4242 ended");
  EXPECT_EQ(ended(AlertEnd::process_ended, ""), "the process has ended");
  EXPECT_EQ(alert_words(a, kSecondsAndBytes).tone, Tone::faint);
  EXPECT_EQ(alert_words(a, kSecondsAndBytes).figures,
            "probability of a leak 97 %, predicted then: out of memory in 0h 47m (38m–1h 05m)");
}

TEST(AlertWords, MemoryThatRanOutIsNoMereEndOfAProcess) {
  Alert a;
  a.ended = AlertEnd::process_ended;
  EXPECT_EQ(alert_words(a, kSecondsAndBytes).state, "process ended") << "as an older recording has it";
  a.end_kind = EndKind::ended;
  EXPECT_EQ(alert_words(a, kSecondsAndBytes).state, "process ended");
  a.end_kind = EndKind::ended_near_limit;
  EXPECT_EQ(alert_words(a, kSecondsAndBytes).state, "process ended");
  a.end_kind = EndKind::out_of_memory;
  EXPECT_EQ(alert_words(a, kSecondsAndBytes).state, "out of memory");
  EXPECT_EQ(alert_words(a, kSecondsAndBytes).ended, "ran out of memory") << "of an alert without a reason";
  for (std::size_t i = 0; i < words_of<EndKind>().size(); ++i) {
    a.end_kind = static_cast<EndKind>(i);
    EXPECT_LE(columns(alert_words(a, kSecondsAndBytes).state), 13U) << "the column of top";
  }
}

TEST(AlertWords, OfAStallAndOfMemoryLeftBehind) {
  Alert a = stall_alert();
  EXPECT_EQ(alert_words(a, kSecondsAndBytes).what, "stalled process");
  EXPECT_EQ(alert_words(a, kSecondsAndBytes).severity, "STALLED");
  EXPECT_EQ(alert_words(a, kSecondsAndBytes).figures, "confidence 80 %");
  a.kind = AlertKind::unreleased;
  EXPECT_EQ(alert_words(a, kSecondsAndBytes).severity, "NOT RELEASED");
  EXPECT_EQ(alert_words(a, kSecondsAndBytes).figures, "");
  a.kind = AlertKind::headroom;
  EXPECT_EQ(alert_words(a, kSecondsAndBytes).severity, "DOES NOT FIT");
}

std::string document(const std::string& path) {
  std::ifstream in(source_dir() + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The words in backticks in `text`.
std::set<std::string> quoted_words(std::string_view text) {
  std::set<std::string> out;
  for (std::size_t at = text.find('`'); at != std::string_view::npos; at = text.find('`', at)) {
    const std::size_t end = text.find('`', at + 1);
    out.emplace(text.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return out;
}

TEST(ConclusionWords, TheDocumentsHaveEveryStateAndNoOther) {
  std::set<std::string> words = {"LEAK", "LEAKED until memory ran out", "suspected leak, not confirmed",
                                 "…, then the GPU was lost"};
  const std::string analysis = document("/docs/formats/analysis.md");
  for (std::size_t i = 0; i < words_of<State>().size(); ++i) {
    Finding f;
    f.state = static_cast<State>(i);
    EXPECT_NE(analysis.find(fmt::format("`{}`", to_string(f.state))), std::string::npos) << to_string(f.state);
    for (const SpikeOutcome outcome : {SpikeOutcome::none, SpikeOutcome::stabilised, SpikeOutcome::still_growing}) {
      f.spike = outcome;
      words.insert(state_words(f));
    }
  }
  const std::string words_page = document("/docs/verdicts.md");
  const std::size_t begin = words_page.find("| word | meaning |");
  const std::string table = words_page.substr(begin, words_page.find("\n\n", begin) - begin);
  std::set<std::string> listed;
  for (std::size_t at = table.find("\n| `"); at != std::string::npos; at = table.find("\n| `", at + 1)) {
    const std::size_t cell = table.find(" | ", at);
    listed.merge(quoted_words(std::string_view(table).substr(at, cell - at)));
  }
  EXPECT_EQ(listed, words);
}

TEST(ConclusionWords, ALostGpuIsSaidInEveryWord) {
  View view = sample_view();
  SeriesView& s = view.series[0];
  s.paused = true;
  s.verdict.finding.leak = false;
  s.verdict.finding.stage = Stage::none;
  s.verdict.finding.state = State::steady;
  s.verdict.finding.oom_if_growth_continues_s = Interval{1, 2, 3}.mid;
  s.verdict.end.reset();
  const ConclusionWords told = conclusion_words(view, s);
  EXPECT_EQ(told.headline, "steady, then the GPU was lost");
  EXPECT_EQ(told.tone, Tone::warning);
  EXPECT_EQ(told.forecast, "");
  ASSERT_FALSE(told.facts.empty());
  EXPECT_EQ(told.facts[0].label, "lost");
  EXPECT_NE(told.facts[0].text.find("readings stopped after " + format_moment(*s.last, view.clock_is_relative)),
            std::string::npos)
      << told.facts[0].text;
  EXPECT_NE(told.next.find("nvidia-smi"), std::string::npos);
  EXPECT_EQ(headline(view).text,
            "GPU 0 was lost at " + format_moment(*s.last, view.clock_is_relative) + ": readings stopped then.");
  const ReportInfo* const json = find_report("json");
  ASSERT_NE(json, nullptr);
  EXPECT_NE(json->render(view, {}).find("\"lost_at\":"), std::string::npos);
}

}  // namespace
}  // namespace vramtrack
