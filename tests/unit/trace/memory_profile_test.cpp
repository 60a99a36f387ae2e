// XProf's memory profiles, as a message and as JSON.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "golden.hpp"
#include "paths.hpp"
#include "proto_writer.hpp"
#include "trace/format.hpp"
#include "trace/labels.hpp"
#include "trace/timeline.hpp"
#include "trace/usage.hpp"

namespace vramtrack::trace::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Result<Snapshot> read_profile(const std::string& bytes, Symbols& symbols) {
  auto input = open_trace({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, "m.json");
  if (!input) return fail(input.error());
  EXPECT_EQ(input->format->name, "memory-profile");
  return read_trace(std::move(*input), symbols);
}
std::string error_of(const std::string& bytes) {
  Symbols symbols;
  const auto snapshot = read_profile(bytes, symbols);
  return snapshot ? "none" : snapshot.error().message;
}

struct Event {
  std::uint64_t time_ps = 0;
  const char* kind = "ALLOCATION";
  std::uint64_t at = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t heap_bytes = 0;
};
std::string moment(const Event& e) {
  return fmt::format(
      R"({{"timeOffsetPs":"{}","aggregationStats":{{"heapAllocatedBytes":"{}","stackReservedBytes":"0"}},)"
      R"("activityMetadata":{{"memoryActivity":"{}","allocationBytes":"{}","address":"{}","tfOpName":"dense/MatMul",)"
      R"("regionType":"output","dataType":"float","tensorShape":"[2,{}]"}}}})",
      e.time_ps, e.heap_bytes, e.kind, e.size_bytes, e.at, e.size_bytes);
}
std::string list(const char* name, const std::vector<Event>& events) {
  std::string out;
  for (const Event& each : events) out += (out.empty() ? "" : ",") + moment(each);
  return fmt::format("\"{}\":[{}]", name, out);
}
std::string profile(const std::string& members, const std::string& allocator = "GPU_0_bfc", int version = 1) {
  return fmt::format(R"({{"memoryProfilePerAllocator":{{"{}":{{{}}}}},"numHosts":1,"version":{}}})", allocator, members,
                     version);
}

const std::vector<Event> kEvents = {{1'000'000, "ALLOCATION", 256, 512, 10'512},
                                    {2'000'000, "ALLOCATION", 1024, 512, 11'024},
                                    {3'000'000, "DEALLOCATION", 256, 512, 10'512}};
/// Not consecutive events: the highest of each stretch.
const std::vector<Event> kSampled = {{1'000'000, "ALLOCATION", 256, 512, 10'000},
                                     {5'000'000, "ALLOCATION", 1024, 512, 50'000},
                                     {9'000'000, "ALLOCATION", 256, 512, 30'000}};
const std::string kRows =
    R"("activeAllocations":[{"snapshotIndex":"0","specialIndex":"-1","numOccurrences":"3"},)"
    R"({"snapshotIndex":"-1","specialIndex":"0","numOccurrences":"1"}],)"
    R"("specialAllocations":[{"memoryActivity":"ALLOCATION","requestedBytes":"48464","allocationBytes":"48464",)"
    R"("tfOpName":"stack","regionType":"stack","dataType":"INVALID","tensorShape":"unknown"}])";

TEST(MemoryProfile, OfAllEventsIsATrace) {
  for (const auto& [name, version] :
       {std::pair("sampledTimelineSnapshots", 1), std::pair("memory_profile_snapshots", 0)}) {
    Symbols symbols;
    const auto snapshot = read_profile(profile(list(name, kEvents), "GPU_2_bfc", version), symbols);
    ASSERT_TRUE(snapshot) << snapshot.error().message;
    EXPECT_THAT(snapshot->notes, IsEmpty());
    EXPECT_FALSE(snapshot->is_heap_profile);
    EXPECT_EQ(total_usage(*snapshot, 2).requested_bytes, 10'512U);
    const Timeline timeline = timeline_of(*snapshot, 2, symbols);
    EXPECT_EQ(timeline.begin.live_bytes, 10'000);
    EXPECT_EQ(timeline.peaks.front().at.live_bytes, 11'024);
    EXPECT_EQ(timeline.peaks.front().at.time_us, 2);
  }
}

TEST(MemoryProfile, OfSamplesIsWhatWasLiveAtThePeak) {
  Symbols symbols;
  const auto snapshot = read_profile(profile(list("memoryProfileSnapshots", {kSampled[1]}) + "," +
                                             list("sampledTimelineSnapshots", kSampled) + "," + kRows),
                                     symbols);
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  EXPECT_TRUE(snapshot->is_heap_profile);
  EXPECT_THAT(snapshot->notes, SizeIs(1));
  expect_golden("words/trace/notes_of_memory_profile.txt", snapshot->notes[0] + "\n");
  EXPECT_EQ(total_usage(*snapshot, 0).requested_bytes, 50'000U);
  EXPECT_EQ(total_usage(*snapshot, 0).live_block_count, 4U);
  const Profile live = live_profile(*snapshot, 0);
  EXPECT_EQ(site_words(symbols, live[0].stack), "stack");
  EXPECT_EQ(site_words(symbols, live[1].stack), "dense/MatMul");
  EXPECT_EQ(label_words(symbols, labels_of(*snapshot).of(live[1].stack).front()), "float[2,512]");
  const auto timelines = timelines_of_samples(*snapshot, {}, {});
  ASSERT_THAT(timelines, SizeIs(1));
  EXPECT_THAT(timelines[0].points, SizeIs(3));
  EXPECT_EQ(timelines[0].peaks.front().at.live_bytes, 50'000);
  EXPECT_THAT(timelines[0].peaks.front().sites, SizeIs(2));
}

TEST(MemoryProfile, TheMessageSaysWhatItsJsonSays) {
  const auto activity = [](unsigned field, std::uint64_t address, std::uint64_t size_bytes) {
    return bytes(field, number(1, 1) + number(2, 5) + number(3, size_bytes) + number(4, address) +
                            bytes(5, "dense/MatMul") + bytes(7, "output") + bytes(8, "float") + bytes(9, "[2,512]"));
  };
  const auto sample = [&](unsigned field, std::uint64_t time_ps, std::uint64_t heap_bytes) {
    return bytes(field, number(1, time_ps) + bytes(2, number(1, 0) + number(2, heap_bytes)) + activity(3, 1024, 512));
  };
  const std::string allocator =
      sample(1, 5'000'000, 50'000) + sample(5, 1'000'000, 10'000) + sample(5, 5'000'000, 50'000) +
      bytes(3, number(1, 0) + number(2, std::uint64_t(-1)) + number(3, 3)) +
      bytes(3, number(1, std::uint64_t(-1)) + number(2, 0) + number(3, 1)) + activity(4, 0, 48'464);
  const std::string message = bytes(1, bytes(1, "GPU_0_bfc") + bytes(2, allocator)) + number(2, 1) + number(5, 1);
  Symbols symbols;
  const auto snapshot = read_profile(message, symbols);
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  EXPECT_EQ(total_usage(*snapshot, 0).requested_bytes, 50'000U);
  EXPECT_THAT(snapshot->samples, SizeIs(2));
  const std::string moment = bytes(1, bytes(1, "GPU_0_bfc") + bytes(2, std::string("\x0a\x02\x12\x05", 4)));
  EXPECT_THAT(error_of(message.substr(0, message.size() - 5)), HasSubstr("at byte 0: "));
  EXPECT_THAT(error_of(moment), HasSubstr("at byte 17: "));
  expect_golden("words/trace/cut_memory_profiles.txt",
                error_of(message.substr(0, message.size() - 5)) + "\n" + error_of(moment) + "\n");
}

TEST(MemoryProfile, OfXProfHasItsTableAndItsSamples) {
  Symbols symbols;
  auto input = open_trace(tests_dir() + "/fixtures/xprof/long.memory_profile.json.gz");
  ASSERT_TRUE(input);
  const auto snapshot = read_trace(std::move(*input), symbols);
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  EXPECT_TRUE(snapshot->is_heap_profile);
  EXPECT_THAT(snapshot->samples, SizeIs(1000));
  const auto timelines = timelines_of_samples(*snapshot, {}, {});
  ASSERT_THAT(timelines, SizeIs(1));
  EXPECT_EQ(static_cast<std::uint64_t>(timelines[0].peaks.front().at.live_bytes),
            total_usage(*snapshot).requested_bytes);
  EXPECT_EQ(site_words(symbols, live_profile(*snapshot).front().stack), "unused preallocated device memory");
}

TEST(MemoryProfile, ErrorsSayWhatWasExpected) {
  std::string refused;
  for (const std::string& bad :
       {std::string(R"({"memoryProfilePerAllocator":{},"numHosts":1})"),
        std::string(R"({"memoryProfilePerAllocator":3})"), std::string(R"({"memoryProfilePerAllocator":{)"),
        profile(R"("memoryProfileSnapshots":[{"timeOffsetPs":"soon"}])"),
        profile(list("sampledTimelineSnapshots", kSampled) + "," + kRows),
        profile(list("sampledTimelineSnapshots", kSampled)),
        profile(list("memoryProfileSnapshots", {kSampled[1], kSampled[0], kSampled[2]}) + "," + kRows, "GPU_0_bfc", 0)})
    refused += error_of(bad) + "\n";
  expect_golden("words/trace/refused_memory_profiles.txt", refused);
}

TEST(MemoryProfile, IsRecognisedByItsMap) {
  EXPECT_EQ(recognise_trace(profile(""), "x")->name, "memory-profile");
  EXPECT_EQ(recognise_trace(bytes(1, bytes(1, "GPU_0_bfc") + bytes(2, std::string(3000, ' '))), "x")->name,
            "memory-profile");
  // 123 bytes: '{' after a line feed.
  EXPECT_EQ(recognise_trace(bytes(1, bytes(1, "GPU_0_bfc") + bytes(2, std::string(110, ' '))), "x")->name,
            "memory-profile");
  EXPECT_EQ(recognise_trace(R"({"memory_used_mb": 5})", "x.jsonl"), nullptr);
}

}  // namespace
}  // namespace vramtrack::trace::test
