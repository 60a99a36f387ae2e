// CPython's tables and texts, made by hand.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "probe/python_layout.hpp"
#include "probe/python_lines.hpp"
#include "probe/python_text.hpp"

namespace vramtrack::probe {
namespace {

std::string memory;
bool read_here(std::uint64_t address, void* into, std::size_t bytes) {
  if (address < 4096 || address - 4096 > memory.size() || bytes > memory.size() - (address - 4096)) return false;
  std::memcpy(into, memory.data() + (address - 4096), bytes);
  return true;
}

std::uint32_t line(LineTable kind, std::vector<unsigned char> table, std::int64_t at, std::int32_t first = 10) {
  memory.assign(table.begin(), table.end());
  return find_line(read_here, kind, 4096, table.size(), at, first);
}

TEST(PythonLines, PairsOf38) {
  // Two bytes of line 10, four of 12, six of 7, and one entry that only carries a long address increment.
  const std::vector<unsigned char> table = {2, 2, 4, 0xfb, 255, 0, 1, 100};
  EXPECT_EQ(line(LineTable::pairs, table, 0), 10U);
  EXPECT_EQ(line(LineTable::pairs, table, 2), 12U);
  EXPECT_EQ(line(LineTable::pairs, table, 5), 12U);
  EXPECT_EQ(line(LineTable::pairs, table, 6), 7U);
  EXPECT_EQ(line(LineTable::pairs, table, 261), 7U);
  EXPECT_EQ(line(LineTable::pairs, table, 262), 107U);
  EXPECT_EQ(line(LineTable::pairs, {}, 4), 10U);
  EXPECT_EQ(line(LineTable::pairs, {2, 0x80, 2}, 4), 10U) << "before line 1: the first line";
}

TEST(PythonLines, RangesOf310) {
  const std::vector<unsigned char> table = {4, 1, 2, 0x80, 6, 0xfe};  // 0-4: 11, 4-6: none, 6-12: 9
  EXPECT_EQ(line(LineTable::ranges, table, 0), 11U);
  EXPECT_EQ(line(LineTable::ranges, table, 4), 10U) << "no line: the function's first";
  EXPECT_EQ(line(LineTable::ranges, table, 6), 9U);
  EXPECT_EQ(line(LineTable::ranges, table, 12), 10U) << "past the end";
  EXPECT_EQ(line(LineTable::ranges, {4}, 0), 10U);
}

TEST(PythonLines, LocationsOf311) {
  // A short form (line 10, 2 units), a one-line form (+1, 1 unit), a long form (+300), one without a line, one of -5.
  const std::vector<unsigned char> table = {0x81, 0x12, 0xd8, 1, 2, 0xf0, 0x58, 0x09, 0, 1, 1, 0xf8, 0xe8, 0x0b};
  EXPECT_EQ(line(LineTable::locations, table, 0), 10U);
  EXPECT_EQ(line(LineTable::locations, table, 3), 10U);
  EXPECT_EQ(line(LineTable::locations, table, 4), 11U);
  EXPECT_EQ(line(LineTable::locations, table, 6), 311U);
  EXPECT_EQ(line(LineTable::locations, table, 8), 10U) << "no line: the function's first";
  EXPECT_EQ(line(LineTable::locations, table, 10), 306U);
  EXPECT_EQ(line(LineTable::locations, table, 12), 10U) << "past the end";
  EXPECT_EQ(line(LineTable::locations, {0, 0, 0}, 0), 10U);
  EXPECT_EQ(line(LineTable::locations, {0xf0, 0x7f, 0x7f, 0x7f}, 0, 3), 3U) << "cut off";
}

TEST(PythonLines, MemoryThatIsGone) {
  memory.clear();
  for (const LineTable kind : {LineTable::pairs, LineTable::ranges, LineTable::locations})
    EXPECT_EQ(find_line(read_here, kind, 1, ~std::uint64_t{0}, 1 << 30, 5), 5U);
}

/// A str object with `kind` bytes per character at 4096.
std::string text_of(unsigned kind, bool is_ascii, const std::string& data, std::size_t room = 100,
                    std::uint64_t length = ~std::uint64_t{0}) {
  const PythonLayout& layout = *layout_of(12);
  if (length == ~std::uint64_t{0}) length = data.size() / kind;
  memory.assign(is_ascii ? layout.ascii_text : layout.other_text, '\0');
  std::memcpy(memory.data() + kTextLength, &length, sizeof length);
  const std::uint32_t state = kind << 2U | 1U << 5U | (is_ascii ? 1U << 6U : 0);
  std::memcpy(memory.data() + kTextState, &state, sizeof state);
  memory += data;
  std::string into(room, '\0');
  into.resize(read_text(read_here, layout, 4096, into.data(), into.size()));
  return into;
}

TEST(PythonText, OfEachKind) {
  EXPECT_EQ(text_of(1, true, "train.py"), "train.py");
  EXPECT_EQ(text_of(1, false, "gr\xfc\xdf"), "grüß");
  EXPECT_EQ(text_of(2, false, std::string("\xe5\x65\x2c\x67", 4)), "日本");
  EXPECT_EQ(text_of(4, false, std::string("\x00\xf6\x01\x00", 4)), "\U0001f600");
  EXPECT_EQ(text_of(2, false, std::string("\x80\xdc", 2)), "\uFFFD") << "a byte of a path that is no UTF-8";
}

TEST(PythonText, IsCutAtACharacter) {
  EXPECT_EQ(text_of(1, false, "\xfc\xfc\xfc", 5), "üü");
  EXPECT_EQ(text_of(1, true, std::string(1000, 'x'), 300), std::string(300, 'x'));
}

TEST(PythonText, OfGarbageIsNone) {
  EXPECT_EQ(text_of(3, false, "abc"), "");
  EXPECT_EQ(text_of(1, true, "abc", 100, 1 << 20), "") << "longer than what is there";
  EXPECT_EQ(text_of(1, true, "abc", 100, ~std::uint64_t{0} - 5), "");
}

TEST(PythonLayouts, OfEachVersion) {
  EXPECT_EQ(layout_of(7), nullptr);
  EXPECT_EQ(layout_of(13), nullptr);
  for (int minor = 8; minor <= 12; ++minor) EXPECT_EQ(layout_of(minor)->minor, minor);
}

TEST(PythonLayouts, ThatDescribeThemselves) {
  std::uint64_t words[kDebugOffsetWords] = {};
  std::memcpy(words, "xdebugpy", 8);
  words[1] = 0x030d00f0;
  for (std::size_t i = 3; i < kDebugOffsetWords; ++i) words[i] = i;
  PythonLayout layout;
  EXPECT_EQ(read_layout(words, kDebugOffsetWords, layout), nullptr);
  EXPECT_EQ(layout.thread_frame, 184 / 8) << "thread_state.current_frame, 3.13.0";
  EXPECT_EQ(layout.frame_owner, 264 / 8);
  EXPECT_EQ(layout.code_file, 280 / 8);
  EXPECT_EQ(layout.code_bytes, 344 / 8);
  words[1] = 0x030e00f0;
  EXPECT_EQ(read_layout(words, kDebugOffsetWords, layout), nullptr);
  EXPECT_EQ(layout.thread_frame, 208 / 8) << "3.14";
  EXPECT_EQ(layout.code_bytes, 384 / 8);
  words[2] = 1;
  EXPECT_STREQ(read_layout(words, kDebugOffsetWords, layout), "this is a free-threaded Python");
  words[2] = 0;
  words[1] = 0x030f00f0;
  EXPECT_STREQ(read_layout(words, kDebugOffsetWords, layout), "this version of Python is not known");
  words[1] = 0x030d00f0;
  words[30] = 1 << 20;
  EXPECT_NE(read_layout(words, kDebugOffsetWords, layout), nullptr);
  words[0] = 0;
  EXPECT_NE(read_layout(words, kDebugOffsetWords, layout), nullptr);
}

}  // namespace
}  // namespace vramtrack::probe
