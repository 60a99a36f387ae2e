// XProf's time profiles (XSpace), made by hand: the result of their allocations and frees.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "golden.hpp"
#include "paths.hpp"
#include "proto_writer.hpp"
#include "trace/compare.hpp"
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

/// Ids of an event's values, in the plane below.
enum Id : unsigned { allocator = 1, in_use, size, address, op, region, type, shape, lifetime_peak, ordinal, matmul };

std::string whole(Id id, std::uint64_t value) {
  return bytes(4, number(1, id) + number(4, value));
}
std::string text(Id id, const std::string& value) {
  return bytes(4, number(1, id) + bytes(5, value));
}

struct Event {
  std::uint64_t time_ps = 0;
  bool is_alloc = true;
  std::uint64_t at = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t in_use_bytes = 0;
  std::string of = "GPU_0_bfc";
  std::string more;
};
std::string event(const Event& e) {
  return bytes(4, number(1, e.is_alloc ? 7 : 8) + number(2, e.time_ps) + text(allocator, e.of) +
                      whole(size, e.size_bytes) + whole(address, e.at) + whole(in_use, e.in_use_bytes) + e.more);
}
std::string line(const std::vector<Event>& events, std::uint64_t begin_ns = 1'000'000) {
  std::string out = bytes(2, "thread") + number(3, begin_ns);
  for (const Event& each : events) out += event(each);
  return bytes(3, out);
}
std::string entry(unsigned field, unsigned key, const std::string& name) {
  return bytes(field, number(1, key) + bytes(2, number(1, key) + bytes(2, name)));
}
std::string space(const std::string& lines) {
  std::string plane = number(1, 2) + bytes(2, "/host:CPU") + lines;
  plane += entry(4, 7, "MemoryAllocation") + entry(4, 8, "MemoryDeallocation");
  for (const auto& [id, name] : {std::pair(allocator, "allocator_name"), std::pair(in_use, "bytes_allocated"),
                                 std::pair(size, "allocation_bytes"), std::pair(address, "addr"),
                                 std::pair(op, "tf_op"), std::pair(region, "region_type"), std::pair(type, "data_type"),
                                 std::pair(shape, "shape"), std::pair(lifetime_peak, "peak_bytes_in_use"),
                                 std::pair(ordinal, "device_ordinal"), std::pair(matmul, "dense/MatMul")})
    plane += entry(5, id, name);
  return bytes(1, plane);
}

Result<Snapshot> read_space(const std::string& bytes, Symbols& symbols) {
  auto input = open_trace({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, "x.xplane.pb");
  if (!input) return fail(input.error());
  EXPECT_EQ(input->format->name, "xplane");
  return read_trace(std::move(*input), symbols);
}
std::string error_of(const std::string& bytes) {
  Symbols symbols;
  const auto snapshot = read_space(bytes, symbols);
  return snapshot ? "none" : snapshot.error().message;
}
std::vector<std::string> frames(const Symbols& symbols, StackId stack) {
  std::vector<std::string> out;
  for (const FrameId frame : symbols.stack(stack)) out.emplace_back(symbols.name(frame));
  return out;
}

TEST(XPlane, AnAllocationHasItsOperationRegionTypeAndShape) {
  Symbols symbols;
  const std::string names =
      bytes(4, number(1, op) + number(7, matmul)) + text(region, "output") + whole(type, 1) + text(shape, "[128,256]");
  const auto snapshot = read_space(space(line({{5, true, 0x100, 131072, 131072, "GPU_1_bfc", names}})), symbols);
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  EXPECT_THAT(snapshot->notes, IsEmpty());
  ASSERT_THAT(snapshot->blocks, SizeIs(1));
  EXPECT_EQ(snapshot->segments.front().device, 1U);
  EXPECT_THAT(frames(symbols, snapshot->blocks.front().stack), ElementsAre("dense/MatMul", "output", "GPU_1_bfc"));
  EXPECT_EQ(label_words(symbols, labels_of(*snapshot).of(snapshot->blocks.front().stack).front()), "float[128,256]");
  EXPECT_EQ(site_words(symbols, snapshot->blocks.front().stack), "dense/MatMul");
}

TEST(XPlane, ThreadsAreReadInTheOrderOfTime) {
  Symbols symbols;
  // The second line begins 1 us later: its free at 0 is between the address's two allocations.
  const auto snapshot = read_space(space(line({{0, true, 0x100, 4096, 4096}, {2'000'000, true, 0x100, 512, 512}}) +
                                         line({{0, false, 0x100, 4096, 0}}, 1'001'000)),
                                   symbols);
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  EXPECT_THAT(snapshot->notes, IsEmpty());
  EXPECT_EQ(total_usage(*snapshot, 0).requested_bytes, 512U);
  EXPECT_EQ(snapshot->traces.front().event_count, 3U);
  EXPECT_EQ(snapshot->traces.front().first_time_us, 1000);
  EXPECT_EQ(snapshot->traces.front().last_time_us, 1002);
}

TEST(XPlane, WhatWasLiveBeforeFollowsFromTheAllocatorsCount) {
  Symbols symbols;
  // 10,000 bytes at the beginning, 4,096 of which appear in the free.
  const auto snapshot = read_space(
      space(line({{1, true, 0x100, 500, 10'500}, {2, false, 0x900, 4096, 6'404}, {3, true, 0x200, 96, 6'500}})),
      symbols);
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  EXPECT_THAT(snapshot->notes, IsEmpty());
  EXPECT_EQ(total_usage(*snapshot, 0).requested_bytes, 6'500U);
  const Timeline timeline = timeline_of(*snapshot, 0, symbols);
  EXPECT_EQ(timeline.begin.live_bytes, 10'000);
  EXPECT_EQ(timeline.end.live_bytes, 6'500);
  EXPECT_EQ(timeline.mismatch_count, 0U);
  EXPECT_EQ(timeline.peaks.front().at.live_bytes, 10'500);
  const auto replayed = replay_events(*snapshot, symbols);
  ASSERT_THAT(replayed, SizeIs(1));
  std::int64_t live_bytes = 0;
  for (const StackBytes& held : replayed.front().sites()) live_bytes += held.bytes;
  EXPECT_EQ(live_bytes, 6'500);
  EXPECT_EQ(replayed.front().live().unknown_frees(), 0U);
}

TEST(XPlane, EventsThatWereNotRecordedAreNoted) {
  Symbols symbols;
  const auto snapshot = read_space(space(line({{1, true, 0x100, 512, 512},
                                               {2, true, 0x100, 1024, 1024},
                                               {3, false, 0x100, 1024, 0},
                                               {4, false, 0x100, 1024, 0, "GPU_0_bfc", whole(lifetime_peak, 1 << 30)},
                                               {5, true, 0x200, 256, 768}})),
                                   symbols);
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  expect_golden("words/trace/notes_of_xplane.txt", fmt::format("{}\n", fmt::join(snapshot->notes, "\n")));
  EXPECT_EQ(total_usage(*snapshot, 0).requested_bytes, 256U);
}

TEST(XPlane, HostAllocatorsAreMemoryOfTheHost) {
  Symbols symbols;
  auto snapshot =
      read_space(space(line({{1, true, 0x100, 512, 512}, {2, true, 0x100, 4096, 4096, "gpu_host_bfc"}})), symbols);
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  EXPECT_EQ(total_usage(*snapshot).requested_bytes, 512U);
  ASSERT_TRUE(snapshot->has_host_memory());
  snapshot->swap_host();
  EXPECT_EQ(total_usage(*snapshot).requested_bytes, 4096U);
  const auto alone = read_space(space(line({{1, true, 0x100, 512, 512, "cpu"}})), symbols);
  ASSERT_TRUE(alone) << alone.error().message;
  EXPECT_EQ(total_usage(*alone, 0).requested_bytes, 512U);
  EXPECT_THAT(alone->notes, ElementsAre(HasSubstr("memory of the host (cpu)")));
}

TEST(XPlane, AnAllocatorWithoutANameIsItsDevice) {
  Symbols symbols;
  const auto snapshot = read_space(space(line({{1, true, 0x100, 512, 512, "", whole(ordinal, 3)}})), symbols);
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  EXPECT_EQ(known_devices(*snapshot), std::vector<std::uint32_t>{3});
}

TEST(XPlane, ErrorsSayWhereAndWhatIsMissing) {
  const std::string good = space(line({{1, true, 0x100, 512, 512}}));
  std::string refused;
  for (const std::string& bad :
       {bytes(1, bytes(2, "/host:CPU")), good.substr(0, good.size() - 1), good + good.substr(0, 40),
        // within the plane, with its content starting at byte 3
        space("\x1a\x02\x22\x05"), space(line({{1, true, 0x100, std::uint64_t(-5), 0}})),
        space(line({{1, true, 0x100, 1ULL << 60, 0}})), space(line({{1, true, 0x100, 5, 5}}, 1ULL << 63))})
    refused += error_of(bad) + "\n";
  expect_golden("words/trace/refused_xplanes.txt", refused);
}

/// The memory kept in each of twelve steps by the program of tests/fixtures/xprof, in each of its files.
TEST(XPlane, OfTensorFlowNamesWhatIsKept) {
  for (const char* const name : {"train.xplane.pb", "train.memory_profile.json.gz"}) {
    Symbols symbols;
    auto input = open_trace(tests_dir() + "/fixtures/xprof/" + name);
    ASSERT_TRUE(input);
    const auto snapshot = read_trace(std::move(*input), symbols);
    ASSERT_TRUE(snapshot) << snapshot.error().message;
    EXPECT_THAT(snapshot->notes, ElementsAre(HasSubstr("(bfc_cpu_allocator_for_gpu)"))) << name;
    const Profile live = live_profile(*snapshot, 0);
    EXPECT_THAT(frames(symbols, live[0].stack), ElementsAre("Mul", "output", "bfc_cpu_allocator_for_gpu"));
    EXPECT_EQ(live[0].bytes, 12 << 19);
    EXPECT_EQ(live[0].blocks, 12);
    EXPECT_EQ(total_usage(*snapshot).requested_bytes, 8'914'176U) << "its own count";
    const Timeline timeline = timeline_of(*snapshot, 0, symbols);
    EXPECT_EQ(timeline.peaks.front().at.live_bytes, 11'535'616) << "its own count";
    EXPECT_EQ(timeline.mismatch_count, 0U);
    const auto growths = compare_devices(replay_events(*snapshot, symbols));
    ASSERT_THAT(growths, SizeIs(1));
    EXPECT_EQ(growths[0].growth.condition, Condition::leak);
    EXPECT_TRUE(growths[0].growth.is_certain);
    EXPECT_EQ(site_words(symbols, growths[0].growth.sites.front().stack), "Mul");
  }
}

TEST(XPlane, IsRecognisedByItsFirstPlane) {
  EXPECT_EQ(recognise_trace(space(""), "x")->name, "xplane");
  EXPECT_EQ(recognise_trace(bytes(1, bytes(2, "Something")), "x"), nullptr);
  EXPECT_EQ(recognise_trace(bytes(1, bytes(2, "Something")), "a/host.xplane.pb")->name, "xplane");
  EXPECT_EQ(recognise_trace("\n\n\n\nstep 3: 4096\n", "x.log"), nullptr);
}

}  // namespace
}  // namespace vramtrack::trace::test
