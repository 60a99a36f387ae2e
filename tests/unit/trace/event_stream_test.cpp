// Plain streams of events: their replay in bounded memory, the allocation event log, and the registry of formats.
#include "trace/event_stream.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <random>
#include <set>

#include "golden.hpp"
#include "heap.hpp"
#include "sample.hpp"
#include "trace/format.hpp"
#include "trace/usage.hpp"

namespace vramtrack::trace::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Result<Snapshot> read_log(const std::string& text, Symbols& symbols, bool keep_events = true) {
  auto input = open_trace(bytes_of(text), "events.log");
  if (!input) return fail(input.error());
  return read_trace(std::move(*input), symbols, {keep_events});
}

std::string error_of(const std::string& text) {
  Symbols symbols;
  const auto snapshot = read_log("# vramtrack allocation events 1\n" + text, symbols);
  return snapshot ? "none" : snapshot.error().message;
}

std::vector<std::pair<std::string, std::int64_t>> by_site(const Profile& profile, const Symbols& symbols) {
  std::vector<std::pair<std::string, std::int64_t>> out;
  for (const StackBytes& held : profile) out.emplace_back(site_words(symbols, held.stack), held.bytes);
  return out;
}

TEST(TraceFormats, EachHasAnotherNameAndOneWayToBeRead) {
  std::set<std::string_view> names;
  for (const TraceFormatInfo* format : trace_formats()) {
    EXPECT_TRUE(names.insert(format->name).second) << format->name;
    EXPECT_FALSE(format->help.empty());
    EXPECT_NE(format->read == nullptr, format->stream == nullptr) << format->name;
  }
}

TEST(TraceFormats, RecognisedByContent) {
  const auto name_of = [](const std::string& bytes) {
    const auto input = open_trace(bytes_of(bytes), "file");
    return input ? std::string(input->format->name) : input.error().message;
  };
  for (const int protocol : {0, 2, 4}) EXPECT_EQ(name_of(Writer(protocol).dump(sample(Era::v25))), "torch-snapshot");
  EXPECT_EQ(name_of("# vramtrack allocation events 1\n"), "allocation-events");
  EXPECT_EQ(name_of("\n# by my allocator\n0.5 + 0x1000 64 f@a.py:1\n"), "allocation-events");
  EXPECT_EQ(name_of("timestamp, index\n1, 2\n"), "torch-snapshot") << "nobody's: the first says what is wrong";
  EXPECT_EQ(recognise_trace("timestamp, index\n1, 2\n", "gpu.csv"), nullptr);
}

TEST(AllocationEvents, WhatIsLiveAtTheEndIsASnapshot) {
  Symbols symbols;
  const auto snapshot = read_log(
      "# vramtrack allocation events 1\n"
      "0 + 0x1000 4096 load@model.py:12; main@run.py:3\n"
      "\n"
      "0.5 + 8192 1000 device=0 stream=7 step@train.py:88\r\n"
      "1.000001 - 0x2000\n"
      "2 + 0x3000 500 step@train.py:88\n"
      "3 + 0x9000 100 device=1",
      symbols);
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  EXPECT_EQ(snapshot->file, "events.log");
  EXPECT_THAT(by_site(live_profile(*snapshot, 0), symbols),
              ElementsAre(std::pair("model.py:12 load", 4096), std::pair("train.py:88 step", 500)));
  EXPECT_THAT(by_site(live_profile(*snapshot, 1), symbols), ElementsAre(std::pair("(no stack recorded)", 100)));
  EXPECT_EQ(total_usage(*snapshot, 0).reserved_bytes, 4596U);
  const DeviceTrace& trace = *snapshot->trace_of(0);
  ASSERT_THAT(trace.events, SizeIs(4));
  EXPECT_EQ(trace.events[2].time_us, 1000001);
  EXPECT_EQ(trace.events[2].size_bytes, 1000U) << "a free is as large as what it frees";
  EXPECT_EQ(snapshot->origins[trace.events[1].origin].stream, 7);
  EXPECT_EQ(trace.peak_net_bytes, 5096);
  EXPECT_THAT(snapshot->notes, SizeIs(0));
  Symbols again;
  EXPECT_TRUE(read_log("0 + 1 1\n", again, false)->traces.front().events.empty());
}

TEST(AllocationEvents, ErrorsNameFileAndLine) {
  std::string refused;
  for (const std::string lines :
       {"\nsoon + 0x1 1", "-1 + 0x1 1", "nan + 0x1 1", "0 malloc 0x1 1", "0 + 0xxyz 1", "0 + 0x1 1KiB", "0 + 0x1",
        "0 + 0x1 1 device=gpu", "0 + 0x1 1\n1 + 0x2 99999999999999999", "0 + \x1b[31m 1"})
    refused += error_of(lines + "\n") + "\n";
  refused += error_of("0 + 0x1 1\n" + std::string(2 << 20, 'x')) + "\n";
  expect_golden("words/trace/refused_events.txt", refused);
}

TEST(AllocationEvents, WhatTheLogLacksIsNoted) {
  Symbols symbols;
  const auto snapshot = read_log("0 - 0x1\n1 + 0x2 10\n2 + 0x2 20\n", symbols);
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  expect_golden("words/trace/notes_of_events.txt", fmt::format("{}\n", fmt::join(snapshot->notes, "\n")));
  EXPECT_EQ(total_usage(*snapshot).requested_bytes, 20U);
}

AllocEvent alloc(std::uint64_t address, std::uint64_t bytes, StackId stack, std::int64_t time_us) {
  return {address, bytes, time_us, stack, 0, Action::alloc};
}
AllocEvent free_of(std::uint64_t address, std::int64_t time_us) {
  return {address, 0, time_us, kNoStack, 0, Action::free_completed};
}

/// The same events replayed in bounded memory and kept as a snapshot whose trace is replayed.
struct Both {
  explicit Both(std::size_t points) : streamed(0, TimelineOptions{points, 3, 100}) {}
  void take(const AllocEvent& event) {
    ASSERT_TRUE(streamed.take(event));
    ASSERT_TRUE(kept.take(0, 0, event));
  }
  StreamReplay streamed;
  StreamSnapshot kept{true};
};

TEST(StreamReplay, AgreesWithTheReplayOfKeptEvents) {
  Symbols symbols;
  std::vector<StackId> sites;
  for (std::uint32_t n = 1; n <= 7; ++n) sites.push_back(line(symbols, "train.py", n));
  std::mt19937 random(7);
  Both both(24);
  for (int n = 0; n < 5000; ++n) {
    const std::uint64_t address = 1 + random() % 50;
    if (random() % 2 == 0)
      both.take(alloc(address, 1 + random() % 1000, sites[random() % sites.size()], n));
    else
      both.take(free_of(address, n));
  }
  const Timeline streamed = both.streamed.timeline(symbols);
  const Snapshot snapshot = both.kept.finish();
  const Profile live = live_profile(snapshot);
  EXPECT_EQ(by_site(both.streamed.sites(), symbols), by_site(live, symbols));
  const Replay replay(snapshot, 0, symbols);
  EXPECT_EQ(replay.mismatch_count(), 0U);
  std::int64_t highest = 0;
  replay.run([&](const AllocEvent&, const Change&, const Moment& now) {
    highest = std::max(highest, now.live_bytes);
    EXPECT_EQ(now.reserved_bytes, now.live_bytes);
  });
  ASSERT_FALSE(streamed.peaks.empty());
  EXPECT_EQ(streamed.peaks.front().at.live_bytes, highest);
  EXPECT_EQ(streamed.event_count, 5000U);
  EXPECT_LE(streamed.points.size(), 25U);
  for (std::size_t i = 0; i < streamed.points.size(); ++i) {
    std::int64_t sum = 0;
    for (const std::int64_t bytes : streamed.site_bytes[i]) sum += bytes;
    EXPECT_EQ(sum, streamed.points[i].live_bytes) << "point " << i;
  }
  std::int64_t at_peak = 0;
  for (const StackBytes& held : streamed.peaks.front().sites) at_peak += held.bytes;
  EXPECT_EQ(at_peak, highest);
}

/// Steps of a program: a large block that is released, and the amount kept per step according to `kept_bytes`.
StreamReplay steps(Symbols& symbols, int count, std::uint64_t kept_bytes) {
  const StackId work = line(symbols, "train.py", 88);
  const StackId keeps = line(symbols, "train.py", 91);
  const StackId weights = line(symbols, "model.py", 12);
  StreamReplay replay(0);
  EXPECT_TRUE(replay.take(alloc(1, 100 * kMiB, weights, 0)));
  for (int n = 0; n < count; ++n) {
    EXPECT_TRUE(replay.take(alloc(2, 50 * kMiB, work, n * 10)));
    if (kept_bytes > 0) {
      EXPECT_TRUE(replay.take(alloc(1000 + static_cast<std::uint64_t>(n), kept_bytes, keeps, n * 10 + 1)));
    }
    EXPECT_TRUE(replay.take(free_of(2, n * 10 + 2)));
  }
  return replay;
}

TEST(StreamReplay, GrowthNamesTheSiteThatLeaks) {
  Symbols symbols;
  const SnapshotGrowth leak = steps(symbols, 1000, 4096).growth();
  EXPECT_EQ(leak.condition, Condition::leak);
  EXPECT_TRUE(leak.is_certain);
  ASSERT_FALSE(leak.sites.empty());
  EXPECT_EQ(site_words(symbols, leak.sites.front().stack), "train.py:91 f");
  EXPECT_THAT(leak.usage, SizeIs(5));
  const SnapshotGrowth steady = steps(symbols, 1000, 0).growth();
  EXPECT_EQ(steady.condition, Condition::steady);
  EXPECT_THAT(steps(symbols, 0, 0).growth().usage, SizeIs(0)) << "too short to tell";
}

TEST(StreamReplay, MemoryDoesNotGrowWithTheEvents) {
  const auto peak_of = [](int count) {
    const HeapPeak peak;
    Symbols symbols;
    const StreamReplay replay = steps(symbols, count, 0);
    EXPECT_GT(replay.live().counts().event_count, static_cast<std::uint64_t>(2 * count));
    return peak.bytes();
  };
  const auto few = peak_of(2000);
  EXPECT_LE(peak_of(200000), few + few / 4);
}

}  // namespace
}  // namespace vramtrack::trace::test
