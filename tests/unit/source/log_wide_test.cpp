// Tables found in the wild: one column per GPU, no header, the date on its own line, quoted line breaks.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>

#include "log_testing.hpp"

namespace vramtrack {
namespace {

using logtest::fixture;
using logtest::read_logs;
using logtest::read_text;
using logtest::utc;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::SizeIs;

constexpr double kTen = 1'772'359'200;  // 2026-03-01T10:00:00Z

/// `rows` lines of `line(i)` after `header`, each with its time in front.
template <class Line>
std::string timed(const std::string& header, int rows, Line line) {
  std::string text = header;
  for (int i = 0; i < rows; ++i) text += fmt::format("2026-03-01 10:{:02}:{:02}, {}\n", i / 60, i % 60, line(i));
  return text;
}

TEST(Wide, ReadsGrafanasExportAsOneSeriesAColumn) {
  const auto r = read_logs({fixture("grafana.csv")});
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 8192), Pair(kTen + 15, 8448), Pair(kTen + 30, 8704)));
  EXPECT_THAT(r.device("1"), ElementsAre(Pair(kTen, 512), Pair(kTen + 15, 512)));
}

TEST(Wide, ColumnsThatOnlyNameGpusNeedAUnit) {
  const std::string text = timed("Time,GPU 0,GPU 1\n", 5, [](int i) { return fmt::format("{}, {}", 40 + i, 90 - i); });
  EXPECT_THAT(read_text(text).error, HasSubstr("pass --unit"));
  LogOptions options = utc();
  options.unit = "GiB";
  EXPECT_EQ(read_text(text, options).device("1")[0].second, 90 * 1024);
  // Amounts in bytes cannot be anything else.
  const std::string bytes = timed("Time,gpu0\n", 5, [](int i) { return std::to_string(8589934592 + i); });
  EXPECT_EQ(read_text(bytes).device("0")[0].second, 8192);
}

TEST(Wide, ReadsLabelsOfPrometheus) {
  const auto r = read_text(
      "\"Time\",\"DCGM_FI_DEV_FB_USED{Hostname=\"\"n1\"\", gpu=\"\"0\"\"}\",\"DCGM_FI_DEV_FB_USED{Hostname=\"\"n2\"\", "
      "gpu=\"\"0\"\"}\"\n1772359200000,8123,17\n1772359215000,8124,17\n");
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("n1/0"), ElementsAre(Pair(kTen, 8123), Pair(kTen + 15, 8124)));
  EXPECT_THAT(r.device("n2/0"), SizeIs(2));
}

TEST(Wide, ReadsWandbsExportWithoutItsMinimaAndMaxima) {
  const auto r = read_logs({fixture("wandb.csv")});
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.series(), 2U);
  EXPECT_THAT(r.device("vivid-peak-12/0"), ElementsAre(Pair(0, 1000), Pair(15.02, 1100), Pair(30.04, 1200)));
  EXPECT_THAT(r.device("lr-max-3/0"), SizeIs(2));
  EXPECT_THAT(r.warnings(), Not(HasSubstr("is not read")));
}

TEST(Wide, WandbsMemoryAllocatedIsAPercentage) {
  const auto r = read_text(
      "\"Step\",\"a - system.gpu.0.memoryAllocated\",\"a - system.gpu.1.memoryAllocated\"\n0,10.5,20\n1,11,20\n");
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(0, 10.5 * 1024), Pair(60, 11 * 1024)));
  EXPECT_THAT(r.device("1"), SizeIs(2));
}

TEST(Infer, ReadsIndexUtilizationUsedAndTotal) {
  std::string text;
  for (int i = 0; i < 10; ++i)
    for (int gpu = 0; gpu < 2; ++gpu)
      text += fmt::format("{}, {}, {}, {}\n", gpu, i * 13 % 50, gpu == 0 ? 8000 + i : 3, gpu == 0 ? 24576 : 8192);
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), SizeIs(10));
  EXPECT_EQ(r.device("0").back().second, 8009.0);
  EXPECT_THAT(r.warnings(), HasSubstr("growth is per reading"));
  EXPECT_EQ(r.catalog->device("1")->capacity_bytes, 8192ULL << 20);
  EXPECT_THAT(r.warnings(), HasSubstr("column 3 is read as used and column 4 as total memory in MiB"));
}

TEST(Infer, WhatRisesMoreOftenThanItFallsIsUsed) {
  const auto used = [](int i) { return 8000 + 10 * (i % 17); };  // a sawtooth: many small steps up, a few down
  const auto row = [&](int i) { return fmt::format("0, {}, {}", used(i), 24000 - used(i)); };
  const auto turned = [&](int i) { return fmt::format("0, {}, {}", 24000 - used(i), used(i)); };
  for (const auto& r : {read_text(timed("", 40, row)), read_text(timed("", 40, turned))}) {
    ASSERT_EQ(r.error, "");
    EXPECT_EQ(r.device("0").back().second, used(39));
    EXPECT_EQ(r.catalog->device("0")->capacity_bytes, 24000ULL << 20);
    EXPECT_THAT(r.warnings(), HasSubstr("rises more often than it falls, so it is read as used"));
  }
}

TEST(Infer, UsedMemoryRisesWithTimeNotWithTheRows) {
  const auto newest_first = [](int i) { return fmt::format("0, {}, {}", 16000 - 10 * (39 - i), 8000 + 10 * (39 - i)); };
  std::string text;
  for (int i = 0; i < 40; ++i) text += fmt::format("2026/03/01 10:00:{:02}.000, {}\n", 39 - i, newest_first(i));
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.device("0").back().second, 8000 + 390);
}

TEST(Infer, UsedAndFreeThatDoNotTellThemselvesAreRefused) {
  const auto r = read_text(
      timed("", 40, [](int i) { return fmt::format("0, {}, {}", 8000 + 10 * (i % 2), 16000 - 10 * (i % 2)); }));
  EXPECT_THAT(r.error, HasSubstr("columns 3 and 4 add up to a constant"));
  EXPECT_THAT(r.error, HasSubstr("put the header line back"));
  EXPECT_THAT(r.error, HasSubstr("--line-pattern"));
}

TEST(Infer, AnErrorNamesARowAndNotTheDateBeforeIt) {
  std::string text;
  for (int i = 0; i < 40; ++i)
    text += fmt::format("2026-03-01 10:00:{:02}\n97, {}, {}, 24000\n", i, 8000 + 10 * (i % 2), 16000 - 10 * (i % 2));
  const auto r = read_text(text);
  EXPECT_THAT(r.error, HasSubstr("rows such as '97, 8000, 16000, 24000'"));
  EXPECT_THAT(r.error,
              HasSubstr("column 4 is the total, and columns 2 and 3 add up to it: either column 2 is the used"));
}

TEST(Infer, OfThreeThatAddUpTheTotalIsTheCapacity) {
  constexpr std::uint64_t kReserved_mib = 450;
  for (const auto& order : {std::array{0U, 1U, 2U}, {0U, 2U, 1U}, {1U, 2U, 0U}, {2U, 1U, 0U}})
    for (const char* unit : {" MiB", ""}) {
      const auto r = read_text(timed("", 40, [&](int i) {
        const int used = 4000 + 20 * i;
        const std::array amounts{24576, used, 24576 - static_cast<int>(kReserved_mib) - used};
        return fmt::format("{}{}, {}{}, {}{}", amounts[order[0]], unit, amounts[order[1]], unit, amounts[order[2]],
                           unit);
      }));
      ASSERT_EQ(r.error, "");
      EXPECT_EQ(r.device("0").back().second, 4000 + 20 * 39);
      EXPECT_EQ(r.catalog->device("0")->capacity_bytes, 24576ULL << 20);
    }
}

TEST(Infer, OfThreeThatStayTheUsedMemoryIsAsked) {
  const auto r = read_text(timed("", 40, [](int /*i*/) { return "24576 MiB, 20126 MiB, 4000 MiB"; }));
  EXPECT_THAT(r.error,
              HasSubstr("column 2 is the total, and columns 3 and 4 add up to it: either column 3 is the used and "
                        "column 4 the free memory, or column 3 the free and column 4 the used"));
}

TEST(Infer, ATotalBesideAnIdleGpuIsNotItsFreeMemory) {
  const auto r =
      read_text(timed("", 40, [](int i) { return fmt::format("{} MiB, 24576 MiB", 4000 + (i * i % 7 < 3 ? 1 : 0)); }));
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.device("0").back().second, 4001);
  EXPECT_EQ(r.catalog->device("0")->capacity_bytes, 24576ULL << 20);
}

TEST(Infer, PassesOverAPowerBesideTheTotal) {
  const auto r =
      read_text(timed("", 20, [](int i) { return fmt::format("45, {}, 24576, {:.2f}", 8000 + i, 120 + i * 0.37); }));
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.device("0").back().second, 8019);
}

TEST(Infer, ATotalThatChangesWasNone) {
  // Used and free memory, constant in the first 256 KiB.
  std::string text;
  for (int i = 0; text.size() < 300'000; ++i) text += fmt::format("{}, 0, 300, 24276\n", 1772359200 + i);
  for (int i = 0; i < 8000; ++i) text += fmt::format("{}, 0, {}, {}\n", 1772459200 + i, 301 + i, 24275 - i);
  EXPECT_THAT(read_text(text).error, HasSubstr("a changed total"));
}

TEST(Infer, DoesNotGuessWhatMayBeAMeasure) {
  // A temperature beside a constant clock.
  EXPECT_THAT(read_text(timed("", 20, [](int i) { return fmt::format("{}, 1500", 40 + i % 5); })).error,
              HasSubstr("put the header line back"));
  // Two columns that could both be the used memory.
  EXPECT_THAT(read_text(timed("", 20, [](int i) { return fmt::format("{}, 24576, {}", 4000 + i, 1000 + i); })).error,
              HasSubstr("put the header line back"));
}

TEST(DatedRows, ReadsRowsAfterALineWithTheirDate) {
  const auto r = read_logs({fixture("dated_rows.log")});
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 8123), Pair(kTen + 5, 8223), Pair(kTen + 10, 8323)));
  EXPECT_THAT(r.device("1"), SizeIs(3));
  EXPECT_EQ(r.notes.skipped_lines, 0U);
}

TEST(DatedRows, ReadsHeadersAndSingleColumnsToo) {
  const auto header = read_text(
      "==== 2026-03-01 10:00:00 ====\nindex, memory.used [MiB]\n0, 10 MiB\n==== 2026-03-01 10:00:05 ====\nindex, "
      "memory.used [MiB]\n0, 11 MiB\n");
  ASSERT_EQ(header.error, "");
  EXPECT_THAT(header.device("0"), ElementsAre(Pair(kTen, 10), Pair(kTen + 5, 11)));
  const auto single = read_text("2026-03-01 10:00:00\n8123\n2026-03-01 10:00:05\n8124\n2026-03-01 10:00:10\n8125\n");
  ASSERT_EQ(single.error, "");
  EXPECT_THAT(single.device("0"), ElementsAre(Pair(kTen, 8123), Pair(kTen + 5, 8124), Pair(kTen + 10, 8125)));
}

TEST(DatedRows, TellsGpusApartByTheirPlaceAfterTheDate) {
  std::string text;
  for (int i = 0; i < 5; ++i) text += fmt::format("2026-03-01 10:00:{:02}\n{}, 24576\n300, 24576\n", i, 8000 + i);
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), SizeIs(5));
  EXPECT_EQ(r.device("1").back(), std::make_pair(kTen + 4, 300.0));
}

TEST(Quotes, AFieldMayHaveLineBreaks) {
  const auto r = read_text(
      "time,\"Note,\nof the day\",\"VRAM used\n(MiB)\"\n0,\"a\nb, \"\"c\"\"\n\",5\r\n1,d,6\r\n2,\"e\r\nf\",7\r\n");
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(0, 5), Pair(1, 6), Pair(2, 7)));
  EXPECT_EQ(r.notes.skipped_lines, 0U);
}

TEST(Quotes, AQuoteThatNeverEndsCostsItsLineOnly) {
  std::string text = "time,note,used_mib\n";
  for (int i = 0; i < 60; ++i) text += fmt::format("{},{},{}\n", i, i == 3 ? "\"5 inch" : "x", 100 + i);
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), SizeIs(testing::Ge(59U)));
}

TEST(Csv, MemoryMaxIsACapacityWhereItIsConstantAndAboveAllUse) {
  const auto capacity = read_text("time,Memory Used (MiB),Memory Max (MiB)\n0,100,8192\n1,200,8192\n");
  ASSERT_EQ(capacity.error, "");
  EXPECT_EQ(capacity.catalog->device("0")->capacity_bytes, 8192ULL << 20);
  const auto peak = read_text("time,Memory Used (MiB),Memory Max (MiB)\n0,100,100\n1,200,200\n2,150,200\n");
  EXPECT_FALSE(peak.catalog->device("0")->capacity_bytes.has_value());
}

}  // namespace
}  // namespace vramtrack
