#include "report/headline.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/told.hpp"
#include "report/trend.hpp"
#include "report/view_json.hpp"
#include "report/words.hpp"

namespace vramtrack {
namespace {

Timestamp at(double seconds) {
  return Timestamp{} + from_seconds(seconds);
}

SeriesView gpu(int index, State state) {
  SeriesView s;
  s.key = {Metric::device_used, "GPU-" + std::to_string(index), 0, 0};
  s.device.id = s.key.device_id;
  s.device.index = index;
  s.first = at(0);
  s.last = at(600);
  s.used_bytes = 1300;
  s.verdict.time = at(600);
  s.verdict.finding.state = state;
  return s;
}

SeriesView leaking(int index, Severity severity, double oom_in_s) {
  SeriesView s = gpu(index, State::leaking);
  s.verdict.severity = severity;
  Finding& f = s.verdict.finding;
  f.leak = true;
  f.pattern = Pattern::gradual_leak;
  f.onset = at(0);
  f.growth_bytes_per_s = {1, 2, 3};
  f.oom_in_s = Interval{0.8 * oom_in_s, oom_in_s, 1.2 * oom_in_s};
  s.verdict.suspect = Suspect{42, 7, "python train.py", 1};
  s.level_bytes = 1200;
  return s;
}

View view(std::vector<SeriesView> series) {
  View v;
  v.time = at(600);
  v.series = std::move(series);
  return v;
}

TEST(Headline, WhatWasSeenTooBrieflyIsNotCalledHealthy) {
  const Headline young = headline(view({gpu(0, State::too_short), gpu(1, State::too_short)}));
  EXPECT_EQ(young.text, "Too few samples so far to tell whether anything leaks.");
  EXPECT_EQ(young.tone, Tone::faint);
  EXPECT_EQ(headline(view({gpu(0, State::steady), gpu(1, State::too_short)})).text,
            "Nothing leaks so far; too few samples of GPU 1 to tell.");
  EXPECT_EQ(headline(view({gpu(0, State::steady)})).text, "Nothing leaks.");
  EXPECT_EQ(headline(view({gpu(0, State::steady), gpu(1, State::cycling)})).text, "Nothing leaks on 2 GPUs.");
  EXPECT_EQ(headline(view({})).text, "No GPU is being watched.");
}

TEST(Headline, TheMostSevereLeakWithItsEnd) {
  const Headline said = headline(view({leaking(0, Severity::watch, 1e6), leaking(1, Severity::critical, 3000),
                                       leaking(2, Severity::critical, 1500), gpu(3, State::growing)}));
  EXPECT_EQ(said.text, "GPU 2 leaks: pid 42 python train.py; out of memory in 0h 25m (20m–30m). 2 more GPUs leak.");
  EXPECT_EQ(said.tone, Tone::critical);
  EXPECT_EQ(headline(view({gpu(3, State::growing)})).text,
            "No leak so far; GPU 3 grows, and it is too early to tell why.");
}

TEST(Headline, ASuspicionComesBeforeWhatOnlyGrows) {
  SeriesView suspected = gpu(1, State::growing);
  suspected.verdict.finding.stage = Stage::suspected;
  const Headline said = headline(view({gpu(0, State::growing), suspected}));
  EXPECT_EQ(said.text, "No leak is confirmed; GPU 1 is suspected.");
  EXPECT_EQ(said.tone, Tone::notice);
}

TEST(Headline, ACommandThatIsHiddenIsHiddenHereToo) {
  View v = view({leaking(0, Severity::critical, 1500)});
  SeriesView process = gpu(0, State::steady);
  process.key = {Metric::process_used, "GPU-0", 42, 7};
  process.process.emplace();
  process.process->pid = 42;
  process.process->start_ticks = 7;
  process.process->name = "python";
  process.process->command = "python train.py";
  v.series.push_back(process);
  const auto nobody = [](const ProcessInfo&) { return false; };
  EXPECT_EQ(headline(v, nobody).text, "GPU 0 leaks: pid 42 python; out of memory in 0h 25m (20m–30m).");
  const std::string json = view_json(v, nobody);
  EXPECT_EQ(json.find("train.py"), std::string::npos) << json;
}

TEST(Headline, GpusOfSeveralHostsSayWhoseTheyAre) {
  SeriesView s;
  s.device.index = 1;
  s.device.name = "NVIDIA A10";
  s.key.device_id = "GPU-8f";
  EXPECT_EQ(device_words(s), "GPU 1 NVIDIA A10");
  s.key.device_id = "node2/1";
  EXPECT_EQ(device_words(s), "node2 GPU 1 NVIDIA A10");
  s.key.device_id = "11";
  EXPECT_EQ(short_device_words(s), "GPU 1");
  s.key.host = "node3";
  EXPECT_EQ(short_device_words(s), "node3 GPU 1");
}

TEST(Trend, ItsSlopeIsTheVerdictsAndItsLevelThatOfTheSamples) {
  const auto trend = trend_line(leaking(0, Severity::critical, 1500));
  ASSERT_TRUE(trend);
  EXPECT_EQ(trend->from, at(0));
  EXPECT_EQ(trend->to, at(600));
  EXPECT_EQ(trend->from_bytes, 0);
  EXPECT_EQ(trend->to_bytes, 1200);
}

TEST(Trend, OnlyOfWhatGrows) {
  SeriesView s = leaking(0, Severity::critical, 1500);
  s.verdict.finding.leak = false;
  EXPECT_FALSE(trend_line(s)) << "rising, but not said to leak";
  s.verdict.finding.state = State::growing;
  EXPECT_TRUE(trend_line(s));
  s.verdict.finding.onset.reset();
  EXPECT_FALSE(trend_line(s));
}

// Whoever draws a view computes none of these.
TEST(ViewJson, ServesWhatIsConcluded) {
  const View v = view({leaking(0, Severity::critical, 1500)});
  const auto json = nlohmann::json::parse(view_json(v));
  EXPECT_EQ(json["headline"]["text"], headline(v).text);
  EXPECT_EQ(json["headline"]["tone"], "critical");
  const auto& s = json["series"][0];
  EXPECT_EQ(s["end"], "out of memory in 0h 25m (20m–30m)");
  const Told told = tell(v, v.series[0]);
  EXPECT_EQ(s["next"], told.next);
  EXPECT_EQ(s["told"]["verdict"], told.verdict);
  EXPECT_EQ(s["told"]["tone"], "critical");
  EXPECT_EQ(s["told"]["forecast"], s["end"]);
  EXPECT_EQ(s["trend"], (nlohmann::json{{"from", "1970-01-01T00:00:00Z"},
                                        {"to", "1970-01-01T00:10:00Z"},
                                        {"from_bytes", 0.0},
                                        {"to_bytes", 1200.0}}));
  EXPECT_EQ(json["series"][0]["verdict"]["finding"]["leak"], true);
}

}  // namespace
}  // namespace vramtrack
