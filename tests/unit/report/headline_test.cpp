#include "report/headline.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/conclusion_words.hpp"
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
  EXPECT_EQ(young.text, "Not known yet: too few samples.");
  EXPECT_EQ(young.tone, Tone::faint);
  EXPECT_EQ(headline(view({gpu(0, State::steady), gpu(1, State::too_short)})).text,
            "No leak so far; too few samples of GPU 1 to tell.");
  EXPECT_EQ(headline(view({gpu(0, State::steady)})).text, "No leak.");
  EXPECT_EQ(headline(view({gpu(0, State::steady), gpu(1, State::cycling)})).text, "No leak on 2 GPUs.");
  EXPECT_EQ(headline(view({})).text, "No GPU is being watched.");
}

TEST(Headline, TheMostSevereLeakWithItsEnd) {
  const Headline said = headline(view({leaking(0, Severity::watch, 1e6), leaking(1, Severity::critical, 3000),
                                       leaking(2, Severity::critical, 1500), gpu(3, State::growing)}));
  EXPECT_EQ(said.text, "3 of 4 GPUs leak, GPU 2 first: pid 42 python train.py; out of memory in 0h 25m (20m–30m).");
  EXPECT_EQ(said.tone, Tone::critical);
  EXPECT_EQ(headline(view({gpu(3, State::growing)})).text, "GPU 3 grows, too early to tell why.");
  EXPECT_EQ(headline(view({gpu(2, State::growing), gpu(3, State::growing), gpu(4, State::steady)})).text,
            "2 of 3 GPUs grow, too early to tell why: GPU 2, GPU 3.");
}

TEST(Headline, ASuspicionComesBeforeWhatOnlyGrows) {
  SeriesView suspected = gpu(1, State::growing);
  suspected.verdict.finding.stage = Stage::suspected;
  const Headline said = headline(view({gpu(0, State::growing), suspected}));
  EXPECT_EQ(said.text, "GPU 1 is suspected of a leak.");
  EXPECT_EQ(said.tone, Tone::notice);
}

SeriesView ended(int index, EndKind how, double time_s) {
  SeriesView s = gpu(index, State::steady);
  s.verdict.end.emplace();
  s.verdict.end->how = how;
  s.verdict.end->time = at(time_s);
  s.verdict.end->pid = 42;
  s.verdict.end->command = "python train.py";
  return s;
}

TEST(Headline, AnEndThatWasBadIsNewsForADay) {
  View v = view({ended(0, EndKind::out_of_memory, 300), gpu(1, State::growing)});
  EXPECT_EQ(headline(v).text, "GPU 0 ran out of memory at 1970-01-01T00:05:00Z: pid 42 python train.py.");
  EXPECT_EQ(headline(v).tone, Tone::warning);
  v.series.push_back(ended(2, EndKind::out_of_memory, 400));
  EXPECT_EQ(headline(v).text,
            "2 of 3 GPUs ran out of memory, GPU 2 last, at 1970-01-01T00:06:40Z: pid 42 python train.py.");
  v.series[2].alerts.resize(1);
  v.series[2].alerts[0].finding.leak = true;
  v.series[2].alerts[0].raised = at(100);
  EXPECT_EQ(machine_of(v).words, "2 of 3 GPUs ended badly") << "one of them had leaked";
  v.time = at(300 + 25 * 3600);
  EXPECT_EQ(machine_of(v).words, "GPU 1 grows, too early to tell why");
  EXPECT_EQ(machine_of(view({ended(0, EndKind::ended, 300)})).words, "no leak") << "as it should";
}

TEST(Headline, ALeakThatNoTotalShowsIsToldAsWhatItIs) {
  SeriesView process = leaking(0, Severity::critical, 1500);
  process.key = {Metric::process_used, "GPU-0", 42, 7};
  process.process.emplace();
  process.process->pid = 42;
  process.process->command = "python train.py";
  process.verdict.suspect.reset();
  EXPECT_EQ(headline(view({process})).text,
            "A process leaks: pid 42 python train.py; out of memory in 0h 25m (20m–30m).");
  EXPECT_EQ(machine_of(view({gpu(0, State::steady), process})).words, "a process leaks");
  SeriesView allocator = process;
  allocator.key = {Metric::allocator_allocated, "GPU-0", 0, 0};
  allocator.process.reset();
  EXPECT_EQ(machine_of(view({allocator})).words, "the memory of an allocator leaks");
  process.ended = true;
  EXPECT_EQ(machine_of(view({process})).matter, Matter::healthy) << "what has ended leaks no more";
}

TEST(Headline, OfAReportWhatIsPastNeitherLeaksNorGrows) {
  const View v = view({leaking(0, Severity::critical, 1500), gpu(1, State::growing), gpu(2, State::steady)});
  EXPECT_EQ(machine_of({{&v.series[0], true}, {&v.series[1], true}, {&v.series[2], false}}, v.time).words, "no leak");
  EXPECT_EQ(machine_of({{&v.series[0], true}, {&v.series[1], false}, {&v.series[2], false}}, v.time).words,
            "GPU 1 grows, too early to tell why");
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

// Code that draws a view computes none of these.
TEST(ViewJson, ServesWhatIsConcluded) {
  const View v = view({leaking(0, Severity::critical, 1500)});
  const auto json = nlohmann::json::parse(view_json(v));
  EXPECT_EQ(json["headline"]["text"], headline(v).text);
  EXPECT_EQ(json["headline"]["tone"], "critical");
  const auto& s = json["series"][0];
  EXPECT_EQ(s["end"], "out of memory in 0h 25m (20m–30m)");
  const ConclusionWords told = conclusion_words(v, v.series[0]);
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
