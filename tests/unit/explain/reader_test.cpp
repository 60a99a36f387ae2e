#include "explain/reader.hpp"

#include <gtest/gtest.h>

#include <string>

#include "explain/anchors.hpp"

namespace vramtrack::explain {
namespace {

constexpr std::string_view kMessage =
    "MPS backend out of memory (MPS allocated: 1.45 GB, other allocations: 7.42 GB, max "
    "allowed: 9.07 GB). Tried to allocate 563.62 MB on private pool.";

TEST(Anchors, AllAreFoundAlsoInOneAnother) {
  Anchors anchors;
  for (const char* text : {"out of memory", "memory", "of mem", "out of memory at"}) anchors.add(text);
  anchors.build();
  std::vector<Hit> hits;
  anchors.find("OUT  of\n memory at", hits);
  std::vector<std::pair<std::size_t, std::uint32_t>> found;
  for (const Hit& hit : hits) found.emplace_back(hit.end, hit.index);
  const std::vector<std::pair<std::size_t, std::uint32_t>> expected = {{12, 2}, {15, 0}, {15, 1}, {18, 3}};
  EXPECT_EQ(found, expected);
}

TEST(Reader, SaysOnWhichLine) {
  const auto messages = read_messages("one\ntwo\n\nthree " + std::string(kMessage) + "\n");
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].line, 4U);
  EXPECT_EQ(messages[0].wording->name, "torch_mps");
  EXPECT_EQ(messages[0].text, kMessage);
}

TEST(Reader, OfWordingsOverOneAnotherThatWhichTellsMost) {
  const auto messages = read_messages(
      "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 144.00 MiB on device 4: cudaMalloc failed: out of "
      "memory");
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].wording->name, "ggml_cuda");
}

TEST(Reader, PiecesOfAnySizeGiveTheSame) {
  std::string text;
  for (int i = 0; i < 40'000; ++i) {
    text += "step " + std::to_string(i) + " loss 1.234 out of\n";
    if (i % 1000 == 0) text += std::string(kMessage) + "\n\n\n";
  }
  const auto whole = read_messages(text);
  ASSERT_EQ(whole.size(), 40U);
  for (const std::size_t piece : {1U, 7U, 4096U, 1'000'000U}) {
    Reader reader;
    for (std::size_t at = 0; at < text.size(); at += piece) reader.feed(std::string_view(text).substr(at, piece));
    const auto messages = reader.finish();
    ASSERT_EQ(messages.size(), whole.size()) << piece;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      EXPECT_EQ(messages[i].line, whole[i].line);
      EXPECT_EQ(messages[i].line, i * 1003 + 2);
    }
  }
}

TEST(Reader, HoldsNoMoreThanItsShare) {
  std::string text;
  for (int i = 0; i < 10'100; ++i) text += std::string(kMessage) + "\n";
  Reader reader;
  reader.feed(text);
  EXPECT_EQ(reader.finish().size(), 10'000U);
  EXPECT_EQ(reader.dropped_count(), 100U);
}

/// Distinguishing a message from a mention costs as much as reading a thousand bytes.
TEST(Reader, OfAFloodOfMessagesWithoutFiguresTheFirstAreJudged) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "OOMKilled\n";
  text += std::string(kMessage) + "\n";  // it has figures, so it is not a mention
  for (const std::size_t piece : {std::size_t{777}, text.size()}) {
    Reader reader;
    for (std::size_t at = 0; at < text.size(); at += piece) reader.feed(std::string_view(text).substr(at, piece));
    const auto messages = reader.finish();
    EXPECT_EQ(messages.size(), 1000U);
    EXPECT_EQ(reader.dropped_count(), 99'001U);
    EXPECT_EQ(messages.back().wording->name, "torch_mps");
  }
}

TEST(Reader, BeginsThatGoNowhereCostNoMoreThanText) {
  std::string text;
  while (text.size() < 4'000'000) text += "out of memory. Tried to allocate 1 GiB (GPU 0; ";
  EXPECT_LE(read_messages(text).size(), 10'000U);
  text.clear();
  while (text.size() < 4'000'000) text += "failed to allocate ";
  EXPECT_LE(read_messages(text).size(), 10'000U);
}

}  // namespace
}  // namespace vramtrack::explain
