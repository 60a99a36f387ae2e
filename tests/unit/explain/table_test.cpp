// The tables of JAX, XLA and TensorFlow next to a message, and the conclusions from them.
#include "explain/table.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/units.hpp"
#include "explain/explanation.hpp"
#include "explain/reader.hpp"
#include "explain/render.hpp"
#include "golden.hpp"

namespace vramtrack::explain {
namespace {

Explanation explained(std::string_view text) {
  const auto explanation = explain(read_messages(text));
  EXPECT_TRUE(explanation) << text;
  return explanation.value_or(Explanation{});
}

constexpr std::string_view kTpu =
    "Compilation failure: Ran out of memory in memory space hbm. Used 41.74G of 16.00G hbm. Exceeded hbm capacity by "
    "25.74G.\n\n"
    "  Largest program allocations in hbm:\n\n"
    "  1. Size: 32.00G\n"
    "     Operator: op_type=\"FloorMod\" op_name=\"slicewise_79/cic_update/FloorMod\"\n"
    "     Shape: s32[8388608,8,4]{2,1,0:T(8,128)}\n"
    "     Unpadded size: 1.00G\n"
    "     Extra memory due to padding: 31.00G (32.0x expansion)\n"
    "     XLA label: %copy.40488 = s32[8388608,8,4]{2,1,0:T(8,128)} copy(s32[8388608,8,4] %get-tuple-element.32429)\n"
    "     Allocation type: HLO temp\n"
    "     ==========================\n\n"
    "  2. Size: 4.00G\n"
    "     Shape: f32[8388608,8]{1,0:T(8,128)}\n"
    "     Unpadded size: 256.00M\n"
    "     XLA label: %fusion.7 = f32[8388608,8] fusion(...)\n";

TEST(Tables, TheLargestAllocationsOfATpuAreNamedWithTheirPadding) {
  const Explanation e = explained(kTpu);
  EXPECT_EQ(e.cause, Cause::too_big);
  const auto& largest = e.failure().largest;
  ASSERT_EQ(largest.size(), 2U);
  EXPECT_EQ(largest[0].bytes, 32 * kGiB);
  EXPECT_EQ(largest[0].padding_bytes, 31 * kGiB);
  EXPECT_EQ(largest[0].shape, "s32[8388608,8,4]");
  EXPECT_EQ(largest[0].by, "cic_update/FloorMod");
  EXPECT_EQ(largest[1].by, "%fusion.7");
  EXPECT_NE(e.next_step.find("another shape"), std::string::npos) << e.next_step;
  EXPECT_NE(explanation_text(e, "").find("  largest"), std::string::npos);
  EXPECT_NE(explanation_json(e, "").find("\"shape\":\"f32[8388608,8]\""), std::string::npos);
}

TEST(Tables, PeakBuffersAreReadBehindTheWordsOfALogger) {
  const std::string text =
      "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4294967296 bytes.\n"
      "71(Worker pid=489) BufferAssignment stats:\n"
      "77(Worker pid=489)                  total allocation:   11.90GiB\n"
      "79(Worker pid=489) Peak buffers:\n"
      "80(Worker pid=489) \tBuffer 1:\n"
      "81(Worker pid=489) \t\tSize: 3.83GiB\n"
      "82(Worker pid=489) \t\tOperator: op_name=\"step/jit(main)/lm_head/convert_element_type[new_dtype=float32]\" "
      "source_file=\"/home/me/flax/linen/dtypes.py\" source_line=97\n"
      "83(Worker pid=489) \t\tXLA Label: convert\n"
      "84(Worker pid=489) \t\tShape: f32[250880,4096]\n"
      "85(Worker pid=489) \t\t==========================\n"
      "86(Worker pid=489)\n"
      "87(Worker pid=489) \tBuffer 2:\n"
      "88(Worker pid=489) \t\tSize: 1.91GiB\n"
      "89(Worker pid=489) \t\tEntry Parameter Subshape: f16[250880,4096]\n";
  const Explanation e = explained(text);
  const auto& largest = e.failure().largest;
  ASSERT_EQ(largest.size(), 2U);
  EXPECT_EQ(largest[0].shape, "f32[250880,4096]");
  EXPECT_EQ(largest[0].by, "lm_head/convert_element_type (dtypes.py:97)");
  EXPECT_EQ(holding_words(largest[1]), "f16[250880,4096] of an argument");
}

constexpr std::string_view kPeakBuffers =
    "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 104857600 bytes.\n"
    "Peak buffers:\n"
    "\tBuffer 1:\n"
    "\t\tSize: 3.83GiB\n"
    "\t\tOperator: op_name=\"step/dot_general\"\n"
    "\t\tShape: f32[250880,4096]\n";

/// A dump as printed by TensorFlow 2.
struct Dump {
  std::string text;
  void line(const std::string& words) {
    text += "2021-09-24 16:38:10.215837: I tensorflow/core/common_runtime/bfc_allocator.cc:1060] " + words + '\n';
  }
};

std::string failed(double asked_mib, const Dump& dump, std::string_view stats) {
  return fmt::format(
      "2021-09-24 16:38:10.0: W tensorflow/core/common_runtime/bfc_allocator.cc:457] Allocator (GPU_0_bfc) ran out of "
      "memory trying to allocate {:.2f}MiB (rounded to 1)requested by op Conv2D\n{}{}"
      "2021-09-24 16:38:11.0: W tensorflow/core/framework/op_kernel.cc:1692] OP_REQUIRES failed: RESOURCE_EXHAUSTED: "
      "OOM "
      "when allocating tensor with shape[{},256,1024] and type float on /job:localhost/device:GPU:0 by allocator "
      "GPU_0_bfc\n",
      asked_mib, dump.text, stats, asked_mib);
}

Dump dump_of(std::size_t used_chunks, const std::vector<double>& free_mib) {
  Dump dump;
  double free = 0;
  for (const double mib : free_mib) free += mib;
  const double used = static_cast<double>(used_chunks) * 10;
  dump.line("BFCAllocator dump for GPU_0_bfc");
  dump.line(
      "Bin (256): \tTotal Chunks: 0, Chunks in use: 0. 0B allocated for chunks. 0B in use in bin. 0B "
      "client-requested in use in bin.");
  dump.line(
      fmt::format("Bin (8388608): \tTotal Chunks: {}, Chunks in use: {}. {:.2f}MiB allocated for chunks. {:.2f}MiB "
                  "in use in bin. {:.2f}MiB client-requested in use in bin.",
                  used_chunks + free_mib.size(), used_chunks, used + free, used, used));
  for (std::size_t i = 0; i < used_chunks; ++i)
    dump.line(fmt::format("InUse at 43846{:05x} of size 10485760 by op {} action_count {} step 0 next {}", i,
                          i % 4 == 0 ? "MatMul" : "Conv2D", i, i + 1));
  for (const double mib : free_mib)
    dump.line(fmt::format("Free  at 4384b1b000 of size {:.0f} by op UNUSED action_count 0 step 0 next 9", mib * kMiB));
  dump.line("     Summary of in-use Chunks by size: ");
  dump.line(fmt::format("{} Chunks of size 10485760 totalling {:.2f}MiB", used_chunks, used));
  dump.line(fmt::format("Sum Total of in-use chunks: {:.2f}MiB", used));
  return dump;
}

TEST(Tables, FragmentationIsExactWhereTheAllocatorListsItsPieces) {
  const Explanation e = explained(failed(100, dump_of(200, {60, 50, 40}), ""));
  EXPECT_EQ(e.failures.size(), 1U) << "a dump of 210 lines lies between two messages of one failure";
  EXPECT_EQ(e.cause, Cause::fragmentation);
  expect_golden("words/explain/pieces.txt", explanation_text(e, ""));
  EXPECT_EQ(e.failure().figures.get(Figure::piece), 60 * kMiB);
}

TEST(Tables, XlasBuffersAndTheAllocatorsChunksAreBothNamed) {
  for (const bool is_dump_first : {true, false}) {
    const std::string dump = failed(100, dump_of(200, {60, 50, 40}), "");
    const Explanation e =
        explained(is_dump_first ? dump + std::string(kPeakBuffers) : std::string(kPeakBuffers) + dump);
    ASSERT_EQ(e.failures.size(), 1U);
    std::set<std::string_view> tables;
    for (const Holding& holding : e.failure().largest) tables.insert(holding.table);
    EXPECT_EQ(tables.size(), 2U);
    if (is_dump_first) expect_golden("words/explain/two_tables.txt", explanation_text(e, ""));
    EXPECT_NE(explanation_json(e, "").find("\"table\":\"bfc_dump\""), std::string::npos);
  }
}

TEST(Tables, WhatIsFreeInAllDecidesBetweenPiecesAndFull) {
  EXPECT_EQ(explained(failed(160, dump_of(200, {60, 50, 40}), "")).cause, Cause::full) << "160 MiB beside 2 GiB";
  EXPECT_EQ(explained(failed(260, dump_of(200, {60, 50, 40}), "")).cause, Cause::full);
  EXPECT_EQ(explained(failed(150, dump_of(200, {60, 50, 40}), "")).cause, Cause::fragmentation);
  EXPECT_EQ(explained(failed(260, dump_of(200, {}), "")).cause, Cause::full);
}

TEST(Tables, AnAllocatorThatCouldNotGrowToItsLimitHasANeighbour) {
  constexpr std::string_view kStats = "Stats: \nLimit:   8589934592\nInUse:   2097152000\nMaxInUse: 2097152000\n";
  const Explanation e = explained(failed(160, dump_of(200, {60, 50, 40}), kStats));
  EXPECT_EQ(e.cause, Cause::outside);
  EXPECT_EQ(e.failure().figures.get(Figure::allowed), 8589934592);
  expect_golden("words/explain/neighbour.txt", explanation_text(e, ""));
}

TEST(Tables, ADumpThatWasCutOffTellsWhatItShows) {
  // As in old versions, without the list: the bin that was searched shows its free piece.
  const std::string text =
      "W tensorflow/core/common_runtime/bfc_allocator.cc:275] Allocator (GPU_0_bfc) ran out of memory trying to "
      "allocate "
      "8.49GiB.  Current allocation summary follows.\n"
      "I tensorflow/core/common_runtime/bfc_allocator.cc:630] Bin (268435456):     Total Chunks: 2, Chunks in use: 1. "
      "14.59GiB allocated for chunks. 8.49GiB in use in bin. 8.49GiB client-requested in use in bin.\n"
      "I tensorflow/core/common_runtime/bfc_allocator.cc:646] Bin for 8.49GiB was 256.00MiB, Chunk State: \n"
      "I tensorflow/core/common_runtime/bfc_allocator.cc:652]   Size: 6.09GiB | Requested Size: 781.2KiB | in_use: 0, "
      "prev:   Size: 144.96MiB | Requested Size: 144.96MiB | in_use: 1\n"
      "I tensorflow/core/common_runtime/bfc_allocator.cc:665] Chunk at 0x10216400000 of size 1280\n"
      "I tensorflow/core/common_runtime/bfc_allocator.cc:665] Chunk at 0x10216400500 of size 9120000000\n";
  const Explanation e = explained(text);
  EXPECT_EQ(e.cause, Cause::full);
}

TEST(Tables, OlderListsNameTheNextChunkBeforeTheSize) {
  Dump dump;
  dump.line("InUse at 000000081C56C700 next 1151 of size 209715200");
  dump.line("Free  at 00000007F7BC7D00 next 1305 of size 104857600");
  dump.line("Free  at 00000007F8BC7D00 next 1305 of size 52428800");
  const Explanation e = explained(failed(120, dump, ""));
  EXPECT_EQ(e.cause, Cause::fragmentation) << e.because;
}

TEST(Tables, UsageByTensorIsAddedUp) {
  const std::string text =
      "OOM when allocating tensor with shape[64,2016,9,9] and type float on /device:GPU:0 by allocator GPU_0_bfc\n"
      "Current usage from device: /job:localhost/replica:0/task:0/device:GPU:0, allocator: GPU_0_bfc\n"
      "  250.78MiB from network/convolutions/conv2d_5/Conv2D\n"
      "  217.34MiB from network/convolutions/conv2d_5/Conv2D\n"
      "  192.91MiB from network/convolutions/conv2d_11/Conv2D\n"
      "  Remaining 1252 nodes with 98.80MiB\n";
  const auto e = explained(text);
  ASSERT_EQ(e.failure().largest.size(), 2U);
  EXPECT_EQ(e.failure().largest[0].count, 2U);
  EXPECT_EQ(e.failure().largest[0].by, "network/convolutions/conv2d_5/Conv2D");
}

TEST(Tables, AreTheSameHoweverTheTextIsCut) {
  const std::string text = std::string(kTpu) + failed(100, dump_of(20, {60, 50, 40}), "");
  const auto whole = read_messages(text);
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{1000}}) {
    Reader reader;
    for (std::size_t at = 0; at < text.size(); at += piece) reader.feed(std::string_view(text).substr(at, piece));
    const auto cut = reader.finish();
    ASSERT_EQ(cut.size(), whole.size());
    for (std::size_t i = 0; i < cut.size(); ++i) {
      EXPECT_EQ(cut[i].line, whole[i].line);
      EXPECT_EQ(cut[i].last_line, whole[i].last_line);
      ASSERT_EQ(cut[i].largest.size(), whole[i].largest.size());
    }
  }
}

TEST(Tables, EachBelongsToTheFailureThatItFollows) {
  const Explanation e =
      explained(failed(100, dump_of(20, {60, 50, 40}), "") + failed(130, dump_of(30, {70, 50, 40}), ""));
  ASSERT_EQ(e.failures.size(), 2U);
  EXPECT_EQ(e.failures[0].figures.get(Figure::piece), 60 * kMiB);
  EXPECT_EQ(e.failures[1].figures.get(Figure::piece), 70 * kMiB);
  EXPECT_EQ(e.failures[1].largest.front().count, 22U);
}

TEST(Tables, FarAwayBelongToNoFailure) {
  std::string text(kTpu);
  for (int i = 0; i < 200; ++i) text += "step\n";
  text +=
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 24.00 GiB "
      "of "
      "which 1.00 GiB is free.\n";
  const Explanation e = explained(text);
  ASSERT_EQ(e.failures.size(), 2U);
  EXPECT_TRUE(e.failures[1].largest.empty());
}

}  // namespace
}  // namespace vramtrack::explain
