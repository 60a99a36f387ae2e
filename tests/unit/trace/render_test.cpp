// The documents of render.hpp, for snapshots made in place: what they show, in which order, and what they omit. The
// golden files of tests/golden/snapshot contain their whole text.
#include "trace/render/render.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "golden.hpp"
#include "sample.hpp"
#include "trace/render/parts.hpp"
#include "trace/usage.hpp"

namespace vramtrack::trace::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// One segment with these blocks, on `device`.
Snapshot snapshot_of(const std::string& file, std::uint32_t device, std::vector<Block> blocks) {
  Snapshot s;
  s.file = file;
  add_segment(s, 1ULL << 32, std::move(blocks));
  s.segments.back().device = device;
  return s;
}

void add_device(Snapshot& s, std::uint32_t device, std::vector<Block> blocks) {
  add_segment(s, (device + 2ULL) << 36, std::move(blocks));
  s.segments.back().device = device;
}

void add_event(Snapshot& s, std::uint32_t device, Action action, std::uint64_t address, std::uint64_t bytes,
               StackId stack = kNoStack, std::int64_t time_us = kNoTime) {
  auto trace = std::find_if(s.traces.begin(), s.traces.end(), [&](const auto& t) { return t.device == device; });
  if (trace == s.traces.end()) {
    s.traces.emplace_back().device = device;
    trace = s.traces.end() - 1;
    trace->first_time_us = time_us;
  }
  trace->events.push_back({address, bytes, time_us, stack, 0, action});
  ++trace->event_count;
  ++trace->counts[static_cast<std::size_t>(action)];
  trace->last_time_us = time_us;
}

class Render : public ::testing::Test {
 protected:
  Symbols symbols;
  StackId model = line(symbols, "model.py", 12);
  StackId train = line(symbols, "train.py", 40);
};

TEST_F(Render, SummaryShowsTheDeviceAskedForAndItsSites) {
  Snapshot s = snapshot_of("a.pickle", 0, {active(8 * kMiB, model), active(2 * kMiB, train), inactive(2 * kMiB)});
  add_device(s, 1, {active(4 * kMiB, train)});
  std::vector<Snapshot> all = {s};
  const std::string text = summary_text(all, symbols, {});
  EXPECT_THAT(text, StartsWith("a.pickle: 0 bytes, 2 segments, 0 trace entries\n"));
  EXPECT_THAT(text, AllOf(HasSubstr("\ndevice 0: "), HasSubstr("\ndevice 1: "), HasSubstr("model.py:12 f"),
                          HasSubstr("8.0 MiB   80 %")));
  EXPECT_LT(text.find("model.py:12"), text.find("train.py:40"));
  const std::string one = summary_text(all, symbols, {1, 10});
  EXPECT_THAT(one, AllOf(HasSubstr("\ndevice 1: "), Not(HasSubstr("device 0")), Not(HasSubstr("model.py"))));
  EXPECT_THAT(summary_text(all, symbols, {0, 1}), AllOf(HasSubstr("and 1 more line\n"), Not(HasSubstr("train.py"))));

  const std::string json = summary_json(all, symbols, {0, 1});
  EXPECT_THAT(json, StartsWith(R"({"schema":"vramtrack.snapshot.summary.v1","snapshots":[{"file":"a.pickle")"));
  EXPECT_THAT(json, AllOf(HasSubstr(R"("device":0,"is_host":false,"reserved_bytes":12582912)"),
                          HasSubstr(R"("bytes":8388608,"blocks":1,"stack":[{"name":"f","file":"model.py")"),
                          Not(HasSubstr("train.py")), Not(HasSubstr(R"("device":1)"))));
}

TEST_F(Render, SummaryOfNothingSaysSo) {
  Snapshot s;
  s.file = "empty.pickle";
  std::vector<Snapshot> all = {s};
  EXPECT_THAT(summary_text(all, symbols, {}), HasSubstr("\nno device holds anything "));
}

TEST_F(Render, SummaryMarksPinnedHostMemory) {
  Snapshot s = snapshot_of("a.pickle", 0, {active(8 * kMiB, model)});
  s.host_segments.push_back(s.segments.front());
  std::vector<Snapshot> all = {s};
  EXPECT_THAT(summary_text(all, symbols, {}), HasSubstr("\nhost: pinned host memory\n"));
  EXPECT_THAT(summary_text(all, symbols, {0, 10}), Not(HasSubstr("host: ")));
  EXPECT_THAT(summary_json(all, symbols, {}), HasSubstr(R"("is_host":true)"));
}

/// Three snapshots in which `model` holds 8, 16 and 24 MiB of device 0, and device 1 always the same.
std::vector<Snapshot> leaking(StackId model, StackId train) {
  std::vector<Snapshot> all;
  for (std::size_t n = 1; n <= 3; ++n) {
    Snapshot s = snapshot_of("s" + std::to_string(n), 0, std::vector<Block>(n, active(8 * kMiB, model)));
    add_device(s, 1, {active(4 * kMiB, train)});
    all.push_back(std::move(s));
  }
  return all;
}

TEST_F(Render, CompareDevicesPutsTheLeakFirst) {
  std::vector<Snapshot> all = leaking(model, train);
  for (Snapshot& s : all)
    for (Segment& segment : s.segments) segment.device = 1 - segment.device;
  EXPECT_THAT(devices_of(all), ElementsAre(0U, 1U));
  const auto growths = compare_devices(all, {});
  ASSERT_EQ(growths.size(), 2U);
  EXPECT_EQ(growths[0].device, 1U);
  EXPECT_EQ(growths[0].growth.condition, Condition::leak);
  EXPECT_EQ(growths[0].growth.leaking_bytes, static_cast<std::int64_t>(16 * kMiB));
  EXPECT_EQ(growths[1].growth.condition, Condition::steady);
  GrowthOptions options;
  options.device = 0;
  const auto one = compare_devices(all, options);
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].device, 0U);

  const auto none = compare_devices(std::vector<Snapshot>(2), {});
  ASSERT_EQ(none.size(), 1U);
  EXPECT_EQ(none[0].device, std::nullopt);
}

TEST_F(Render, LeaksTellTheWorstInFullAndTheRestInALine) {
  const std::vector<Snapshot> all = leaking(model, train);
  const auto growths = compare_devices(all, {});
  const std::string text = leaks_text(all, symbols, growths, nullptr, 10);
  EXPECT_THAT(text, AllOf(StartsWith("device 0: LEAK: "), HasSubstr("\ndevice 1: no leak: ")));
  expect_golden("words/trace/leaks_of_two_devices.txt", text + '\n' + leaks_text(all, symbols, growths, nullptr, 0));

  const std::string json = leaks_json(all, symbols, growths, nullptr, 10);
  EXPECT_THAT(json, StartsWith(R"({"schema":"vramtrack.snapshot.leaks.v1","condition":"leak","is_certain":true)"));
  EXPECT_THAT(json, AllOf(HasSubstr(R"("bytes":[8388608,16777216,25165824],"blocks":[1,2,3])"),
                          HasSubstr(R"("device":1,"condition":"steady")")));
}

TEST_F(Render, LeaksSayWhatShrank) {
  std::vector<Snapshot> all = leaking(model, train);
  std::swap(all.front(), all.back());
  const auto growths = compare_devices(all, {});
  EXPECT_THAT(leaks_text(all, symbols, growths, nullptr, 10), HasSubstr("\n1 site shrank, by 16.0 MiB "));
}

/// 4 MiB of `model` at 1 s, and 8 MiB of `train` from 2 s to 3 s, on device 0.
Snapshot traced(StackId model, StackId train) {
  Snapshot s;
  s.file = "t.pickle";
  add_event(s, 0, Action::segment_alloc, 0, 20 * kMiB, kNoStack, 0);
  add_event(s, 0, Action::alloc, 0, 4 * kMiB, model, 1'000'000);
  add_event(s, 0, Action::alloc, 4 * kMiB, 8 * kMiB, train, 2'000'000);
  add_event(s, 0, Action::free_requested, 4 * kMiB, 8 * kMiB, kNoStack, 3'000'000);
  add_event(s, 0, Action::free_completed, 4 * kMiB, 8 * kMiB, kNoStack, 3'000'000);
  add_segment(s, 0, {active(4 * kMiB, model), inactive(16 * kMiB)});
  return s;
}

TEST_F(Render, TimelineDrawsEachStretchAndTellsThePeak) {
  const Snapshot s = traced(model, train);
  const std::vector<Timeline> timelines = {timeline_of(s, 0, symbols)};
  const std::string text = timeline_text(s, timelines, symbols, 10);
  expect_golden("words/trace/timeline.txt", text);
  const std::string json = timeline_json(s, timelines, symbols, 1);
  EXPECT_THAT(json,
              StartsWith(R"({"schema":"vramtrack.snapshot.timeline.v1","file":"t.pickle","devices":[{"device":0)"));
  EXPECT_THAT(json, HasSubstr(R"("event":2,"time_us":2000000,"live_bytes":12582912)"));
}

TEST_F(Render, OomTellsWhatWasAskedForAndWhoHeldTheRest) {
  Snapshot s = traced(model, train);
  add_event(s, 0, Action::oom, kMiB, 64 * kMiB, train, 4'000'000);
  const std::vector<std::vector<OomReport>> reports = {{oom_of(s, 0, symbols, 30 * kMiB)}};
  const std::span<const Snapshot> one(&s, 1);
  const std::string text = oom_text(one, reports, symbols, 10);
  expect_golden("words/trace/oom_of_snapshot.txt",
                text + '\n' + oom_text(one, std::vector<std::vector<OomReport>>{{oom_of(s, 0, symbols)}}, symbols, 10));
  EXPECT_THAT(oom_json(one, reports, symbols, 10),
              AllOf(StartsWith(R"({"schema":"vramtrack.snapshot.oom.v1","file":"t.pickle","devices":[{"device":0,)"),
                    HasSubstr(R"("has_oom":true,"ooms":1)"), HasSubstr(R"("asked_bytes":67108864)"),
                    HasSubstr(R"("outside_bytes":9437184)")));
}

TEST_F(Render, DevicesToReportOf) {
  Snapshot s = traced(model, train);
  add_event(s, 2, Action::alloc, 0, kMiB);
  add_device(s, 1, {active(kMiB)});
  EXPECT_THAT(known_devices(s), ElementsAre(0U, 1U, 2U));
  EXPECT_THAT(traced_devices(s), ElementsAre(0U, 2U));
  EXPECT_THAT(traced_devices(s, 2), ElementsAre(2U));
  EXPECT_THAT(traced_devices(s, 1), ElementsAre());
  EXPECT_THAT(oom_devices(s), ElementsAre(0U, 2U)) << "none ran out: all";
  add_event(s, 2, Action::oom, kMiB, 64 * kMiB);
  EXPECT_THAT(oom_devices(s), ElementsAre(2U));
  EXPECT_THAT(oom_devices(s, 0), ElementsAre(0U)) << "as asked for";
}

TEST_F(Render, ProfileOfTheEndAndOfThePeak) {
  Snapshot s = traced(model, train);
  const auto end = named_profile(s, symbols, {}, false);
  ASSERT_TRUE(end);
  ASSERT_EQ(end->profile.size(), 1U);
  EXPECT_EQ(end->profile[0].stack, model);
  const auto peak = named_profile(s, symbols, {}, true);
  ASSERT_TRUE(peak) << peak.error().message;
  EXPECT_EQ(peak->profile.front().stack, train);
  const auto page = flamegraph_page(s, *peak, symbols);
  ASSERT_TRUE(page);
  EXPECT_THAT(*page, HasSubstr("t.pickle: 12.0 MiB "));

  s.traces.clear();
  const auto no_peak = named_profile(s, symbols, {}, true);
  ASSERT_FALSE(no_peak);
  EXPECT_THAT(no_peak.error().message, StartsWith("--peak: t.pickle "));
  const auto nothing = flamegraph_page(s, NamedProfile{}, symbols);
  ASSERT_FALSE(nothing);
  expect_golden("words/trace/profiles.txt",
                end->title + '\n' + named_profile(traced(model, train), symbols, 0, false)->title + '\n' + peak->title +
                    '\n' + no_peak.error().message + '\n' + nothing.error().message + '\n');
}

TEST_F(Render, ForeignNamesStayOnTheirLine) {
  const StackId odd = line(symbols, "a\nb.py", 1);
  std::vector<Snapshot> all = {snapshot_of("a.pickle", 0, {active(kMiB, odd)})};
  EXPECT_THAT(summary_text(all, symbols, {}), HasSubstr("a b.py:1 f"));
}

TEST_F(Render, StacksAreToldFromTheSiteOutwards) {
  const StackId deep = stack_of(symbols, {{symbols.intern("forward"), symbols.intern("model.py"), 3},
                                          {symbols.intern("step"), symbols.intern("train.py"), 9},
                                          {symbols.intern("main"), symbols.intern("train.py"), 20}});
  EXPECT_THAT(stack_words(symbols, deep, 2), ElementsAre("model.py:3 forward", "train.py:9 step"));
  EXPECT_EQ(line_words(symbols, {site_of(symbols, deep), deep, 1, 1, 1234}), "model.py:3 forward  (1,234 stacks)");
  EXPECT_EQ(moment_words(Moment{}, 0).substr(0, 6), "entry ");
}

}  // namespace
}  // namespace vramtrack::trace::test
