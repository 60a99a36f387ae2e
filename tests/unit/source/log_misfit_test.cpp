// Tables that do not fit their interpretation: they are refused with the reason, never read shifted.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "log_testing.hpp"
#include "source/log/columns.hpp"

namespace vramtrack {
namespace {

using logtest::read_text;
using testing::HasSubstr;
using testing::SizeIs;

/// `rows` lines of `line(i)` after `header`, each with its time in front.
template <class Line>
std::string timed(const std::string& header, int rows, Line line) {
  std::string text = header;
  for (int i = 0; i < rows; ++i) text += fmt::format("2026-03-01 10:{:02}:{:02}, {}\n", i / 60, i % 60, line(i));
  return text;
}

TEST(Misfit, RowsWithMoreFieldsThanTitlesAreRefused) {
  const auto r =
      read_text(timed("timestamp, memory.used [MiB]\n", 20, [](int i) { return fmt::format("0, {}", 1000 + i); }));
  EXPECT_THAT(r.error, HasSubstr("has 3 fields, and the header has 2"));
  EXPECT_THAT(r.error, HasSubstr("used memory in column 2 'memory.used [MiB]'"));
  EXPECT_THAT(r.error, HasSubstr("line 2"));
}

TEST(Misfit, RowsWithFewerFieldsThanTitlesAreRefused) {
  const auto r = read_text(timed("timestamp, index, memory.used [MiB], temperature\n", 20,
                                 [](int i) { return fmt::format("{} MiB, 40", 1000 + i); }));
  EXPECT_THAT(r.error, HasSubstr("has 3 fields, and the header has 4"));
}

TEST(Misfit, EmptyFieldsAtTheEndOfALineAreNone) {
  EXPECT_THAT(read_text("time,used_mib\n0,5,\n1,6,\n").device("0"), SizeIs(2));
  EXPECT_THAT(read_text("time,used_mib,\n0,5\n1,6\n").device("0"), SizeIs(2));
}

TEST(Misfit, OneRowThatDoesNotFitIsNamedAndNotRead) {
  const auto r = read_text(timed("time,gpu_index,used_mib\n", 40, [](int i) {
    return i == 7 ? std::string("0, 7, 99999") : fmt::format("0, {}", 1000 + i);
  }));
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.series(), 1U);
  EXPECT_THAT(r.device("0"), SizeIs(39));
  EXPECT_EQ(r.notes.skipped_lines, 1U);
}

TEST(Misfit, ALogOfTwoKindsOfRowsIsRefused) {
  const auto r = read_text(timed("time,gpu_index,used_mib\n", 40, [](int i) {
    return i % 2 == 0 ? fmt::format("0, {}", 1000 + i) : std::string("1234, python, 800, x");
  }));
  EXPECT_THAT(r.error, HasSubstr("keep one kind of row"));
}

TEST(Misfit, TheRefusalComesAlsoWhereTheHeadFitsAndTheRestDoesNot) {
  std::string text = "time,gpu_index,used_mib\n";
  int s = 0;
  for (; text.size() < 300'000; ++s) text += fmt::format("{},0,{}\n", s, 1000 + s % 7);
  for (const int end = 2 * s; s < end; ++s) text += fmt::format("{},0,5,{}\n", s, 1000);
  text += fmt::format("{},0,1000\n", s);
  EXPECT_THAT(read_text(text).error, HasSubstr("keep one kind of row"));
}

TEST(Misfit, ALogThatEndsWithRowsOfAnotherLayoutIsRefused) {
  const auto log = [](int other) {
    return timed("time,gpu_index,used_mib\n", 600, [other](int i) {
      return i < 600 - other ? fmt::format("0, {}", 1000 + i) : fmt::format("0, {}, 45, 300", 1000 + i);
    });
  };
  const auto refused = read_text(log(60));
  EXPECT_THAT(refused.error, HasSubstr("60 of the lines are not rows"));
  EXPECT_THAT(refused.error, HasSubstr("line 542: "));
  EXPECT_THAT(refused.error, HasSubstr("has 5 fields, and the header has 3"));
  // A few such rows, or rows that are followed by fitting ones, are broken lines.
  EXPECT_EQ(read_text(log(5)).notes.skipped_lines, 5U);
  const auto again = read_text(log(60) + "2026-03-01 10:10:00, 0, 1600\n");
  EXPECT_EQ(again.error, "");
  EXPECT_EQ(again.notes.skipped_lines, 60U);
}

TEST(Misfit, ErrorsOfTheToolInPlaceOfReadingsAreNoMisfit) {
  std::string text =
      timed("timestamp, index, memory.used [MiB]\n", 20, [](int i) { return fmt::format("0, {}", 1000 + i); });
  for (int i = 0; i < 60; ++i) text += "Unable to determine the device handle for GPU 0000:01:00.0: GPU is lost.\n";
  const auto r = read_text(text);
  EXPECT_EQ(r.error, "");
  EXPECT_THAT(r.samples, SizeIs(20));
}

TEST(Misfit, UseFarAboveTheTotalIsRefused) {
  // The titles are swapped.
  const auto r = read_text(timed("timestamp, memory.total [MiB], memory.used [MiB]\n", 20,
                                 [](int i) { return fmt::format("{} MiB, 24576 MiB", 1000 + i); }));
  EXPECT_THAT(r.error, HasSubstr("used memory above the total"));
}

TEST(Misfit, AMeasureTitledGpuIsNoIndex) {
  const auto r = read_text(timed("timestamp,gpu,memory_used_mib\n", 40,
                                 [](int i) { return fmt::format("{}, {}", i * i * 7 % 13, 1000 + i); }));
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), SizeIs(40));
  EXPECT_THAT(r.warnings(), HasSubstr("does not number GPUs"));
}

TEST(Misfit, AConstantZeroIsNoIndexWhereAReadingHasSeveralRows) {
  std::string text;
  for (int s = 0; s < 10; ++s)
    for (int gpu = 0; gpu < 2; ++gpu)
      text += fmt::format("2026/03/01 10:00:{:02}.000, 0, {}, 24576\n", s, gpu == 0 ? 8000 + s : 300);
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), SizeIs(10));
  EXPECT_EQ(r.device("1").back().second, 300);
}

TEST(Misfit, RowsOfDmonMustHaveTheColumnsOfTheirHeader) {
  // The header of another selection of columns.
  std::string text = "# gpu     fb   bar1\n# Idx     MB     MB\n";
  for (int i = 0; i < 10; ++i) text += fmt::format("    0     63     40    {}      5\n", 1000 + i);
  EXPECT_THAT(read_text(text).error, HasSubstr("has 5 columns, and the header has 3"));
}

TEST(Misfit, RowsOfSeveralGpusInTurnWithoutTimeAndIdAreRefused) {
  std::string one;
  std::string two;
  for (int i = 0; i < 60; ++i) {
    one += fmt::format("0, {}, 24576\n", 8000 + 10 * i);
    two += fmt::format("0, {}, 24576\n", i % 2 == 0 ? 8000 + 10 * i : 300);
  }
  EXPECT_THAT(read_text(one).device("0"), SizeIs(60));
  EXPECT_THAT(read_text(two).error, HasSubstr("between 2 GPUs"));
  const std::string titles = "utilization.gpu [%], memory.used [MiB], memory.total [MiB]\n";
  EXPECT_THAT(read_text(titles + two).error, HasSubstr("between 2 GPUs"));
}

TEST(BehavesLikeIndex, TellsGpusFromMeasures) {
  using Rows = std::vector<std::vector<std::string_view>>;
  EXPECT_TRUE(behaves_like_index(Rows{{"t", "0"}, {"t", "1"}, {"u", "0"}, {"u", "1"}}, 1, 0));
  EXPECT_TRUE(behaves_like_index(Rows{{"1", "0"}, {"2", "0"}, {"1", "3"}, {"2", "3"}}, 1, 0));
  EXPECT_TRUE(behaves_like_index(Rows{{"1", "0"}, {"2", "0"}, {"3", "0"}}, 1, 0));
  EXPECT_FALSE(behaves_like_index(Rows{{"1", "0"}, {"1", "0"}, {"2", "0"}}, 1, 0));
  EXPECT_FALSE(behaves_like_index(Rows{{"1", "3"}, {"2", "7"}, {"3", "7"}, {"4", "9"}, {"5", "3"}, {"6", "9"}}, 1, 0));
  EXPECT_FALSE(behaves_like_index(Rows{{"1", "41"}, {"2", "41"}, {"3", "42"}, {"4", "42"}, {"5", "43"}}, 1, 0));
  EXPECT_FALSE(behaves_like_index(Rows{{"1", "0.5"}, {"2", "1"}}, 1, 0));
}

}  // namespace
}  // namespace vramtrack
