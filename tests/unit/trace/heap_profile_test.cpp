// Heap profiles: written by JAX (tests/fixtures/jax), exported by vramtrack, and made by hand.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "golden.hpp"
#include "paths.hpp"
#include "proto_writer.hpp"
#include "trace/exports.hpp"
#include "trace/format.hpp"
#include "trace/render/render.hpp"
#include "trace/usage.hpp"

namespace vramtrack::trace::test {
namespace {

/// Two types, one function f at a.py:7, and the samples.
std::string profile(const std::vector<std::string>& samples, const std::string& unit = "bytes") {
  std::string out = bytes(1, number(1, 1) + number(2, 2)) + bytes(1, number(1, 3) + number(2, 4));
  for (const std::string& sample : samples) out += bytes(2, sample);
  out += bytes(4, number(1, 1) + bytes(4, number(1, 1) + number(2, 7)));
  out += bytes(5, number(1, 1) + number(2, 5) + number(4, 6));
  for (const std::string& text :
       {std::string(), std::string("allocations"), std::string("count"), std::string("space"), unit, std::string("f"),
        std::string("a.py"), std::string("device"), std::string("TPU_3(process=0,(0,0,0,0))"), std::string("kind"),
        std::string("executable")})
    out += bytes(6, text);
  return out;
}
std::string sample(std::uint64_t count, std::uint64_t size, const std::string& labels = "") {
  return bytes(1, varint(1)) + bytes(2, varint(count) + varint(size)) + labels;
}

Result<Snapshot> read_bytes(const std::string& text, Symbols& symbols) {
  auto input = open_trace({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, "x.prof");
  if (!input) return fail(input.error());
  EXPECT_EQ(input->format->name, "heap-profile");
  return read_trace(std::move(*input), symbols);
}
std::string error_of(const std::string& text) {
  Symbols symbols;
  const auto snapshot = read_bytes(text, symbols);
  return snapshot ? "none" : snapshot.error().message;
}
Snapshot jax(const std::string& name, Symbols& symbols) {
  auto input = open_trace(tests_dir() + "/fixtures/jax/" + name);
  EXPECT_TRUE(input);
  auto snapshot = read_trace(std::move(*input), symbols);
  EXPECT_TRUE(snapshot) << snapshot.error().message;
  return std::move(*snapshot);
}

TEST(HeapProfile, OfJaxNamesTheLines) {
  Symbols symbols;
  const Snapshot snapshot = jax("step3.prof", symbols);
  const Usage usage = total_usage(snapshot, 0);
  EXPECT_EQ(usage.requested_bytes, 11U << 20);
  EXPECT_EQ(usage.live_block_count, 4U);
  bool has_line = false;
  for (const StackBytes& held : live_profile(snapshot, 0))
    for (const FrameId frame : symbols.stack(held.stack))
      has_line = has_line || (symbols.name(frame) == "layer" && symbols.file(frame) == "/home/me/train.py" &&
                              symbols.frame(frame).line == 4);
  EXPECT_TRUE(has_line);
}

TEST(HeapProfile, TwoShowWhatGrew) {
  Symbols symbols;
  const Snapshot first = jax("step3.prof", symbols);
  const Snapshot second = jax("step8.prof", symbols);
  EXPECT_EQ(total_usage(second, 0).requested_bytes - total_usage(first, 0).requested_bytes, 5U << 20);
}

TEST(HeapProfile, DevicesAndCompiledCodeAreTheirLabels) {
  Symbols symbols;
  const std::string device = bytes(3, number(1, 7) + number(2, 8));
  const std::string kind = bytes(3, number(1, 9) + number(2, 10));
  const auto snapshot = read_bytes(profile({sample(2, 301, device), sample(1, 40, kind)}), symbols);
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  EXPECT_EQ(known_devices(*snapshot), (std::vector<std::uint32_t>{0, 3}));
  EXPECT_EQ(total_usage(*snapshot, 3).requested_bytes, 301U);
  EXPECT_EQ(total_usage(*snapshot, 3).live_block_count, 2U);
  EXPECT_EQ(symbols.name(symbols.stack(live_profile(*snapshot, 0).front().stack).front()), "(compiled code)");
}

TEST(HeapProfile, WhatIsExportedIsReadAgain) {
  Symbols symbols;
  const Snapshot snapshot = jax("step8.prof", symbols);
  const Profile live = live_profile(snapshot, 0);
  const auto exported = pprof(live, symbols);
  ASSERT_TRUE(exported);
  const auto again = read_bytes(*exported, symbols);
  ASSERT_TRUE(again) << again.error().message;
  const Profile same = live_profile(*again, 0);
  ASSERT_EQ(same.size(), live.size());
  for (std::size_t i = 0; i < live.size(); ++i) {
    EXPECT_EQ(same[i].stack, live[i].stack);
    EXPECT_EQ(same[i].bytes, live[i].bytes);
    EXPECT_EQ(same[i].blocks, live[i].blocks);
  }
}

TEST(HeapProfile, ErrorsSayWhatIsMissing) {
  const std::string good = profile({sample(1, 64)});
  std::string refused;
  for (const std::string& bad : {profile({sample(1, 64)}, "nanoseconds"), profile({sample(1, 1ULL << 60)}),
                                 good + "\x32\x7f"
                                        "cut",
                                 profile({bytes(1, varint(1)) + bytes(2, varint(1))})})
    refused += error_of(bad) + "\n";
  expect_golden("words/trace/refused_heap_profiles.txt", refused);
  for (const char* cut : {"\x32\x7f", "\x32", "\x8a"})  // after the length, after the tag, and within the tag
    EXPECT_NE(error_of(good + cut).find("is the profile complete?"), std::string::npos);
}

TEST(HeapProfile, ManyBlocksAreOneEachStack) {
  Symbols symbols;
  const auto snapshot = read_bytes(profile({sample(1ULL << 40, 1ULL << 41)}), symbols);
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->blocks.size(), 1U);
  EXPECT_EQ(snapshot->notes.size(), 1U);
}

TEST(HeapProfile, IsRecognisedByItsTypes) {
  EXPECT_NE(recognise_trace(profile({}), "x"), nullptr);
  EXPECT_EQ(recognise_trace("\n\n\n\nstep 3: 4096\n", "x.log"), nullptr);
  EXPECT_EQ(recognise_trace("\n\x04step", "x.log"), nullptr);
}

}  // namespace
}  // namespace vramtrack::trace::test
