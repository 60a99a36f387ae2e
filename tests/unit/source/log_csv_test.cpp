// CSV logs: nvidia-smi's own and those of other programs.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>

#include "log_testing.hpp"
#include "source/log/columns.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtest::read_logs;
using logtest::read_text;
using logtest::utc;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::SizeIs;

constexpr double kTen = 1'772'359'200;  // 2026-03-01T10:00:00Z

TEST(QueryGpu, ReadsInterleavedGpusByUuid) {
  const auto r = read_logs({logtest::fixture("query_gpu.csv")});
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.formats, ElementsAre("query-gpu"));
  const std::string a = "GPU-aaaaaaaa-0000-0000-0000-000000000000";
  const std::string b = "GPU-bbbbbbbb-0000-0000-0000-000000000001";
  EXPECT_THAT(r.device(a), ElementsAre(Pair(kTen + 0.101, 1000), Pair(kTen + 1.101, 1010), Pair(kTen + 2.101, 1020)));
  // [N/A] gives no sample: a missing value is not zero.
  EXPECT_THAT(r.device(b), ElementsAre(Pair(kTen + 0.104, 2000), Pair(kTen + 2.104, 2020)));
  EXPECT_EQ(r.notes.skipped_lines, 0U);
  const DeviceInfo* info = r.catalog->device(b);
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->index, 1);
  EXPECT_EQ(info->name, "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(info->capacity_bytes, 81920ULL << 20);
  EXPECT_FALSE(r.catalog->clock_is_relative);
}

TEST(QueryGpu, HowBusyTheGpuIsIsAFactBesideTheMemory) {
  const auto r = read_text(
      "timestamp, index, utilization.gpu [%], utilization.memory [%], memory.used [MiB], memory.total [MiB]\n"
      "2026/03/01 10:00:00.000, 0, 37 %, 3 %, 1000 MiB, 8000 MiB\n"
      "2026/03/01 10:00:01.000, 0, [N/A], 3 %, 1010 MiB, 8000 MiB\n"
      "2026/03/01 10:00:02.000, 0, 100 %, 3 %, 1020 MiB, 8000 MiB\n");
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), SizeIs(3));
  const auto busy = r.raw(Metric::device_busy, "0");
  EXPECT_THAT(busy, ElementsAre(3700U, 10'000U));
}

TEST(Csv, HowBusyEachGpuIsStandsBesideItsMemory) {
  const auto r = read_text(
      "time,gpu0_mem_used_mib,gpu0_util_pct,gpu1_mem_used_mib,gpu1_util_pct\n"
      "2026-03-01T10:00:00Z,1000,10,2000,20\n"
      "2026-03-01T10:00:01Z,1001,11,2001,21\n"
      "2026-03-01T10:00:02Z,1002,12,2002,22\n");
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.raw(Metric::device_busy, "0"), ElementsAre(1000U, 1100U, 1200U));
  EXPECT_THAT(r.raw(Metric::device_busy, "1"), ElementsAre(2000U, 2100U, 2200U));
}

TEST(Csv, AShareThatIsCalledARatioIsOneUnlessItExceedsOne) {
  const auto r = read_text(
      "time,gpu,DCGM_FI_DEV_FB_USED_BYTES,DCGM_FI_DEV_GPU_UTIL_RATIO\n"
      "2026-03-01T10:00:00Z,0,1048576000,0.37\n"
      "2026-03-01T10:00:01Z,0,1048576000,1\n"
      "2026-03-01T10:00:02Z,0,1048576000,37\n");
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.raw(Metric::device_busy, "0"), ElementsAre(3700U, 10'000U, 3700U));
}

/// Amounts as spreadsheets write them in many languages.
TEST(Csv, DotsBetweenThousandsAreNoFractions) {
  const auto german = read_text(
      "Zeit;GPU;Speicher belegt (MB);Speicher gesamt (MB)\n"
      "2026-03-01 10:00:00;0;950;24.564\n"
      "2026-03-01 10:00:01;0;8.123;24.564\n"
      "2026-03-01 10:00:02;0;12.001;24.564\n");
  ASSERT_EQ(german.error, "");
  EXPECT_THAT(german.device("0"), ElementsAre(Pair(kTen, 950), Pair(kTen + 1, 8123), Pair(kTen + 2, 12'001)));
  EXPECT_EQ(german.catalog->device("0")->capacity_bytes, 24'564ULL << 20);
  const auto fractions = read_text(
      "time;gpu;memory used (GiB);memory total (GiB)\n"
      "2026-03-01 10:00:00;0;8.000;24.000\n"
      "2026-03-01 10:00:01;0;9.500;24.000\n");
  ASSERT_EQ(fractions.error, "");
  EXPECT_THAT(fractions.device("0"), ElementsAre(Pair(kTen, 8192), Pair(kTen + 1, 9728)));
  const auto mib = read_text(
      "time;gpu;memory.used [MiB];memory.total [MiB]\n"
      "2026-03-01 10:00:00;0;512.125;24576.000\n"
      "2026-03-01 10:00:01;0;513.000;24576.000\n");
  ASSERT_EQ(mib.error, "");
  EXPECT_THAT(mib.device("0"), ElementsAre(Pair(kTen, 512.125), Pair(kTen + 1, 513)));
}

TEST(Csv, WhatNoMachineHasIsNoReading) {
  const auto r = read_text(
      "time,gpu,memory.used [MiB]\n"
      "2026-03-01T10:00:00Z,0,1000\n"
      "2026-03-01T10:00:01Z,0,3000000000000\n"
      "2026-03-01T10:00:02Z,0,1002\n");
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 1000), Pair(kTen + 2, 1002)));
  EXPECT_EQ(r.notes.skipped_lines, 1U);
}

TEST(Columns, TitlesOfHowBusyAGpuIs) {
  for (const char* title : {"utilization.gpu [%]", "gpu_util", "GPU-Util", "gpu_utilization_pct", "system.gpu.0.gpu",
                            "gpu usage %", "GPU utilization (%)"})
    EXPECT_EQ(classify_column(title).role, ColumnRole::busy) << title;
  for (const char* title : {"utilization.memory [%]", "gpu_mem_util", "utilization.encoder [%]", "cpu_util", "gpu"})
    EXPECT_NE(classify_column(title).role, ColumnRole::busy) << title;
}

TEST(QueryGpu, ReadsAnyOrderOfColumnsAndNoUnits) {
  const auto r = read_text(
      "memory.free [MiB], memory.used [MiB], pci.bus_id, timestamp\r\n"
      "7000, 1000, 00000000:0A:00.0, 2026/03/01 10:00:00.000\r\n"
      "6990, 1010, 00000000:0A:00.0, 2026/03/01 10:00:01.000\r\n");
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("00000000:0a:00.0"), ElementsAre(Pair(kTen, 1000), Pair(kTen + 1, 1010)));
  // No total: used + free.
  EXPECT_EQ(r.catalog->device("00000000:0a:00.0")->capacity_bytes, 8000ULL << 20);
}

TEST(QueryGpu, CapacityStaysUnknownOrIsTheOneGiven) {
  const std::string text = "timestamp, memory.used [MiB]\n2026/03/01 10:00:00.000, 5 MiB\n";
  EXPECT_FALSE(read_text(text).catalog->device("0")->capacity_bytes.has_value());
  LogOptions options = utc();
  options.capacity_bytes = 24ULL << 30;
  EXPECT_EQ(read_text(text, options).catalog->device("0")->capacity_bytes, 24ULL << 30);
}

/// `rows` seconds from kTen on, with the total of each second from `total_mib`; "" is not a value.
template <class Total>
std::string log_with_total(int rows, Total total_mib) {
  std::string text = "timestamp, index, memory.used [MiB], memory.total [MiB]\n";
  for (int i = 0; i < rows; ++i)
    text += fmt::format("2026/03/01 10:{:02}:{:02}.000, 0, {} MiB, {}\n", i / 60, i % 60, 1000 + i, total_mib(i));
  return text;
}

TEST(QueryGpu, AChangeOfCapacityTravelsWithTheSamples) {
  const auto r = read_text(log_with_total(600, [](int i) { return i < 300 ? "12000 MiB" : "24576 MiB"; }));
  ASSERT_EQ(r.error, "");
  // The whole log is parsed before the first sample is judged; information from a later row must not be used by then.
  EXPECT_EQ(r.catalog->device("0")->capacity_bytes, 12000ULL << 20);
  ASSERT_THAT(r.events, testing::SizeIs(1));
  EXPECT_EQ(r.events[0].kind, Event::Kind::capacity);
  EXPECT_EQ(r.events[0].device_id, "0");
  EXPECT_EQ(r.events[0].capacity_bytes, 24576ULL << 20);
  EXPECT_EQ(r.events[0].text, "");
  EXPECT_DOUBLE_EQ(seconds_between(Timestamp{}, r.events[0].time), kTen + 300);
}

TEST(QueryGpu, ACapacityThatIsLearntLaterIsAnEventToo) {
  const auto r = read_text(log_with_total(20, [](int i) { return i < 7 ? "[N/A]" : "12000 MiB"; }));
  EXPECT_FALSE(r.catalog->device("0")->capacity_bytes.has_value());
  ASSERT_THAT(r.events, testing::SizeIs(1));
  EXPECT_EQ(r.events[0].capacity_bytes, 12000ULL << 20);
  EXPECT_DOUBLE_EQ(seconds_between(Timestamp{}, r.events[0].time), kTen + 7);
}

TEST(QueryGpu, ChangesOfCapacityComeInOrderOfTime) {
  // One series after another, each with a change of its own, the later one first in the file.
  std::string text = "series,t_s,mem_used_mib,mem_total_mib\n";
  for (const auto& [name, change] : {std::pair{"a", 50}, std::pair{"b", 20}})
    for (int i = 0; i < 100; ++i) text += fmt::format("{},{},10,{}\n", name, i, i < change ? 100 : 200);
  const auto r = read_text(text);
  ASSERT_THAT(r.events, testing::SizeIs(2));
  EXPECT_EQ(r.events[0].device_id, "b");
  EXPECT_EQ(r.events[0].time, Timestamp{std::chrono::seconds{20}});
  EXPECT_EQ(r.events[1].device_id, "a");
  EXPECT_EQ(r.events[1].time, Timestamp{std::chrono::seconds{50}});
}

TEST(QueryGpu, TheRoundingOfUsedAndFreeIsNoChangeOfCapacity) {
  std::string text = "timestamp, memory.used [MiB], memory.free [MiB]\n";
  for (int i = 0; i < 30; ++i)
    text += fmt::format("2026/03/01 10:00:{:02}.000, {} MiB, {} MiB\n", i, 100 + i, 7900 - i - i % 2);
  EXPECT_THAT(read_text(text).events, testing::SizeIs(0));
}

TEST(ComputeApps, RecognisesFrameworksByTheProcessName) {
  const auto r = read_text(
      "timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n"
      "2026/03/01 10:00:00.000, GPU-a, 11, /usr/bin/python3 -m vllm.entrypoints.api_server, 100 MiB\n"
      "2026/03/01 10:00:00.000, GPU-a, 12, ollama, 100 MiB\n"
      "2026/03/01 10:00:00.000, GPU-a, 13, /usr/bin/python3 -u /srv/train.py --data /srv/vllm, 100 MiB\n");
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.catalog->process(11, 0)->framework, "vLLM");
  EXPECT_EQ(r.catalog->process(12, 0)->framework, "Ollama");
  // A path among the arguments is neither the program's name nor evidence.
  EXPECT_EQ(r.catalog->process(13, 0)->framework, "");
  EXPECT_EQ(r.catalog->process(13, 0)->name, "python3");
}

TEST(QueryGpu, PassesOverRepeatedHeadersAndFollowsNewColumns) {
  const auto r = read_text(
      "timestamp, index, memory.used [MiB]\n2026/03/01 10:00:00.000, 0, 1 MiB\n"
      "timestamp, index, memory.used [MiB]\n2026/03/01 10:00:01.000, 0, 2 MiB\n"
      "timestamp, memory.used [MiB], index\n2026/03/01 10:00:02.000, 3 MiB, 0\n");
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 1), Pair(kTen + 1, 2), Pair(kTen + 2, 3)));
  EXPECT_EQ(r.notes.skipped_lines, 0U);
}

TEST(QueryGpu, InfersColumnsWithoutAHeader) {
  const auto r = read_text(
      "2026/03/01 10:00:00.000, 0, NVIDIA A100, 1000 MiB, 81920 MiB, 5 %\n"
      "2026/03/01 10:00:00.001, 1, NVIDIA A100, 2000 MiB, 81920 MiB, 5 %\n"
      "2026/03/01 10:00:01.000, 0, NVIDIA A100, 1100 MiB, 81920 MiB, 5 %\n"
      "2026/03/01 10:00:01.001, 1, NVIDIA A100, 2000 MiB, 81920 MiB, 5 %\n");
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.formats, ElementsAre("query-gpu"));
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 1000), Pair(kTen + 1, 1100)));
  EXPECT_EQ(r.catalog->device("1")->capacity_bytes, 81920ULL << 20);
  EXPECT_THAT(r.warnings(), HasSubstr("no header"));
}

TEST(QueryGpu, InfersASingleNumberWithoutUnits) {
  const auto r = read_text("2026/03/01 10:00:00.000, 841\n2026/03/01 10:00:01.000, 842\n");
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 841), Pair(kTen + 1, 842)));
}

TEST(QueryGpu, AsksForTheHeaderWhereValuesCannotTell) {
  const auto r = read_text(
      "2026/03/01 10:00:00.000, 1000 MiB, 7000 MiB, 8192 MiB\n2026/03/01 10:00:01.000, 1010 MiB, 6990 MiB, 8192 MiB\n");
  EXPECT_THAT(r.error, HasSubstr("put the header line back"));
}

TEST(QueryGpu, AsksWhetherAColumnThatFallsIsFreeMemory) {
  const auto log = [](auto amount) {
    std::string out;
    for (int i = 0; i < 40; ++i) out += fmt::format("2026/03/01 10:00:{:02}.000, {} MiB, 49140 MiB\n", i, amount(i));
    return out;
  };
  EXPECT_THAT(read_text(log([](int i) { return 38000 - 20 * i; })).error, HasSubstr("used or free memory?"));
  EXPECT_THAT(read_text(log([](int i) { return 8000 + 20 * i; })).device("0"), SizeIs(40));
  EXPECT_THAT(read_text(log([](int i) { return 8000 + i % 7; })).device("0"), SizeIs(40));
}

TEST(QueryGpu, TellsGpusApartByPositionWhenNothingElseDoes) {
  std::string text = "timestamp, name, memory.used [MiB]\n";
  for (int s = 0; s < 5; ++s)
    for (int gpu = 0; gpu < 2; ++gpu)
      text += "2026/03/01 10:00:0" + std::to_string(s) + ".00" + std::to_string(gpu) + ", A100, " +
              std::to_string(100 * (gpu + 1) + s) + " MiB\n";
  const auto r = read_text(text);
  EXPECT_EQ(r.series(), 2U);
  EXPECT_EQ(r.device("0").size(), 5U);
  EXPECT_EQ(r.device("1").back().second, 204);
  EXPECT_THAT(r.warnings(), HasSubstr("record index or uuid"));
}

TEST(QueryGpu, RowsBetweenTwoHeadersAreOneOfEachGpu) {
  const std::string header = "memory.used [MiB], memory.total [MiB]\n";
  const auto rows = [](int first) { return fmt::format("{} MiB, 11264 MiB\n{} MiB, 11264 MiB\n", first, first + 500); };
  std::string headers;
  for (int i = 0; i < 4; ++i) headers += header + rows(200 + i);
  const auto by_headers = read_text(headers);
  ASSERT_EQ(by_headers.error, "");
  EXPECT_THAT(by_headers.device("0"), SizeIs(4));
  EXPECT_THAT(by_headers.device("1"), SizeIs(4));
  EXPECT_EQ(by_headers.device("1").back().second, 703);
  EXPECT_THAT(by_headers.warnings(), HasSubstr("assumed to be 2 GPUs in that order"));
  // A single header starts the whole log: its rows follow one another.
  EXPECT_THAT(read_text(header + rows(200) + rows(201)).device("0"), SizeIs(4));
  // The last reading was interrupted.
  const auto cut = read_text(headers + header + "204 MiB, 11264 MiB\n");
  EXPECT_THAT(cut.device("0"), SizeIs(5));
  EXPECT_THAT(cut.device("1"), SizeIs(4));
}

TEST(QueryGpu, ADateAndATimeOfDayOnTwoLinesAreOneTime) {
  std::string text;
  for (int i = 0; i < 3; ++i) {
    text += fmt::format(
        "C:\\x>date /T \nTue 08/18/2020 \n\nC:\\x>time /T \n{:02}:44 PM\n\nmemory.total [MiB], memory.used [MiB]\n",
        3 + i);
    for (int gpu = 0; gpu < 6; ++gpu) text += fmt::format("11264 MiB, {} MiB\n", 1000 * gpu + 215 + i);
  }
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.series(), 6U);
  ASSERT_THAT(r.device("5"), SizeIs(3));
  EXPECT_EQ(r.device("0")[0], std::pair(1597765440.0, 215.0));  // 2020-08-18 15:44 UTC
  EXPECT_EQ(r.device("5")[2], std::pair(1597765440.0 + 7200, 5217.0));
}

TEST(QueryGpu, ABlockOfRowsBelowASingleDateIsOneOfEachGpu) {
  const auto r = read_text(
      "Wed Feb 26 01:50:18 PM UTC 2025\n0 %, 7042 MiB, 46068 MiB, 32, 82.53 W\n0 %, 4 MiB, 46068 MiB, 24, 32.15 W\n"
      "0 %, 4 MiB, 46068 MiB, 25, 32.64 W\n0 %, 4 MiB, 46068 MiB, 22, 23.76 W\n");
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.series(), 4U);
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(1740577818, 7042)));
  EXPECT_THAT(r.device("3"), ElementsAre(Pair(1740577818, 4)));
}

TEST(Csv, RowsOfOneMinuteAreReadingsOfOneGpuWhereTimesHaveNoSeconds) {
  std::string text = "GPU,Timestamp,Memory usage (MB),Power (W)\n";
  for (int i = 0; i < 60; ++i)
    text += fmt::format("NVIDIA GeForce RTX 4060,4/1/2026 14:{},{}.5,90\n", 30 + i / 17, 7400 + i * 7 % 50);
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.series(), 1U);
  EXPECT_EQ(r.memory_samples(), 60U);
}

TEST(Csv, RowsWithParametersAndNoTimeAreABenchmark) {
  const auto table = [](std::string_view first_title, bool comes_again) {
    std::string text = fmt::format("{},impl,context_length,memory_used_mb\n", first_title);
    int row = 0;
    for (const char* const impl : {"sdpa", "flex", "window"})
      for (int length = 128; length <= 4096; length *= 2)
        for (int i = 0; i < 10; ++i, ++row)
          text += fmt::format("{},{},{},{}.5\n", row, impl, comes_again ? length : row / 10, length);
    return text;
  };
  EXPECT_THAT(read_text(table("", true)).error, HasSubstr("column 3 'context_length' goes through the same 6 values"));
  EXPECT_EQ(read_text(table("step", true)).error, "");
  EXPECT_EQ(read_text(table("", false)).error, "");
}

TEST(Csv, ATitleMayBeginWithADigit) {
  const auto r = read_text(
      "Date, Fan Speed (RPM) [RPM], Memory Used [MB], 6-Pin #1 Power [W], 3VSB [V]\n"
      "2026-03-01 10:00:00, 1230, 1697, 34.5, 3.3\n2026-03-01 10:00:01, 1230, 1698, 34.5, 3.3\n");
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 1697), Pair(kTen + 1, 1698)));
}

TEST(Csv, OfTwoColumnsOfIndicesTheOneThatDiffersWithinATimeIsTaken) {
  std::string text = "timestamp,gpu,index,memory.used,memory.total\n";
  for (int s = 0; s < 6; ++s)
    for (int gpu = 0; gpu < 3; ++gpu)
      text += fmt::format("2025-09-08T17:26:{:02}+08:00,{}, 0, {}, 81559\n", 50 + s, gpu, 4 + 100 * gpu);
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.series(), 3U);
  EXPECT_THAT(r.device("2"), SizeIs(6));
  EXPECT_EQ(r.device("2").back().second, 204);
}

TEST(QueryGpu, NamesTheFirstBrokenLines) {
  std::string text = "timestamp, index, memory.used [MiB]\n";
  for (int i = 0; i < 12; ++i) text += "Unable to determine the device handle\n";
  text += "2026/03/01 10:00:00.000, 0, 1 MiB\n2026/03/01 10:00:01.000, 0, lots\n2026/03/01 10:00:0";
  logtest::Files files;
  const std::string path = files.write("broken.csv", text);
  const auto r = read_logs({path});
  EXPECT_EQ(r.samples.size(), 1U);
  EXPECT_EQ(r.notes.skipped_lines, 14U);
  ASSERT_EQ(r.notes.first_skipped.size(), 8U);
  EXPECT_THAT(r.notes.first_skipped[0], HasSubstr(path + ":2: "));
}

TEST(QueryGpu, DistrustsALastLineThatWasCut) {
  const std::string head = "timestamp, index, memory.used [MiB]\n2026/03/01 10:00:00, 0, 1200\n";
  EXPECT_EQ(read_text(head + "2026/03/01 10:00:01, 0, 12").samples.size(), 1U);
  EXPECT_EQ(read_text(head + "2026/03/01 10:00:01, 0, 1201").samples.size(), 2U);
  EXPECT_EQ(read_text(head + "2026/03/01 10:00:01").notes.skipped_lines, 1U);
}

TEST(QueryGpu, CountsRoundsWhereThereIsNoClock) {
  LogOptions options = utc();
  options.interval_s = 10;
  options.start = Timestamp{std::chrono::seconds{static_cast<std::int64_t>(kTen)}};
  const auto r = read_text("index, memory.used [MiB]\n0, 1 MiB\n1, 2 MiB\n0, 3 MiB\n1, 4 MiB\n", options);
  EXPECT_THAT(r.device("1"), ElementsAre(Pair(kTen, 2), Pair(kTen + 10, 4)));
  EXPECT_EQ(r.notes.warnings.size(), 0U);
}

TEST(ComputeApps, ReadsNamesWithCommasAndEndsProcesses) {
  const auto r = read_logs({logtest::fixture("compute_apps.csv")});
  EXPECT_THAT(r.formats, ElementsAre("compute-apps"));
  const std::string b = "GPU-bbbbbbbb-0000-0000-0000-000000000001";
  EXPECT_THAT(r.of(Metric::process_used, b, 4002), ElementsAre(Pair(kTen + 0.501, 900)));
  const ProcessInfo* process = r.catalog->process(4002, 0);
  ASSERT_NE(process, nullptr);
  EXPECT_EQ(process->command, "/opt/my tool, v2/run");
  EXPECT_EQ(process->name, "run");
}

std::string apps(int from, int to, const std::string& rest) {
  std::string text;
  for (int s = from; s < to; ++s)
    text += "2026/03/01 10:0" + std::to_string(s / 60) + ":" + (s % 60 < 10 ? "0" : "") + std::to_string(s % 60) +
            ".000, " + rest + "\n";
  return text;
}

TEST(ComputeApps, EndsAProcessThatIsNoLongerListed) {
  std::string text = "timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n";
  for (int s = 0; s < 20; ++s) {
    text += apps(s, s + 1, "GPU-a, 11, stays, 5 MiB");
    if (s < 5) text += apps(s, s + 1, "GPU-a, 12, first, 7 MiB");
    if (s > 12) text += apps(s, s + 1, "GPU-a, 12, second, 9 MiB");
  }
  const auto r = read_text(text);
  ASSERT_EQ(r.events.size(), 1U);
  EXPECT_EQ(r.events[0].kind, Event::Kind::process_ended);
  EXPECT_EQ(r.events[0].pid, 12U);
  EXPECT_EQ(r.events[0].device_id, "GPU-a");
  EXPECT_NEAR(seconds_between(Timestamp{}, r.events[0].time), kTen + 8, 1.01);
  // The same pid with another name is another process.
  EXPECT_EQ(r.of(Metric::process_used, "GPU-a", 12, 0).size(), 5U);
  EXPECT_EQ(r.of(Metric::process_used, "GPU-a", 12, 1).size(), 7U);
  EXPECT_EQ(r.catalog->process(12, 1)->name, "second");
}

TEST(ComputeApps, APauseOfTheLoggerEndsNoProcess) {
  const std::string header = "timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n";
  std::string text = header;
  for (int s : {0, 1, 2, 3, 4, 300, 301, 302}) {
    text += apps(s, s + 1, "GPU-a, 11, one, 5 MiB");
    text += apps(s, s + 1, "GPU-a, 12, two, 7 MiB");
  }
  EXPECT_EQ(read_text(text).events.size(), 0U);
}

TEST(ComputeApps, InfersColumnsWithoutAHeader) {
  const auto r = read_text(
      "2026/03/01 10:00:00.000, GPU-a, 4001, /usr/bin/python3, 600 MiB\n2026/03/01 10:00:01.000, GPU-a, 4001, "
      "/usr/bin/python3, 610 MiB\n");
  EXPECT_THAT(r.formats, ElementsAre("compute-apps"));
  EXPECT_EQ(r.of(Metric::process_used, "GPU-a", 4001).size(), 2U);
}

TEST(Csv, SplitsSeriesByAnyId) {
  const auto r =
      read_text("series,t_s,mem_used_mib,mem_total_mib\nrun/a,0.00,10,100\nrun/b,0.00,20,101\nrun/a,15.5,11.5,100\n");
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.formats, ElementsAre("csv"));
  EXPECT_THAT(r.device("run/a"), ElementsAre(Pair(0, 10), Pair(15.5, 11.5)));
  EXPECT_TRUE(r.catalog->clock_is_relative);
  EXPECT_EQ(r.catalog->device("run/b")->capacity_bytes, 101ULL << 20);
}

TEST(Csv, KeepsTextIdsAsTheyAre) {
  const auto r = read_text("t_s,gpu,mem_used_mib\n0,00800b6d,1\n0,cuda:1,2\n0,007,3\n");
  EXPECT_EQ(r.device("00800b6d").size(), 1U);
  EXPECT_EQ(r.device("1").size(), 1U);
  EXPECT_EQ(r.device("007").size(), 1U);
}

TEST(Csv, SortsALogThatListsOneSeriesAfterAnother) {
  std::string text = "gpu,t_s,used_mib\n";
  for (const char* gpu : {"a", "b", "c"})
    for (int i = 0; i < 200; ++i)
      text += std::string(gpu) + "," + std::to_string(i * 30) + "," + std::to_string(i) + "\n";
  const auto r = read_text(text);
  EXPECT_EQ(r.samples.size(), 600U);
  EXPECT_TRUE(r.in_order());
  EXPECT_EQ(r.device("c").back(), std::make_pair(199 * 30.0, 199.0));
  EXPECT_EQ(r.warnings(), "");
}

TEST(Csv, SortsSuchALogEvenWhenItsFirstSeriesFillsTheHead) {
  std::string text = "gpu,t_s,used_mib\n";
  for (const char* gpu : {"a", "b"})
    for (int i = 0; i < 30'000; ++i)
      text += std::string(gpu) + "," + std::to_string(i) + "," + std::to_string(i % 977) + "\n";
  const auto r = read_text(text);
  EXPECT_EQ(r.samples.size(), 60'000U);
  EXPECT_TRUE(r.in_order());
}

TEST(Csv, ReadsUnitsFromTitleValueAndOption) {
  EXPECT_EQ(read_text("time_s,vram_gb\n0,1.5\n1,2\n").device("0")[0].second, 1536);
  EXPECT_EQ(read_text("t_s,gpu_mb\n0,100\n").device("0")[0].second, 100);
  EXPECT_EQ(read_text("elapsed,used_bytes\n0,1048576\n").device("0")[0].second, 1);
  EXPECT_EQ(read_text("t,used\n0,3 GiB\n").device("0")[0].second, 3072);
  const auto guessed = read_text("t,mem\n0,2097152000\n");
  EXPECT_EQ(guessed.device("0")[0].second, 2000);
  EXPECT_THAT(guessed.warnings(), HasSubstr("bytes are assumed"));
  LogOptions options = utc();
  options.unit = "GB";
  EXPECT_DOUBLE_EQ(read_text("t,used\n0,3\n", options).device("0")[0].second, 3 * 1024.0);
  options.unit = "mb";
  EXPECT_DOUBLE_EQ(read_text("t,used\n0,3\n", options).device("0")[0].second, 3);
  options.unit = "megabytes";
  EXPECT_DOUBLE_EQ(read_text("t,used\n0,3\n", options).device("0")[0].second, 3e6 / 1048576.0);
  for (const char* unit : {"parsec", "TB", "TiB"}) {
    options.unit = unit;
    EXPECT_THAT(read_text("t,used\n0,3\n", options).error, HasSubstr(unit));
  }
}

TEST(Csv, PercentagesStayPercentagesUnlessTheCapacityIsGiven) {
  const std::string text = "t_s,gpu_mem_util_pct,label\n0,84,x\n300,92.5,y\n";
  const auto r = read_text(text);
  EXPECT_EQ(r.catalog->scale.unit, AmountUnit::percent);
  EXPECT_EQ(r.catalog->scale.bytes(static_cast<double>(r.samples.back().bytes)), "92.5 %");
  EXPECT_EQ(r.catalog->device("0")->capacity_bytes, Scale::kWholeBytes);
  EXPECT_EQ(r.warnings(), "");
  LogOptions options = utc();
  options.capacity_bytes = 200ULL << 30;
  const auto sized = read_text(text, options);
  EXPECT_EQ(sized.device("0")[1].second, 92.5 * 2 * 1024);
  EXPECT_TRUE(sized.catalog->scale.counts_bytes());
}

TEST(Csv, ReadsSemicolonsDecimalCommasAndQuotes) {
  const auto semicolon = read_text("Zeitpunkt;timestamp;VRAM used (MiB)\nx;2026-03-01 10:00:00;12,5\n");
  EXPECT_THAT(semicolon.device("0"), ElementsAre(Pair(kTen, 12.5)));
  const auto quoted = read_text("\"time\",\"note\",\"mem_used_mib\"\n\"2026-03-01T10:00:00Z\",\"a, b\",\"7\"\n");
  EXPECT_THAT(quoted.device("0"), ElementsAre(Pair(kTen, 7)));
  const auto tabs = read_text("date\ttime\tused_mib\n2026-03-01\t10:00:00\t7\n");
  EXPECT_THAT(tabs.device("0"), ElementsAre(Pair(kTen, 7)));
}

TEST(Csv, ReadsAColumnAGpu) {
  const auto r = read_text(
      "t_s,gpu0_mem_used_mib,gpu0_mem_total_mib,gpu1_mem_used_mib,gpu1_mem_total_mib\n0,10,100,20,200\n1,11,100,,"
      "200\n");
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(0, 10), Pair(1, 11)));
  EXPECT_THAT(r.device("1"), ElementsAre(Pair(0, 20)));
  EXPECT_EQ(r.catalog->device("1")->capacity_bytes, 200ULL << 20);
  const auto wandb = read_text(
      "_timestamp,system.gpu.0.memoryAllocatedBytes,system.gpu.1.memoryAllocatedBytes\n1781179471,1048576,2097152\n");
  EXPECT_EQ(wandb.device("1")[0].second, 2);
}

TEST(Csv, SaysWhichOfSeveralUsedColumnsItPassesOver) {
  const auto r = read_text("t_s,gpu_mem_used_mib,rss_mb,gpu_mem_other_mib\n0,10,3,4\n");
  EXPECT_EQ(r.device("0")[0].second, 10);
  EXPECT_THAT(r.warnings(), HasSubstr("'gpu_mem_other_mib' also holds used memory"));
  EXPECT_THAT(r.warnings(), Not(HasSubstr("rss_mb")));
}

TEST(Csv, IdsThatDifferWhileTimeStandsStillAreSeries) {
  std::string text = "timestamp,container,mem_used_mib\n";
  for (int reading = 0; reading < 3; ++reading)
    for (int i = 0; i < 5000; ++i) text += fmt::format("2026-03-01T10:{:02}:00Z,c{},{}\n", reading, i, 100 + i % 7);
  const auto r = read_text(text);
  EXPECT_EQ(r.series(), 5000U);
  EXPECT_THAT(r.samples, testing::SizeIs(15'000));
}

TEST(Csv, MoreSeriesThanCanBeAnalysedAreRefused) {
  const std::string head = "timestamp,gpu_uuid,pid,process_name,used_gpu_memory [MiB]\n";
  std::string living = head;
  for (int i = 0; i < 7000; ++i) living += fmt::format("2026-03-01T10:00:00Z,GPU-a,{},python,5\n", 1 + i);
  EXPECT_THAT(read_text(living).error, HasSubstr("of them at once"));
  EXPECT_THAT(read_text(living).error, HasSubstr("split the log"));
  // Processes that have ended take less, even if their memory is not known.
  for (const char* const bytes : {"5", "[N/A]"}) {
    std::string ended = head;
    for (int second = 0; second < 3000; ++second) {  // ten new ones, and ten from the previous second
      if (second == 2000) {
        EXPECT_EQ(read_text(ended).error, "");
      }
      for (int i = 0; i < 20; ++i)
        ended += fmt::format("2026-03-01T10:{:02}:{:02}Z,GPU-a,{},python,{}\n", second / 60, second % 60,
                             1 + 10 * second + i, bytes);
    }
    EXPECT_THAT(read_text(ended).error, HasSubstr("split the log")) << bytes;
  }
  std::string named = head;
  for (int i = 0; i < 40; ++i)
    named += fmt::format("2026-03-01T10:00:{:02}Z,GPU-a,{},{},5\n", i, 1 + i, std::string(900'000, 'x'));
  EXPECT_THAT(read_text(named).error, HasSubstr("KiB of names"));
}

TEST(Csv, TakesARowNumberForNoGpu) {
  std::string text = "index,timestamp,mem_used_mib\n";
  for (int i = 0; i < 40; ++i)
    text += std::to_string(i) + ",2026-03-01 10:00:" + (i < 10 ? "0" : "") + std::to_string(i) + ",5\n";
  const auto r = read_text(text);
  EXPECT_EQ(r.series(), 1U);
  EXPECT_THAT(r.warnings(), HasSubstr("numbers the rows"));
}

TEST(Csv, TakesUsedPercentOfTheTotal) {
  const auto r = read_text("time,used %,total_mib\n2026-03-01 10:00:00,10,8000\n2026-03-01 10:00:01,12.5,8000\n");
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 800), Pair(kTen + 1, 1000)));
  EXPECT_EQ(r.catalog->device("0")->capacity_bytes, 8000ULL << 20);
}

TEST(Csv, AColumnWhoseValuesArePercentagesIsOne) {
  const auto r =
      read_text("time,memory_usage,total_mib\n2026-03-01 10:00:00,10.0%,8000\n2026-03-01 10:00:01,12.5 %,8000\n");
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 800), Pair(kTen + 1, 1000)));
  EXPECT_EQ(r.notes.skipped_lines, 0U);
  const auto alone = read_text("time,memory_usage\n2026-03-01 10:00:00,10.0%\n2026-03-01 10:00:01,N/A\n");
  EXPECT_THAT(alone.device("0"), ElementsAre(Pair(kTen, 10 * 1024)));
  EXPECT_EQ(alone.catalog->scale.unit, AmountUnit::percent);
}

TEST(Csv, APercentageOfAnUnknownTotalIsMissing) {
  const auto r = read_text("time,used_pct,total_mib\n2026-03-01 10:00:00,10,N/A\n2026-03-01 10:00:01,10,8000\n");
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen + 1, 800)));
}

TEST(Csv, SaysWhichColumnIsMissing) {
  EXPECT_THAT(read_text("time,temperature\nnow,5\n").error, HasSubstr("no column of used memory"));
  EXPECT_THAT(read_text("just some prose without any table in it\n").error, HasSubstr("--input-format"));
}

TEST(Csv, TakesTheFormatItIsTold) {
  LogOptions options = utc();
  options.format = "csv";
  EXPECT_THAT(read_logs({logtest::fixture("query_gpu.csv")}, options).formats, ElementsAre("csv"));
  options.format = "excel";
  EXPECT_THAT(read_logs({logtest::fixture("query_gpu.csv")}, options).error, HasSubstr("query-gpu"));
}

TEST(Columns, ClassifiesTitles) {
  const auto role = [](std::string_view title) { return classify_column(title).role; };
  EXPECT_EQ(role("memory.used [MiB]"), ColumnRole::used);
  EXPECT_EQ(role("used_gpu_memory [MiB]"), ColumnRole::used);
  EXPECT_EQ(role("memoryAllocatedBytes"), ColumnRole::used);
  EXPECT_EQ(role("GPUMemorySizeUsed"), ColumnRole::used);
  EXPECT_EQ(role("GPUMemorySize"), ColumnRole::total);
  EXPECT_EQ(role("VRAMUsedMiB"), ColumnRole::used);
  EXPECT_EQ(role("NVMeUsed"), ColumnRole::other);
  EXPECT_EQ(role("DCGM_FI_DEV_FB_USED"), ColumnRole::used);
  EXPECT_EQ(role("utilization.memory [%]"), ColumnRole::other);
  EXPECT_EQ(role("clocks.current.memory [MHz]"), ColumnRole::other);
  EXPECT_EQ(role("util_pct"), ColumnRole::other);
  EXPECT_EQ(role("memory_util"), ColumnRole::percent);
  EXPECT_EQ(role("memory.total [MiB]"), ColumnRole::total);
  EXPECT_EQ(role("memory.free [MiB]"), ColumnRole::free);
  EXPECT_EQ(role("gpu_bus_id"), ColumnRole::pci);
  EXPECT_EQ(role("t_s"), ColumnRole::time);
  EXPECT_EQ(role("author_label"), ColumnRole::other);
  EXPECT_EQ(classify_column("vram_gb").unit_bytes, 1ULL << 30);
  EXPECT_EQ(classify_column("elapsed_ms").unit_ns, 1'000'000);
}

TEST(ReadAmount, KnowsValuesFromMissingOnesAndNonsense) {
  using logtext::Amount;
  using logtext::read_amount;
  std::uint64_t bytes = 0;
  EXPECT_EQ(read_amount("841 MiB", 1, bytes), Amount::read);
  EXPECT_EQ(bytes, 841ULL << 20);
  EXPECT_EQ(read_amount("841MiB", 1, bytes), Amount::read);
  EXPECT_EQ(read_amount("2204.5", kBytesPerMiB, bytes), Amount::read);
  EXPECT_EQ(bytes, (2204ULL << 20) + (1ULL << 19));
  for (const char* missing : {"[N/A]", "N/A", "[Not Supported]", "[Insufficient Permissions]", "", "-", "nan", "null"})
    EXPECT_EQ(read_amount(missing, 1, bytes), Amount::missing) << missing;
  for (const char* bad : {"lots", "-5", "5 parsec", "99999999999999999999999", "1e30"})
    EXPECT_EQ(read_amount(bad, kBytesPerMiB, bytes), Amount::bad) << bad;
}

TEST(Csv, WhatFramesTheReadingsOfALoopIsNoRow) {
  std::string text;
  for (int i = 0; i < 20; ++i)
    text += fmt::format(
        "2026-03-01 10:{0:02}:00\n2026/03/01 10:{0:02}:00.315, 0, 5, {1}, 24564\n2026/03/01 10:{0:02}:00.318, 1, 5, "
        "5000, "
        "24564\n----\n",
        i, 4000 + i);
  const auto r = logtest::read_text(text);
  EXPECT_EQ(r.error, "");
  EXPECT_EQ(r.device("0").size(), 20U);
  EXPECT_EQ(r.device("1").size(), 20U);
  EXPECT_EQ(r.notes.skipped_lines, 0U);
}

TEST(Csv, AGpuMayHaveAWordBeforeItsIndex) {
  for (const std::string_view name : {"1", "cuda:1", "GPU 1", "gpu1", "card1", "nvidia1", "device 1"})
    EXPECT_THAT(read_text(fmt::format("time,gpu,used_mib\n1772359200,{0},5\n1772359201,{0},6\n", name)).device("1"),
                testing::SizeIs(2))
        << name;
  EXPECT_THAT(read_text("time,gpu,used_mib\n1772359200,node1,5\n1772359201,node1,6\n").device("node1"),
              testing::SizeIs(2));
}

TEST(Csv, ANumberThatGoesWithTheIndexIsNoMachine) {
  const auto both = [](int node_of_first) {
    std::string csv = "time,device,node id,mem_used_mb\n", json;
    for (int i = 0; i < 20; ++i)
      for (int gpu = 0; gpu < 2; ++gpu) {
        const int node = i % 2 == 0 ? gpu + 1 : (gpu + node_of_first) % 2 + 1;
        csv += fmt::format("{},{},{},{}\n", 1'772'359'200 + 10 * i, gpu, node, 4000 + i);
        json += fmt::format("{{\"time\": {}, \"device\": {}, \"node id\": {}, \"mem_used_mb\": {}}}\n",
                            1'772'359'200 + 10 * i, gpu, node, 4000 + i);
      }
    return std::array{csv, json};
  };
  for (const std::string& text : both(0)) {  // rocm-smi's "Node ID"
    const auto r = read_text(text);
    ASSERT_EQ(r.error, "");
    EXPECT_THAT(r.device("0"), SizeIs(20));
    EXPECT_THAT(r.device("1"), SizeIs(20));
  }
  for (const std::string& text : both(1)) {
    const auto r = read_text(text);
    ASSERT_EQ(r.error, "");
    EXPECT_EQ(r.series(), 4U);
  }
}

}  // namespace
}  // namespace vramtrack
