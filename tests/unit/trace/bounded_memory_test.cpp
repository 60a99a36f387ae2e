// Memory is bounded by the size of the file, whatever its contents: files made to need as much as possible.
#include <gmock/gmock.h>

#include <functional>

#include "heap.hpp"
#include "sample.hpp"

namespace vramtrack::trace::test {
namespace {

constexpr std::size_t kFileBytes = 4 << 20;
constexpr std::uint64_t kTimes = 16;                ///< as torch_snapshot.hpp promises
constexpr std::uint64_t kAlwaysBytes = 2ULL << 20;  ///< windows and tables that even the smallest file needs

struct Amplifier {
  const char* name;
  std::string begin;
  std::function<std::string(std::uint32_t)> item;  ///< the n-th of as many items as fill the file
  std::string end;
  const char* answer = "read";
};
void PrintTo(const Amplifier& amplifier, std::ostream* out) {
  *out << amplifier.name;
}

std::string little(std::uint32_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

/// Protocol 4. The keys are strings in the first memo entries: 0 is the top level, 1 the key, 2 its list.
std::string snapshot_of(const char* list) {
  std::string out = "\x80\x04}\x94(";
  out += std::string("\x8c") + static_cast<char>(std::string(list).size()) + list + "\x94]\x94";
  return out;
}
std::string key(const std::string& name) {
  return std::string("\x8c") + static_cast<char>(name.size()) + name;
}

const std::string kTrace = snapshot_of("device_traces") + "(]\x94(";
const std::string kTraceEnd = "eeu.";
const std::string kSegments = snapshot_of("segments") + "(";
const std::string kSegmentsEnd = "eu.";

const Amplifier kAmplifiers[] = {
    {"nothing", "\x80\x04}", [](std::uint32_t) { return std::string("N0"); }, ".", "without segments"},
    {"a_stack", "\x80\x04}", [](std::uint32_t) { return std::string("N"); }, ".", "a stack of more values"},
    {"marks", "\x80\x04}", [](std::uint32_t) { return std::string("("); }, ".", "nested more than"},
    {"lists", "\x80\x04}", [](std::uint32_t) { return std::string("]"); }, ".", "a stack of more values"},
    {"memoized_integers", "\x80\x04}", [](std::uint32_t n) { return "K" + little(n, 1) + "\x94" + "0"; }, ".",
     "without segments"},
    {"memoized_none", "\x80\x04}",
     [](std::uint32_t) {
       return std::string(
           "N\x94"
           "0");
     },
     ".", "without segments"},
    {"memoized_pairs", "\x80\x04}", [](std::uint32_t n) { return "K" + little(n, 1) + "K\1\x86\x94" + "0"; }, ".",
     "without segments"},
    {"memoized_lists", "\x80\x04}",
     [](std::uint32_t) {
       return std::string(
           "]\x94"
           "0");
     },
     ".", "without segments"},
    {"short_strings", "\x80\x04}", [](std::uint32_t n) { return "\x8c\x03" + little(n, 3) + "\x94" + "0"; }, ".",
     "without segments"},
    {"short_strings_unnamed", "\x80\x04}", [](std::uint32_t n) { return "\x8c\x03" + little(n, 3) + "0"; }, ".",
     "without segments"},
    {"segments", kSegments, [](std::uint32_t) { return "}(" + key("address") + "K\1" + key("total_size") + "K\1u"; },
     kSegmentsEnd},
    {"segments_by_reference", kSegments + "}(" + key("address") + "\x94K\1" + key("total_size") + "\x94K\1u",
     [](std::uint32_t) { return std::string("}(h\3K\1h\4K\1u"); }, kSegmentsEnd},
    {"blocks",
     kSegments + "}(" + key("address") + "K\1" + key("total_size") + "K\1" + key("blocks") + "](}" + key("size") +
         "\x94K\1s",
     [](std::uint32_t) { return std::string("}h\3K\1s"); }, "eu" + kSegmentsEnd},
    {"events", kTrace + "}" + key("action") + "\x94" + key("alloc") + "\x94s",
     [](std::uint32_t) { return std::string("}h\4h\5s"); }, kTraceEnd},
    {"events_with_frames", kTrace + "}" + key("frames") + "\x94]}" + key("line") + "\x94K\1sas",
     [](std::uint32_t n) { return std::string("}h\4]}h\5J") + little(n, 4) + "sas"; }, kTraceEnd},
    {"events_with_metadata",
     kTrace + "}(" + key("action") + "\x94" + key("alloc") + "\x94" + key("addr") + "\x94K\1" + key("user_metadata") +
         "\x94K\1u",
     [](std::uint32_t n) { return "}(h\4h\5h\6J" + little(n, 4) + "h\7\x8c\4" + little(n, 4) + "u"; }, kTraceEnd,
     "read"},
    {"annotated_addresses",
     kTrace + "}(" + key("action") + "\x94" + key("annotate") + "\x94" + key("addr") + "\x94K\1" +
         key("user_metadata") + "\x94K\1u",
     [](std::uint32_t n) { return "}(h\4h\5h\6J" + little(n, 4) + "h\7h\5u"; }, kTraceEnd},
    {"pools", kTrace + "}(" + key("action") + "\x94" + key("alloc") + "\x94" + key("pool_id") + "\x94Nu",
     [](std::uint32_t n) { return "}(h\4h\5h\6J" + little(n, 4) + "J" + little(n, 4) + "\x86u"; }, kTraceEnd},
    {"host_events", snapshot_of("host_traces") + "(}" + key("action") + "\x94" + key("alloc") + "\x94s",
     [](std::uint32_t) { return std::string("}h\3h\4s"); }, kSegmentsEnd},
    {"annotations", snapshot_of("external_annotations") + "(}" + key("name") + "\x94h\3s",
     [](std::uint32_t) { return std::string("}h\3h\3s"); }, kSegmentsEnd},
};

class BoundedMemory : public ::testing::TestWithParam<Amplifier> {};

TEST_P(BoundedMemory, ByTheFile) {
  std::string file = GetParam().begin;
  for (std::uint32_t n = 0; file.size() < kFileBytes; ++n) file += GetParam().item(n);
  file += GetParam().end;
  const HeapPeak peak;
  Symbols symbols;
  const auto snapshot = read(file, symbols);
  EXPECT_THAT(snapshot ? "read" : snapshot.error().message, ::testing::HasSubstr(GetParam().answer));
  RecordProperty("ratio", std::to_string(static_cast<double>(peak.bytes()) / static_cast<double>(file.size())));
  EXPECT_LE(peak.bytes(), kAlwaysBytes + kTimes * file.size());
}

INSTANTIATE_TEST_SUITE_P(All, BoundedMemory, ::testing::ValuesIn(kAmplifiers),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace vramtrack::trace::test
