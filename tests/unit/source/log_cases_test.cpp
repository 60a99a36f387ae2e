// Logs that resemble public ones: readings that lack rows, columns that seem to be an index, figures for one step of a
// program. GPUs are never merged, and a log is not refused because of one bad reading.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "log_testing.hpp"
#include "source/log/line_pattern.hpp"

namespace vramtrack {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

logtest::Reading read_case(const std::string& name, const LogOptions& options = logtest::utc()) {
  return logtest::read_logs({tests_dir() + "/fixtures/log_cases/" + name}, options);
}

TEST(LogCases, AnInterruptedReadingIsJoined) {
  const auto r = read_case("split_reading_8gpus.csv");
  ASSERT_EQ(r.error, "");
  ASSERT_EQ(r.series(), 8U);
  EXPECT_EQ(r.notes.skipped_lines, 0U);
  for (int gpu = 0; gpu < 8; ++gpu) {
    const auto its = r.device(std::to_string(gpu));
    EXPECT_EQ(its.size(), r.device("0").size()) << gpu;
    if (gpu != 3) {
      for (const auto& [time, mib] : its) EXPECT_EQ(mib, 9000 + 20 * gpu) << gpu;
    }
  }
  EXPECT_GT(r.device("3").back().second, r.device("3").front().second);
}

TEST(LogCases, MaximaOfRunsAreNoReadings) {
  logtest::Files files;
  const std::string path =
      files.write("eval.csv", "RUN,MEM_MAX,MEM_AVG\n0,2028.0,2028.0\n1,2028.0,2028.0\n2,2070.0,2061.5\n");
  const auto r = logtest::read_logs({path}, logtest::utc());
  EXPECT_THAT(r.error, HasSubstr("column 1 'RUN' differs in each"));
}

// A job's log: runs of spaces look like columns, but the line above them has fewer titles.
TEST(LogCases, FewerTitlesThanColumnsAreReadWithoutThem) {
  logtest::Files files;
  const std::string path =
      files.write("job.log",
                  "000 (1.000.000) 2026-02-01 14:06:19 Job submitted from host: <10.0.0.1:9618>\n...\n"
                  "006 (1.000.000) 2026-02-01 14:08:55 Image size of job updated: 1252116\n"
                  "\t0  -  MemoryUsage of job (MB)\n\t0  -  ResidentSetSize of job (KB)\n...\n"
                  "005 (1.000.000) 2026-02-01 14:08:55 Job terminated.\n"
                  "\t(1) Normal termination (return value 1)\n"
                  "\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Remote Usage\n"
                  "\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Local Usage\n"
                  "\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Total Remote Usage\n");
  const auto r = logtest::read_logs({path}, logtest::utc());
  EXPECT_NE(r.error, "");
}

TEST(LogCases, AReadingThatLacksARowIsLeftOutAndCounted) {
  const auto r = read_case("one_row_missing_8gpus.csv");
  ASSERT_EQ(r.error, "");
  ASSERT_EQ(r.series(), 8U);
  EXPECT_EQ(r.notes.skipped_lines, 7U);
  for (int gpu = 0; gpu < 8; ++gpu) EXPECT_THAT(r.device(std::to_string(gpu)), SizeIs(6)) << gpu;
}

TEST(LogCases, AColumnThatGoesRoundTellsGpusApartAndAConstantOneDoesNot) {
  const auto r = read_case("gpu_and_constant_index.csv");
  ASSERT_EQ(r.error, "");
  ASSERT_EQ(r.series(), 8U);
  EXPECT_EQ(r.device("0").front().second, 400);
  EXPECT_EQ(r.device("7").front().second, 1100);
}

TEST(LogCases, TemperaturesAndVoltagesOfMemoryAreNoMemory) {
  const auto r = read_case("amdsmi_metric_without_memory.csv");
  EXPECT_THAT(r.error, AllOf(HasSubstr("no column of used memory"), HasSubstr("'mem' is the temperature of the memory"),
                             HasSubstr("amd-smi metric --mem-usage")));
  EXPECT_THAT(r.error, Not(HasSubstr("no memory of its own")));
}

/// The pattern that a message suggests.
std::string suggested(const std::string& message) {
  const std::size_t begin = message.find("for example '");
  if (begin == std::string::npos) return {};
  const std::size_t from = begin + std::string("for example '").size();
  return message.substr(from, message.find('\'', from) - from);
}

TEST(LogCases, ASuggestedPatternReadsWhatItPromises) {
  const auto r = read_case("table_with_deltas.txt");
  EXPECT_THAT(r.error, HasSubstr("which reads 40 of the 40 lines"));
  LogOptions options = logtest::utc();
  options.line_pattern = suggested(r.error);
  const auto read = read_case("table_with_deltas.txt", options);
  ASSERT_EQ(read.error, "") << options.line_pattern;
  EXPECT_EQ(read.device("0").size(), 40U);
}

TEST(LogCases, BytesBehindACountedWordAreMemory) {
  const auto r = read_case("bytes_after_a_word.log");
  ASSERT_EQ(r.error, "");
  const auto used = r.device("0");
  ASSERT_THAT(used.size(), Ge(31U));
  EXPECT_NEAR(used.back().second, 37.44e9 / 1048576, 1);
}

TEST(LogCases, APatternIsObeyedWhereFiguresGoRound) {
  LogOptions options = logtest::utc();
  options.line_pattern = "start_vram: (?<used>[0-9]+) -";
  options.unit = "B";
  const auto r = read_case("nodes_of_one_gpu.log", options);
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.series(), 1U);
  EXPECT_THAT(r.device("0").size(), Ge(30U));
  EXPECT_THAT(r.warnings(), HasSubstr("assumed to be of one GPU"));
}

TEST(LogCases, UsedMemoryOfAStageIsNotThatOfTheGpu) {
  const auto r = read_case("avail_and_usage_of_a_stage.log");
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.warnings(), HasSubstr("add up to one total"));
  EXPECT_NEAR(r.device("0").back().second, (110.2 - 9.8) * 1024, 1);
  LogOptions options = logtest::utc();
  options.capacity_bytes = 141ULL << 30;
  const auto read = read_case("avail_and_usage_of_a_stage.log", options);
  ASSERT_EQ(read.error, "");
  EXPECT_NEAR(read.device("0").front().second, (141 - 110.2) * 1024, 1);
  EXPECT_NEAR(read.device("0").back().second, (141 - 9.8) * 1024, 1);
}

/// `text` as a log.
logtest::Reading read_text(const std::string& text, const std::string& name = "a.log") {
  logtest::Files files;
  return logtest::read_logs({files.write(name, text)}, logtest::utc());
}

TEST(LogCases, LinesThatShowTwoLevelsAreThoseOfOneGpu) {
  const auto r = read_case("nodes_of_one_gpu.log");
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.series(), 1U);
  EXPECT_THAT(r.device("0"), SizeIs(60));
  EXPECT_THAT(r.warnings(), AllOf(HasSubstr("assumed to be of one GPU"), Not(HasSubstr("3 GPUs"))));
}

TEST(LogCases, FiguresThatRepeatWithoutATimeAreNotSaidToBeOfSeveralGpus) {
  std::string text;
  for (int i = 0; i < 60; ++i)
    text += fmt::format("vram used: {}\n", i % 3 == 0 ? 8600000 : i % 3 == 1 ? 990000000 : 190000000);
  EXPECT_THAT(read_text(text).error, AllOf(HasSubstr("the same 3 values "), Not(HasSubstr("3 GPUs"))));
}

TEST(LogCases, AListOfAnotherLengthIsLeftOutAndCounted) {
  std::string text;
  for (int i = 0; i < 60; ++i)
    text += fmt::format("2026-03-01 10:{:02}:00 VRAM used: [{}, {}{}] MB\n", i, 2000 + 60 * i, 7000 + i * 7 % 5,
                        i == 30 ? ", 12000" : "");
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.series(), 2U);
  EXPECT_EQ(r.notes.skipped_lines, 1U);
  EXPECT_THAT(r.device("0"), SizeIs(59));
  EXPECT_EQ(r.device("0").back().second, 2000 + 60 * 59);
}

TEST(LogCases, ALineWithoutTheIdOfTheOthersIsLeftOutAndCounted) {
  std::string text;
  for (int i = 0; i < 40; ++i)
    for (int gpu = 0; gpu < 3; ++gpu)
      text += fmt::format("2026-03-01 10:{:02}:00 {}VRAM used: {} MB\n", i,
                          i == 20 && gpu == 1 ? std::string() : fmt::format("tray {} ", (gpu + i) % 3),
                          2000 + 5000 * ((gpu + i) % 3) + 10 * i);
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.series(), 3U);
  EXPECT_EQ(r.notes.skipped_lines, 1U);
  EXPECT_EQ(r.device("2").back().second, 12000 + 390);
}

TEST(LogCases, AMeasureThatGoesRoundIsNoId) {
  std::string text;
  for (int i = 0; i < 40; ++i)
    for (int gpu = 0; gpu < 3; ++gpu)
      text += fmt::format("2026-03-01 10:{:02}:00 temp {} VRAM used: {} MB\n", i, 41 + gpu, 2000 + 5000 * gpu + 10 * i);
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("2"), SizeIs(40));
}

TEST(LogCases, TitlesAreAlignedWithTheValuesBelowThem) {
  std::string text = "time,gpu_index,gpu_name,mem_util_percent,mem_used_mb,mem_total_mb,temp_c\n";
  for (int i = 0; i < 12; ++i)
    text += fmt::format(
        "2026-05-06 10:06:{0:02},2026/05/06 10:06:{0:02}.521, 0, NVIDIA GeForce RTX 4060, 5, {1}, 8188, 42\n", 10 + i,
        400 + i);
  const auto r = read_text(text, "a.csv");
  ASSERT_EQ(r.error, "");
  ASSERT_THAT(r.device("0"), SizeIs(12));
  EXPECT_EQ(r.device("0").back().second, 411);
  EXPECT_THAT(r.warnings(), HasSubstr("the rows have 8 fields and the header has 7"));

  std::string unclear = "time,used_mb,total_mb\n";
  for (int i = 0; i < 12; ++i) unclear += fmt::format("2026-05-06 10:06:{:02},4000,8000,9000\n", 10 + i);
  EXPECT_NE(read_text(unclear, "a.csv").error, "");
}

TEST(LogCases, ACellMayHoldUsedAndTotalMemory) {
  std::string text = "Timestamp, GPU_Mem_Usage, GPU_Temp\n";
  for (int i = 0; i < 6; ++i) text += fmt::format("2026-05-01 17:06:{:02}, {}/62841MB, 50\n", 10 + i, 11283 + i);
  const auto r = read_text(text, "a.csv");
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.device("0").back().second, 11288);
  EXPECT_EQ(r.catalog->device("0")->capacity_bytes, 62841ULL << 20U);
}

TEST(LogCases, ManyRowsAmongTextAreReadRatherThanAFewLinesOfIt) {
  std::string text =
      "[2025-10-15 16:12:26] Starting GPU monitoring service...\n"
      "[2025-10-15 16:12:26] GPU 0: NVIDIA GeForce RTX 3090 - Memory: 8595MB / 24576MB - Utilization: 45%\n"
      "[2025-10-15 16:12:27] GPU 0: NVIDIA GeForce RTX 3090 - Memory: 8596MB / 24576MB - Utilization: 45%\n";
  for (int i = 0; i < 60; ++i)
    text += fmt::format("[2025-10-15 17:{:02}:28] GPU Status:\n0, 16, {}, 24576, 46\n", i, 8442 + 10 * (i * 7 % 11));
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  ASSERT_THAT(r.device("0"), SizeIs(60));
  EXPECT_EQ(r.device("0").back().second, 8442 + 10 * (59 * 7 % 11));
}

TEST(LogCases, ALineOfTextWithACommaIsNoLogOfRows) {
  std::string text = "Machine model: MacBookPro18,3\n";
  for (int i = 0; i < 200; ++i)
    text += fmt::format("GPU idle residency: {}.82%\nE-Cluster Online: 100%\n", 20 + i % 70);
  EXPECT_NE(read_text(text).error, "");
}

TEST(LogCases, AHeadingWithAWordForAGpuIsNoMonitor) {
  const auto r = read_text("# Nvidia System GPU Input Plugin\n\nThis plugin collects metrics.\n");
  EXPECT_THAT(r.error, Not(HasSubstr("as a dmon log")));
}

TEST(LogCases, BarsSeparateColumnsWithoutATime) {
  const auto r = read_text(
      "My usage of the GPU, after half a day.\n\nsteam | cosmic-comp VRAM usage, MiB\nclosed | 1093\nopen | 1120\n"
      "closed | 1101\nopen | 1217\n");
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), SizeIs(4));
  EXPECT_EQ(r.device("0").back().second, 1217);
}

TEST(LogCases, ToolsInTitlesSayWhoseMemoryItIs) {
  std::string text = "timestamp,token_count,torch_allocated_gb,torch_reserved_gb,torch_peak_gb,nvidia_smi_mb\n";
  for (int i = 0; i < 6; ++i) text += fmt::format("2025-07-01T16:48:{:02},{},2.5,3.0,2.6,{}\n", 10 + i, i, 18831 + i);
  const auto r = read_text(text, "a.csv");
  ASSERT_EQ(r.error, "");
  ASSERT_EQ(r.series(), 3U);
  EXPECT_EQ(r.device("0").back().second, 18836);
}

TEST(LogCases, WhatOneProcessHoldsIsSaidToBeThat) {
  const auto r = read_text("used_gpu_memory [MiB]\n1 MiB\n69 MiB\n74 MiB\n");
  EXPECT_THAT(r.warnings(), HasSubstr("what one process holds"));
}

TEST(LogCases, SessionsAreToldApart) {
  const auto r = read_text(
      "session_id,timestamp,gpu_memory_used\nno-cache,0,18\nno-cache,1,515\nno-cache,2,771\ncache,0,18\ncache,1,520\n",
      "a.csv");
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("no-cache"), SizeIs(3));
  EXPECT_THAT(r.device("cache"), SizeIs(2));
}

TEST(LogCases, MegabytesAreOfTenToTheSixthWhereOnlyThenBytesAreWhole) {
  std::string text = "ts,gpu_mem_used_mb\n";
  for (int i = 0; i < 8; ++i) text += fmt::format("{}.5,{:.6f}\n", 1758584825 + i, 1e-6 * 512.0 * (1174528 + 1001 * i));
  const auto r = read_text(text, "a.csv");
  ASSERT_EQ(r.error, "");
  EXPECT_NEAR(r.device("0").front().second, 573.5, 0.1);
  EXPECT_THAT(r.warnings(), HasSubstr("MB is read as 10^6 bytes"));

  std::string binary = "ts,gpu_mem_used_mb\n";
  for (int i = 0; i < 8; ++i)
    binary += fmt::format("{}.5,{:.6f}\n", 1758584825 + i, 512.0 * (1174528 + 1001 * i) / 1048576);
  EXPECT_NEAR(read_text(binary, "a.csv").device("0").front().second, 573.5, 0.1);
}

TEST(LogCases, RowsOfSeveralTypesAreReadByTheTitlesAmongThem) {
  std::string text =
      "00, 19-06-2025 15:17:16, Hardware monitoring log v1.6 \n01, 19-06-2025 15:17:16, NVIDIA GeForce RTX 2060 SUPER\n"
      "02, 19-06-2025 15:17:16, GPU usage           ,FB usage            ,Memory usage        ,RAM usage\n"
      "03, 19-06-2025 15:17:16, 0                   ,%                   ,0.000               ,100.000\n"
      "03, 19-06-2025 15:17:16, 1                   ,%                   ,0.000               ,100.000\n"
      "03, 19-06-2025 15:17:16, 2                   ,MB                  ,0.000               ,8192.000\n"
      "03, 19-06-2025 15:17:16, 3                   ,MB                  ,0.000               ,16384.000\n";
  for (int i = 0; i < 10; ++i)
    text += fmt::format("80, 19-06-2025 15:17:{:02}, 5.000 ,12.000 ,{:.3f} ,7413.000\n", 17 + i, 950.211 + i);
  const auto r = read_text(text, "a.hml");
  ASSERT_EQ(r.error, "");
  ASSERT_THAT(r.device("0"), SizeIs(10));
  EXPECT_NEAR(r.device("0").back().second, 959.211, 0.01);
}

TEST(LogCases, TimesWithoutPaddingHaveAFraction) {
  std::string text = "Date,Time,\"3VSB [V]\",\"GPU Memory Allocated [MB]\"\n";
  for (int i = 0; i < 6; ++i) text += fmt::format("5.2.2021,21:{}:{}.520,3.3,{}\n", i, 9 * i, 2908 + i);
  const auto r = read_text(text, "a.csv");
  ASSERT_EQ(r.error, "");
  ASSERT_THAT(r.device("0"), SizeIs(6));
  EXPECT_EQ(r.device("0")[1].first - r.device("0")[0].first, 69);
}

TEST(LogCases, TheMemoryOfTheHostIsNotSaidToBePassedOver) {
  const auto r = read_text(
      "Date , Memory Used (Dedicated) [MB] , System Memory Used [MB]\n2020-03-16 17:13:05 , 534 , 5470\n"
      "2020-03-16 17:13:06 , 540 , 5471\n",
      "a.csv");
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.device("0").back().second, 540);
  EXPECT_THAT(r.warnings(), Not(HasSubstr("System Memory")));
}

TEST(LogCases, TheMemoryOfATegraIsSaidToBeShared) {
  EXPECT_THAT(logtest::read_logs({logtest::fixture("tegrastats.log")}).warnings(), HasSubstr("shares the memory"));
}

TEST(LogCases, ObjectsBelowTheKeysOfADocumentAreTheReadingsOfEach) {
  const auto job = [](const char* id, int from) {
    std::string out = fmt::format("  \"{}\": [\n", id);
    for (int i = 0; i < 3; ++i)
      out += fmt::format(
          "    {{\n      \"timestamp\": \"2026-03-24T18:{0:02}:42Z\",\n      \"gpus\": [\n        {{\"mem_used\": "
          "{1}.0, \"mem_total\": 143771.0}}\n      ]\n    }}{2}\n",
          21 + 5 * i, from + i, i < 2 ? "," : "");
    return out + "  ]";
  };
  const auto r = read_text("{\n" + job("4887348", 10) + ",\n" + job("4890607", 9671) + "\n}\n", "a.json");
  ASSERT_EQ(r.error, "");
  ASSERT_EQ(r.series(), 2U);
  EXPECT_EQ(r.device("4887348").back().second, 12);
  EXPECT_EQ(r.device("4890607").back().second, 9673);
}

TEST(LogCases, TheGpusOfSeveralHostsAreNeverMerged) {
  std::string text;
  for (int i = 0; i < 4; ++i)
    for (const char* host : {"a", "b"})
      text += fmt::format(
          "{{\"time\": \"2026-03-24T18:{:02}:42Z\", \"host\": \"{}\", \"gpus\": [{{\"index\": 0, "
          "\"mem_used_mb\": {}}}, {{\"index\": 1, \"mem_used_mb\": 7}}]}}\n",
          i, host, host[0] == 'a' ? 100 : 200);
  const auto r = read_text(text, "a.jsonl");
  ASSERT_EQ(r.error, "");
  ASSERT_EQ(r.series(), 4U);
  EXPECT_EQ(r.device("a/0").back().second, 100);
  EXPECT_EQ(r.device("b/0").back().second, 200);
}

TEST(LogCases, TheTitlesOfTheMachineAreNotThoseOfTheReadings) {
  std::string text =
      "os,cpu,gpu,ram,kernel,driver,cpuscheduler\nArch Linux,AMD Ryzen 7,NVIDIA GeForce RTX 3080,32792296,6.1.1,525.60,"
      "performance\nfps,frametime,gpu_load,gpu_core_clock,gpu_mem_clock,gpu_vram_used,ram_used,process_rss,elapsed\n";
  for (int i = 0; i < 30; ++i)
    text += fmt::format("144,6.9,97,1900,9501,{:.5f},9.5,2.1,{}\n", 4.12 + 0.001 * i, 100'000'000LL * i);
  const auto r = read_text(text, "a.csv");
  ASSERT_EQ(r.error, "");
  ASSERT_THAT(r.device("0"), SizeIs(30));
  EXPECT_NEAR(r.device("0").back().second, 4.149 * 1024, 0.1);
  EXPECT_NEAR(r.device("0").back().first - r.device("0").front().first, 2.9, 0.01);
  EXPECT_THAT(r.warnings(), HasSubstr("assumed to be nanoseconds"));
}

TEST(LogCases, RowsOfDifferentThingsAreNoReadings) {
  std::string layers = "layer,params,gpu_mem_mb\n";
  for (int i = 0; i < 40; ++i) layers += fmt::format("layer_{},1000,{}\n", i, 1000 + 50 * i);
  EXPECT_THAT(read_text(layers, "a.csv").error, HasSubstr("names another thing in each"));
  EXPECT_THAT(read_text("model,vram_gb,score\nllama-7b,14,0.5\nllama-13b,26,0.6\nmistral,15,0.6\n", "a.csv").error,
              HasSubstr("names another thing in each"));
  std::string steps = "at,gpu_mem_mb\n";
  for (int i = 0; i < 10; ++i) steps += fmt::format("step {},{}\n", i, 1000 + i);
  EXPECT_EQ(read_text(steps, "a.csv").error, "");
}

TEST(LogCases, FreeMemoryAloneIsReadInATableAsInText) {
  std::string text = "time,gpu_free_mb\n";
  for (int i = 0; i < 10; ++i) text += fmt::format("2026-03-01 10:00:{:02},{}\n", i, 20000 - 10 * i);
  const auto r = read_text(text, "a.csv");
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.device("0").front().second, 0);
  EXPECT_EQ(r.device("0").back().second, 90);
  EXPECT_THAT(r.warnings(), HasSubstr("only the free memory is given"));
  EXPECT_EQ(r.catalog->device("0")->capacity_bytes, 20'000ULL << 20);
}

TEST(LogCases, MeansOfAnIntervalAreReadForWantOfReadings) {
  std::string text = "timestamp,cuda:0 (gpu:0)/memory_used (MiB)/mean,cuda:1 (gpu:1)/memory_used (MiB)/mean\n";
  for (int i = 0; i < 6; ++i) text += fmt::format("2026-03-01T10:00:{:02},{},{}\n", i, 4000 + i, 9000);
  const auto r = read_text(text, "a.csv");
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.series(), 2U);
  EXPECT_THAT(read_text("RUN,MEM_AVG\n0,2028.0\n1,2028.0\n2,2061.5\n", "a.csv").error, HasSubstr("differs in each"));
}

// ---- which device the memory belongs to ----

TEST(LogCases, MemoryBesideTitlesOfTheHostIsTheHosts) {
  const std::string rows = "2026-03-27 20:19:42,41.20,40.00\n2026-03-27 20:19:47,14.60,40.10\n";
  EXPECT_THAT(read_text("timestamp,cpu_usage,memory_usage\n" + rows, "a.csv").error,
              AllOf(HasSubstr("column 3 'memory_usage' is "), HasSubstr("since 'cpu_usage'")));
  EXPECT_THAT(read_text("timestamp,cpu_percent,mem_percent\n" + rows, "a.csv").error,
              HasSubstr("the memory of the host"));
  EXPECT_THAT(read_text("timestamp,loss,ram_used_mb\n" + rows, "a.csv").error, HasSubstr("the memory of the host"));
  LogOptions named = logtest::utc();
  named.format = "csv";
  EXPECT_THAT(logtest::read_text("timestamp,loss,ram_used_mb\n" + rows, named).warnings(),
              HasSubstr("the memory of the host"));
  EXPECT_EQ(read_text("timestamp,gpu_usage,memory_usage_mb\n" + rows, "a.csv").error, "");
}

TEST(LogCases, TheMemoryOfTheCardIsReadBesideThatOfTheHost) {
  std::string text =
      "Date,Time,\"Physical Memory Used [MB]\",\"Physical Memory Available [MB]\",\"GPU Thermal Limit "
      "[\u00b0C]\",\"GPU "
      "D3D Memory Dedicated [MB]\",\"GPU D3D Memory Dynamic [MB]\"\n";
  for (int i = 0; i < 30; ++i)
    text += fmt::format("20.2.2026,17:50:{}.168,6{:03},9800,87.0,{},78\n", i, i, 553 + i % 3);
  const auto r = read_text(text, "a.csv");
  ASSERT_EQ(r.error, "");
  ASSERT_THAT(r.device("0"), SizeIs(30));
  EXPECT_EQ(r.device("0").front().second, 553);
  EXPECT_THAT(r.warnings(), Not(HasSubstr("Dynamic")));
  ASSERT_EQ(r.catalog->devices().size(), 1U);
  EXPECT_FALSE(r.catalog->devices().front().capacity_bytes);  // 87 degrees are not a capacity
}

TEST(LogCases, ATitleWithTheUnitOfAnotherQuantityIsNoMemory) {
  for (const char* const unit : {"\u2103", "\u00b0C", "W", "MHz"}) {
    const auto r =
        read_text(fmt::format("Date,Time,\"\u663e\u5b58\u7ed3\u6e29 [{}]\",\"GPU D3D Memory Dedicated [MB]\"\n"
                              "20.2.2026,17:50:01,34.0,914\n20.2.2026,17:50:02,34.0,915\n",
                              unit),
                  "a.csv");
    ASSERT_EQ(r.error, "") << unit;
    EXPECT_THAT(r.device("0"), ElementsAre(Pair(_, 914), Pair(_, 915))) << unit;
  }
}

TEST(LogCases, AnIntegratedGpuHasTheMemoryThatItShares) {
  const auto r = read_text(
      "Date,Time,\"Physical Memory Used [MB]\",\"GPU D3D Memory Dynamic [MB]\"\n"
      "20.2.2026,17:50:01,7102,926\n20.2.2026,17:50:02,7108,920\n",
      "a.csv");
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(_, 926), Pair(_, 920)));
}

TEST(LogCases, TheUseOfMemoryBesideThatOfAnEncoderIsThatOfItsController) {
  const std::string rows = "2026-03-01 10:00:00,40,12,0\n2026-03-01 10:00:01,41,12,0\n";
  EXPECT_NE(read_text("timestamp,gpu_utilization,memory_utilization,encoder_utilization\n" + rows, "a.csv").error, "");
  EXPECT_EQ(read_text("timestamp,gpu_utilization,memory_utilization,power\n" + rows, "a.csv").error, "");
}

TEST(LogCases, ANumberInANameOrOfAnotherWordInBracketsIsNoAmount) {
  std::string text;
  for (int i = 0; i < 5; ++i) text += fmt::format("GPU memory usage (round: {}): {}.5 MB\n", i, 31 + i);
  const auto rounds = read_text(text);
  ASSERT_EQ(rounds.error, "");
  EXPECT_THAT(rounds.device("0"),
              ElementsAre(Pair(_, 31.5), Pair(_, 32.5), Pair(_, 33.5), Pair(_, 34.5), Pair(_, 35.5)));
  text.clear();
  for (int i = 0; i < 5; ++i) text += fmt::format("10:00:0{} gpu0_process_mem_76176 = {} MiB\n", i, 640 + i);
  const auto named = read_text(text);
  ASSERT_EQ(named.error, "");
  EXPECT_EQ(named.device("0").back().second, 644);
}

TEST(LogCases, AnArrowEndsWhatAFigureIsOf) {
  std::string text;
  for (int i = 0; i < 5; ++i)
    text +=
        fmt::format("[10:00:0{}] model loaded to CPU RAM -> allocated: {}.14MB, reserved: 2002.00MB\n", i, 1889 + i);
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.samples.size(), 10U);
}

TEST(LogCases, MachinesAndJobsNumberTheirGpusEachFromZero) {
  for (const char* const owner : {"host", "job"}) {
    std::string csv = fmt::format("time,{},gpu,gpu_mem_used_mib\n", owner);
    std::string json;
    for (int i = 0; i < 30; ++i)
      for (const char* const name : {"n1", "n2"})
        for (int gpu = 0; gpu < 2; ++gpu) {
          const int used = (gpu == 0 ? 4000 + 60 * i : 7000);
          csv += fmt::format("2026-03-01 10:{:02}:00,{},{},{}\n", i, name, gpu, used);
          json += fmt::format(R"({{"time": "2026-03-01 10:{:02}:00", "{}": "{}", "gpu": {}, "gpu_mem_used_mib": {}}})"
                              "\n",
                              i, owner, name, gpu, used);
        }
    for (const auto& r : {read_text(csv, "a.csv"), read_text(json, "a.jsonl")}) {
      ASSERT_EQ(r.error, "") << owner;
      EXPECT_THAT(r.catalog->devices(), SizeIs(4)) << owner;
      EXPECT_THAT(r.samples, SizeIs(120)) << owner;
    }
  }
}

TEST(LogCases, AGpuInTheProcessorSharesItsMemory) {
  const auto r = read_text(
      "System-Time,CPU1-CURR_LOAD,MEM-TOTAL_SIZE,MEM-USED_SIZE,MEM-CURR_LOAD,IGPU0-CURR_LOAD\n"
      "01:22:35,12,54793,38136,70,99\n01:22:36,12,54793,38137,70,99\n01:22:37,12,54793,38137,70,99\n",
      "a.csv");
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.warnings(), HasSubstr("shares the memory of the machine"));
  EXPECT_THAT(r.warnings(), Not(HasSubstr("MEM-CURR_LOAD")));
}

// ---- logs without usable figures ----

TEST(LogCases, TheSameAmountOfEachModelIsItsCapacity) {
  std::string text;
  for (int i = 0; i < 40; ++i)
    text += fmt::format("node{},{}\n", 1100 + i / 4,
                        i < 20 ? "NVIDIA TITAN V,12288 MiB" : "NVIDIA GeForce RTX 2080 Ti,11264 MiB");
  EXPECT_THAT(read_text(text, "a.csv").error, HasSubstr("it is how much memory each card has"));
}

TEST(LogCases, ATotalThatCanBeUsedIsNotUsed) {
  std::string text;
  for (int i = 0; i < 4; ++i)
    text += fmt::format(
        "2026-12-19 23:56:{:02},742 INFO worker {} profiled\nthe current instance can use total_gpu_memory (39.38GiB) "
        "x "
        "gpu_memory_utilization (0.90)\n",
        12 + i, i);
  EXPECT_NE(read_text(text, "a.log").error, "");
}

TEST(LogCases, EachRowOfARunIsNoReading) {
  std::string text;
  for (int i = 0; i < 30; ++i)
    text += fmt::format(
        "{{\"start_time\":{0},\"end_time\":{1},\"duration_s\":29.2,\"vram_peak_mib\":{2},\"vram_delta_mib\":100,"
        "\"vram_start_mib\":155}}\n",
        1752633826956 + 60000LL * i, 1752633856208 + 60000LL * i, 255 + i);
  EXPECT_THAT(read_text(text, "a.jsonl").error, HasSubstr("each row is a run of its own"));
}

TEST(LogCases, RowsOfSettingsSayHowManyRanOut) {
  std::string text =
      "hidden,layers,batch_size,status,gpu_peak_memory_torch,gpu_memory_used_system,gpu_total_system,error\n";
  for (int i = 0; i < 24; ++i)
    text += i % 4 < 3
                ? fmt::format("{},2,{},success,{}.5,{}.0,81920.0,\n", 64 << (i / 8), 32 << (i % 4), 2000 + i, 3000 + i)
                : fmt::format("{},2,{},cuda_oom,N/A,N/A,N/A,\"CUDA out of memory. Tried to allocate 32.00 GiB\"\n",
                              64 << (i / 8), 32 << (i % 4));
  EXPECT_THAT(read_text(text, "a.csv").error, HasSubstr("6 of 24 ran out of memory"));
}

TEST(LogCases, APartOfANameSaysNothingOfABareNumber) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += fmt::format("slot update: n_past = {0}, memory_seq_rm [{0}, end)\n", 512 * i);
  EXPECT_NE(read_text(text, "a.log").error, "");
}

// ---- layouts ----

TEST(LogCases, ProseWithCommasIsNoTable) {
  std::string text;
  double free = 115.26;
  for (int i = 0; i < 12; ++i, free -= 3.5) {
    text += fmt::format("[2026-08-01 21:4{}:26] INFO server_args=(a=1, b='x', mem_fraction=0.8), ready\n", i % 10);
    text += fmt::format("[2026-08-01 21:4{}:27] {} begin. type=Gemma, avail mem={:.2f} GB\n", i % 10,
                        i % 2 == 0 ? "Load weight" : "Capture graph", free);
  }
  const auto r = read_text(text, "a.log");
  EXPECT_THAT(r.error, Not(HasSubstr("csv")));
  const auto one = read_text(
      "[TRT][INFO] allocation in the context: CPU +0, GPU +0, now: CPU 0, GPU 6683 (MiB)\n"
      "[TRT][INFO] Allocate 69524783104 bytes for k/v cache.\n",
      "a.log");
  EXPECT_THAT(one.error, HasSubstr("line 1 is one of 1 "));
}

TEST(LogCases, EventsOfOneProgramShareATime) {
  const auto r = read_text(
      "[2026-08-01 21:40:26] Load weight begin. avail mem=115.26 GB\n"
      "[2026-08-01 21:51:14] Load weight end. elapsed=600 s, avail mem=22.10 GB\n"
      "[2026-08-01 21:51:14] Draft worker ready. avail mem=18.98 GB\n"
      "[2026-08-01 21:51:16] Memory pool end. avail mem=13.28 GB\n"
      "[2026-08-01 21:51:16] Second pool end: avail mem=12.49 GB\n"
      "[2026-08-01 21:51:16] Capture begin, avail mem=11.78 GB\n",
      "a.log");
  ASSERT_EQ(r.error, "");
  ASSERT_THAT(r.device("0"), SizeIs(6));
  EXPECT_NEAR(r.device("0").back().second, (115.26 - 11.78) * 1024, 1);
}

TEST(LogCases, SurplusFieldsWithoutAValueSpoilNoRow) {
  const auto r = read_text(
      "index, utilization.gpu (%), memory.used (MiB), memory.free (MiB)\n2, 0.00, 29028.5, 3627.5\n"
      "2, 1.01, 29101.2, N/A, N/A, N/A\n2, 11.80, 29099.1, 3556.9\n2, 1.01, 42.2, N/A, N/A, N/A\n",
      "a.csv");
  ASSERT_EQ(r.error, "");
  ASSERT_THAT(r.device("2"), SizeIs(4));
  EXPECT_NEAR(r.device("2").back().second, 42.2, 0.01);
}

TEST(LogCases, APeakOfAGpuWithItsUnitIsMemory) {
  std::string text = "epoch,gpu_peak_mb\n";
  for (int run = 0; run < 2; ++run)
    for (int i = 1; i <= 30; ++i) text += fmt::format("{},{}.08\n", i, 6424 + 3000 * run);
  const auto r = read_text(text, "a.csv");
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), SizeIs(60));
  EXPECT_THAT(r.warnings(), HasSubstr("as if another run began"));
}

TEST(LogCases, ACountOfHowManyBeginsTheRowsOfATable) {
  std::string text;
  for (int i = 0; i < 40; ++i)
    text += fmt::format("     {}/199     {}G   0.04799  0.009614         0   0.05761        {}       640\n", i,
                        i == 0 ? "1.59" : "3.95", 4 + i % 3);
  const auto r = read_text(text, "results.txt");
  ASSERT_EQ(r.error, "");
  ASSERT_THAT(r.device("0"), SizeIs(40));
  EXPECT_NEAR(r.device("0").back().second, 3.95 * 1024, 0.1);
}

TEST(LogCases, ANumberMayBeWrappedInItsType) {
  std::string text = "wandb: Detected [openai] in use.\n";
  for (int i = 1; i <= 12; ++i)
    text += fmt::format(
        "step:{} - actor/loss:np.float64(0.027) - perf/max_memory_allocated_gb:np.float64({:.3f}) - "
        "perf/max_memory_reserved_gb:np.float64(61.607) - perf/cpu_memory_used_gb:np.float64({})\n",
        i, 50.5 + 0.01 * i, 421 + i);
  const auto r = read_text(text, "a.log");
  ASSERT_EQ(r.error, "");
  const auto allocated = r.of(Metric::allocator_allocated, "0");
  ASSERT_THAT(allocated, SizeIs(12));
  EXPECT_NEAR(allocated.back().second, 50.62 * 1024, 0.1);
  EXPECT_THAT(r.warnings(), HasSubstr("only peaks are given"));
}

// ---- JSON documents ----

TEST(LogCases, ADocumentWithoutATimeIsOneReading) {
  const auto r = read_text(
      "{\n \"Devices\": [\n  {\n   \"Clocks\": {\"Cores\": 1189, \"Memory\": 3304},\n   \"Memory\": {\"GlobalUsed\": "
      "9931},\n   \"Processes\": [{\"MemoryUsed\": 9929, \"Name\": \"python\", \"PID\": 6151}],\n   \"Utilization\": "
      "{\"GPU\": 76, \"Memory\": 6}\n  }\n ]\n}\n",
      "a.json");
  ASSERT_EQ(r.error, "");
  ASSERT_THAT(r.device("0"), SizeIs(1));
  EXPECT_EQ(r.device("0").back().second, 9931);
  EXPECT_EQ(r.of(Metric::process_used, "0", 6151).back().second, 9929);
}

TEST(LogCases, WhatThePercentageIsOfIsTheTotal) {
  const auto r = read_text(
      "{\n \"card0\": {\n  \"GPU memory use (%)\": \"0.10168946267106549\",\n  \"GPU memory use\": \"17453056\",\n  "
      "\"GPU memory available\": \"17163091968\",\n  \"Memory Activity\": \"N/A\"\n }\n}\n",
      "a.json");
  ASSERT_EQ(r.error, "");
  ASSERT_EQ(r.samples.size(), 1U);
  EXPECT_EQ(r.samples.front().bytes, 17453056U);
  ASSERT_EQ(r.catalog->devices().size(), 1U);
  EXPECT_EQ(r.catalog->devices().front().capacity_bytes.value_or(0), 17163091968U);
}

TEST(LogCases, BytesAndPercentTogetherGiveTheCapacity) {
  constexpr std::uint64_t kCapacity = 24564ULL << 20;
  std::string text;
  for (int i = 0; i < 30; ++i) {
    const std::uint64_t used = (5000ULL + 37 * static_cast<std::uint64_t>(i)) << 20;
    text += fmt::format(
        "{{\"_timestamp\": {}.5, \"system.gpu.0.memoryAllocatedBytes\": {}, \"system.gpu.0.memoryAllocated\": "
        "{:.12f}}}\n",
        1772359200 + 15 * i, used, 100.0 * static_cast<double>(used) / static_cast<double>(kCapacity));
  }
  const auto r = read_text(text, "wandb-events.jsonl");
  ASSERT_EQ(r.error, "");
  ASSERT_EQ(r.catalog->devices().size(), 1U);
  EXPECT_EQ(r.catalog->devices().front().capacity_bytes.value_or(0), kCapacity);
}

/// MLflow rounds percentages to a tenth, which would make the capacity of a nearly empty GPU wrong by a tenth.
TEST(LogCases, APercentageThatIsTooCoarseGivesNoCapacity) {
  const auto capacity_at = [](double most_percent) {
    constexpr double kTotal = 42'949;  // 10^6 bytes
    std::string text = "run_id,key,value,step,timestamp\n";
    for (int i = 0; i < 10; ++i) {
      const double percent = most_percent - 0.03 * (9 - i);
      for (const auto& [name, value] : {std::pair("megabytes", fmt::format("{:.1f}", percent / 100 * kTotal)),
                                        std::pair("percentage", fmt::format("{:.1f}", percent))})
        text +=
            fmt::format("8f1a,system/gpu_0_memory_usage_{},{},{},{}\n", name, value, i, 1'772'359'200'000 + 10'000 * i);
    }
    const auto r = logtest::read_text(text);
    EXPECT_EQ(r.error, "");
    return r.catalog->device("0")->capacity_bytes;
  };
  EXPECT_EQ(capacity_at(1.23), std::nullopt);
  ASSERT_TRUE(capacity_at(61.23));
  EXPECT_NEAR(static_cast<double>(*capacity_at(61.23)), 42'949e6, 0.001 * 42'949e6);
}

TEST(LogCases, ValuesThatAreWholeAllocationsOnlyByTenAreDecimal) {
  std::string text;
  for (int i = 0; i < 6; ++i)
    text += fmt::format("2026-01-01 10:00:{:02} gpu memory_allocated: {:.9f}\n", i,
                        static_cast<double>(512ULL * (19'038'775 + 123'457 * static_cast<std::uint64_t>(i))) / 1e9);
  const auto r = read_text(text, "a.log");
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.warnings(), HasSubstr("10^9 bytes are assumed"));
}

// ---- percentages ----

TEST(LogCases, PercentagesAloneAreOnOneScaleInEverySyntax) {
  const auto table = [](std::string_view head, std::string_view row) {
    std::string out(head);
    for (int i = 0; i < 12; ++i)
      out += fmt::format(fmt::runtime(row), fmt::arg("s", fmt::format("{:02}", 4 * i)),
                         fmt::arg("epoch", 1772359200 + 4 * i), fmt::arg("p", 30.5 + i));
    return out;
  };
  for (const std::string& text : {
           table("timestamp,gpu,mem_used_pct\n", "2026-03-01T10:00:{s}Z,0,{p}\n"),
           table("| time | gpu | mem_used_pct |\n|---|---|---|\n", "| 2026-03-01 10:00:{s} | 0 | {p} |\n"),
           table("time gpu mem_used_pct\n", "{epoch} 0 {p}\n"),
           table("", "{{\"time\": {epoch}, \"gpu\": 0, \"gpu_mem_used_percent\": {p}}}\n"),
           table("time,metric,value,gpu\n", "{epoch},gpu_mem_used_percent,{p},0\n"),
           table("", "gpu,index=0 memory_used_percent={p} {epoch}000000000\n"),
           table("", "2026-03-01 10:00:{s} gpu=0 gpu_mem_used={p}%\n"),
           table("", "2026-03-01 10:00:{s} GPU 0: {p}% of memory used\n"),
       }) {
    const auto r = logtest::read_text(text);
    EXPECT_EQ(r.error, "") << text;
    EXPECT_EQ(r.catalog->scale.unit, AmountUnit::percent) << text;
    ASSERT_THAT(r.device("0"), SizeIs(12)) << text;
    EXPECT_EQ(r.device("0").back().second, 41.5 * 1024) << text;
    EXPECT_EQ(r.catalog->device("0")->capacity_bytes, Scale::kWholeBytes) << text;
  }
}

// ---- a run's folder ----

TEST(LogCases, AFolderOfARunIsItsRecordingAndTheLogBesideIt) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("vramtrack_run_{}", ::getpid());
  std::filesystem::create_directories(folder / "files");
  std::string events;
  for (int i = 0; i < 30; ++i)
    events += fmt::format("{{\"_timestamp\": {}, \"system.gpu.0.memoryAllocatedBytes\": {}}}\n", 1772359200 + 15 * i,
                          (5000ULL + 37 * static_cast<std::uint64_t>(i)) << 20);
  std::ofstream(folder / "files" / "wandb-events.jsonl") << events;
  std::ofstream(folder / "files" / "output.log")
      << "epoch 1\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n";
  const auto r = logtest::read_logs({folder.string()});
  std::filesystem::remove_all(folder);
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), SizeIs(30));
  ASSERT_FALSE(r.events.empty());
  EXPECT_EQ(r.events.back().kind, Event::Kind::out_of_memory);
  EXPECT_THAT(r.events.back().text, HasSubstr("output.log:2"));
}

TEST(LogCases, OfSeveralLogsOfARunTheOneThatEndsOutOfMemorySaysHowItEnded) {
  logtest::Files files;
  std::string amounts, percentages;
  for (int i = 0; i < 30; ++i) {
    amounts += fmt::format("{} {} {}\n", 1772359200000 + 10'000 * i, 4000 + 90 * i, i);
    percentages += fmt::format("{} {:.3f} {}\n", 1772359200000 + 10'000 * i, (4000 + 90 * i) / 257.69803776, i);
  }
  const std::filesystem::path folder = std::filesystem::path(files.write("train.log", "epoch 1\n")).parent_path();
  files.write("slurm.err", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n");
  const std::filesystem::path metrics = folder / "metrics" / "system";
  std::filesystem::create_directories(metrics);
  std::ofstream(metrics / "gpu_0_memory_usage_megabytes") << amounts;
  std::ofstream(metrics / "gpu_0_memory_usage_percentage") << percentages;
  const auto r = logtest::read_logs({folder.string()});
  ASSERT_EQ(r.error, "");
  ASSERT_FALSE(r.events.empty());
  EXPECT_EQ(r.events.back().kind, Event::Kind::out_of_memory);
  EXPECT_THAT(r.events.back().text, HasSubstr("slurm.err:1"));
  // The capacity follows from MLflow's amounts and percentages, like that of W&B.
  EXPECT_NEAR(static_cast<double>(r.catalog->device("0")->capacity_bytes.value_or(0)), 25.769803776e9, 4e6);
}

/// A run in a folder of its own: a recording that is recognised by its name, and any files next to it.
class RunFolder {
 public:
  void copy(const std::string& fixture, const std::filesystem::path& to) {
    std::filesystem::create_directories((folder_ / to).parent_path());
    std::filesystem::copy_file(logtest::fixture(fixture), folder_ / to);
  }
  void log(const std::filesystem::path& to, std::string_view text) {
    std::filesystem::create_directories((folder_ / to).parent_path());
    std::ofstream(folder_ / to) << text;
  }
  [[nodiscard]] std::string path(const std::filesystem::path& of = {}) const { return (folder_ / of).string(); }

 private:
  logtest::Files files_;  ///< removes it
  std::filesystem::path folder_ = std::filesystem::path(files_.write("any", "")).parent_path() / "run-1";
};

constexpr std::string_view kRanOut = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n";

TEST(LogCases, TheFolderOfEveryTrackerIsJoinedToTheLogThatEndsOutOfMemory) {
  for (const auto& [fixture, to] : std::map<std::string, std::string>{
           {"run.wandb", "run-1.wandb"},
           {"wandb_events.jsonl", "files/wandb-events.jsonl"},
           {"events.out.tfevents.1772359200.node1.4242.0", "runs/events.out.tfevents.1772359200.node1.4242.0"},
           {"mlruns/0/8d1f3c/metrics/system/gpu_0_memory_usage_megabytes",
            "mlruns/0/1/metrics/system/gpu_0_memory_usage_megabytes"}}) {
    RunFolder run;
    run.copy(fixture, to);
    run.log("train.log", "epoch 1\n");
    run.log("stderr.log", kRanOut);
    const auto r = logtest::read_logs({run.path()});
    ASSERT_EQ(r.error, "") << to;
    ASSERT_FALSE(r.events.empty()) << to;
    EXPECT_EQ(r.events.back().kind, Event::Kind::out_of_memory) << to;
    EXPECT_THAT(r.events.back().text, HasSubstr("stderr.log:1")) << to;
    EXPECT_THAT(r.warnings(), Not(HasSubstr("how the run ended"))) << to;
  }
}

TEST(LogCases, TheRecordingOfWandbHasItsEndEvenIfItIsGivenAsAFile) {
  RunFolder run;
  run.copy("run.wandb", "run-1.wandb");
  run.copy("wandb_events.jsonl", "files/wandb-events.jsonl");
  run.log("files/output.log", kRanOut);
  for (const char* const recording : {"run-1.wandb", "files/wandb-events.jsonl"}) {
    const auto r = logtest::read_logs({run.path(recording)});
    ASSERT_EQ(r.error, "") << recording;
    ASSERT_FALSE(r.events.empty()) << recording;
    EXPECT_THAT(r.events.back().text, HasSubstr("output.log:1")) << recording;
  }
}

TEST(LogCases, PercentagesOfMlflowAreReadIfThereAreNoAmounts) {
  RunFolder run;
  run.log("metrics/system/gpu_0_memory_usage_percentage", "1772359200000 12.5 0\n1772359210000 13.0 1\n");
  const auto r = logtest::read_logs({run.path()});
  ASSERT_EQ(r.error, "");
  ASSERT_THAT(r.samples, SizeIs(2));
  EXPECT_EQ(r.catalog->scale.bytes(static_cast<double>(r.samples[0].bytes)), "12.5 %");
}

TEST(LogCases, ARunWithoutALogSaysThatItsEndIsUnknown) {
  RunFolder run;
  run.copy("run.wandb", "wandb/run-1/run-1.wandb");
  run.log("wandb/debug.log", "W&B's own\n");
  run.log("wandb/run-1/requirements.txt", "torch==2.15.0\n");
  EXPECT_THAT(logtest::read_logs({run.path()}).warnings(), HasSubstr("has no log of the program"));
  // Logs next to a lone file may belong to other programs; giving the folder means that they are its own.
  run.log("train.log", kRanOut);
  EXPECT_THAT(logtest::read_logs({run.path("wandb/run-1/run-1.wandb")}).warnings(),
              HasSubstr("give the folder of the run"));
  EXPECT_FALSE(logtest::read_logs({run.path()}).events.empty());
}

TEST(LogCases, AFolderWithoutARunIsRefusedByItsReason) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("vramtrack_none_{}", ::getpid());
  std::filesystem::create_directories(folder);
  const auto r = logtest::read_logs({folder.string()});
  std::filesystem::remove_all(folder);
  EXPECT_THAT(r.error, HasSubstr("is a directory in which no run was recorded"));
}

// ---- which device the memory belongs to ----

TEST(LogCases, TheOwnerMayStandBehindTheFigures) {
  std::string text = "Memstats: After params initialized:\n";
  for (int i = 0; i < 4; ++i)
    text += fmt::format("\tUsing (GB) {} / 95.74 ({:.2f}%) on TPU_{}(process=0,({},{},0,0))\n", 44 + i, 46.0 + i, i,
                        i % 2, i / 2);
  const auto r = read_text(text, "a.log");
  ASSERT_EQ(r.error, "");
  for (int i = 0; i < 4; ++i) {
    ASSERT_THAT(r.device(std::to_string(i)), SizeIs(1)) << i;
    EXPECT_NEAR(r.device(std::to_string(i)).back().second, (44 + i) * 1024, 0.1);
  }
  EXPECT_NEAR(static_cast<double>(r.catalog->device("3")->capacity_bytes.value_or(0)), 95.74 * 1073741824, 1e6);
}

TEST(LogCases, ThePartsOfOneCardAreNoReadingsBesideIt) {
  const auto memory = [](int total, int used) {
    return fmt::format(
        "<fb_memory_usage>\n<total>{} MiB</total>\n<used>{} MiB</used>\n<free>{} MiB</free>\n</fb_memory_usage>\n"
        "<bar1_memory_usage>\n<total>32767 MiB</total>\n<used>1 MiB</used>\n</bar1_memory_usage>\n",
        total, used, total - used);
  };
  std::string text =
      "<nvidia_smi_log>\n<timestamp>Sun Mar  1 10:00:00 2026</timestamp>\n<gpu id=\"00000000:01:00.0\">\n"
      "<mig_devices>\n";
  for (int i = 0; i < 4; ++i)
    text += fmt::format("<mig_device>\n<index>{}</index>\n{}</mig_device>\n", i, memory(19968, 12 + i));
  text += "</mig_devices>\n" + memory(81920, 50) + "<accounted_processes />\n</gpu>\n</nvidia_smi_log>\n";
  const auto r = read_text(text, "a.xml");
  EXPECT_THAT(r.formats, ElementsAre("smi-xml"));
  EXPECT_EQ(r.series(), 1U);
  EXPECT_THAT(r.device("00000000:01:00.0"), SizeIs(1));
  EXPECT_EQ(r.catalog->device("00000000:01:00.0")->capacity_bytes, 81920ULL << 20);
}

TEST(LogCases, ResidentMemoryBesideMemoryOfNobodyIsTheHosts) {
  std::string text;
  for (int i = 0; i < 12; ++i)
    text += fmt::format(
        "006 (053.000.000) 02/27 16:{:02}:07 Image size of job updated: 131480\n"
        "\t{} - ResidentSetSize of job (KB)\n...\n005 Job terminated.\n\t   Memory (MB)          :      {}        2"
        "     32164\n...\n",
        10 + i, 68120 + 512 * i, 190 + i);
  EXPECT_THAT(read_text(text, "a.log").error, AllOf(HasSubstr("no line says "), HasSubstr("ResidentSetSize of job")));
}

TEST(LogCases, AmountsWithFractionsAndNothingElseAreNobodys) {
  std::string fractions;
  std::string whole;
  for (int i = 0; i < 30; ++i) {
    fractions += fmt::format("{:.1f}MiB\n", 112.4 + i);
    whole += fmt::format("{} MiB\n", 4112 + i);
  }
  EXPECT_THAT(read_text(fractions, "a.txt").error, HasSubstr("no word such as 'used'"));
  EXPECT_THAT(read_text(whole, "a.txt").device("0"), SizeIs(30)) << "as nvidia-smi prints them with noheader";
}

TEST(LogCases, TheMemoryOfTheCardIsNoPeak) {
  std::string text = "GPU: NVIDIA GeForce RTX 3090\nVRAM: 23.6 GB\n";
  for (int i = 0; i < 12; ++i) text += fmt::format("case {}: time 1.5 ms, Peak Memory: {} MB\n", i, 1500 + 100 * i);
  const auto r = read_text(text, "a.log");
  ASSERT_EQ(r.error, "");
  ASSERT_THAT(r.device("0"), SizeIs(12));
  EXPECT_EQ(r.device("0").front().second, 1500);
}

// ---- rows ----

TEST(LogCases, ACountOfATotalIsNoIndex) {
  std::string text;
  for (int i = 0; i < 12; ++i) text += fmt::format("{:2}/299     {}G\n", i, i == 0 ? "7.49" : "5.9");
  const auto r = read_text(text, "a.txt");
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), SizeIs(12));
  EXPECT_EQ(r.series(), 1U);
}

TEST(LogCases, OtherLinesMayStandBetweenTitlesAndTheirRows) {
  std::string text = "Starting training for 20 epochs...\n";
  for (int i = 1; i <= 20; ++i)
    text += fmt::format(
        "\n      Epoch    GPU_mem   box_loss   cls_loss  Instances       Size\n"
        "/lib/graph.py:979: UserWarning: scatter_reduce has no deterministic implementation.\n"
        "  return Variable._execution_engine.run_backward(  # calls the engine\n"
        "       {}/20      {:.2f}G      1.63      2.71         41        640: 100% ---- 150/150 2.1it/s\n"
        "                 Class     Images  Instances      Box(P          R      mAP50\n"
        "                   all        240        512      0.512      0.402      0.431\n",
        i, 8.17 + 0.01 * i);
  const auto r = read_text(text, "a.log");
  ASSERT_EQ(r.error, "");
  ASSERT_THAT(r.device("0"), SizeIs(20));
  EXPECT_NEAR(r.device("0").back().second, 8.37 * 1024, 0.1);
}

TEST(LogCases, ADocumentOfJsonIsNotReadAsText) {
  logtest::Files files;
  std::string text = "[\n";
  for (int i = 0; i < 30; ++i)
    text += fmt::format(
        "  [\n    {{\"card\": \"A\", \"gpu_memory_percent\": \"{}%\"}},\n    {{\"card\": \"B\", "
        "\"gpu_memory_percent\": \"60%\"}}\n  ],\n",
        20 + i);
  const auto r = logtest::read_logs({files.write("gpus.json", text + "]\n")});
  EXPECT_THAT(r.error, Not(HasSubstr("as a text log")));
  EXPECT_EQ(r.memory_samples(), 0U);
}

TEST(LogCases, ACountThatBeginsAgainNamesNoGpu) {
  std::string text;
  for (int i = 0; i < 48; ++i) text += fmt::format("{}/2 {} 24576\n", i % 3, 4000 + 20 * i);
  logtest::Files files;
  const auto r = logtest::read_logs({files.write("log", text)});
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.device("0").size(), 48U);
}

TEST(LogCases, IterationsThatFallBackAreARestart) {
  std::string text;
  for (const int from : {0, 40, 90})
    for (int i = from; i < from + 60; ++i)
      text += fmt::format("iteration {}: gpu memory used {} MiB\n", i * 10, 4000 + 25 * (i - from));
  logtest::Files files;
  const auto r = logtest::read_logs({files.write("log", text)});
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.notes.warnings, testing::Contains(HasSubstr("goes back by 190, as if another run began")));
}

TEST(LogCases, AUuidInALineNamesItsGpu) {
  const std::string gpu = "GPU-0000000{}-1111-2222-3333-444444444444";
  std::string text;
  for (int i = 0; i < 2; ++i)
    for (int k = 0; k < 3; ++k)
      text += fmt::format("2026-02-01T10:00:0{} updated VRAM gpu={} total=\"15.8 GiB\" available=\"{}.5 GiB\"\n", i,
                          fmt::format(fmt::runtime(gpu), k), 6 - k);
  logtest::Files files;
  const auto r = logtest::read_logs({files.write("log", text)});
  ASSERT_EQ(r.error, "");
  ASSERT_EQ(r.series(), 3U);
  for (int k = 0; k < 3; ++k)
    EXPECT_NEAR(r.device(fmt::format(fmt::runtime(gpu), k)).back().second, (15.8 - 6.5 + k) * 1024, 1) << k;
}

TEST(LogCases, TheGpusOfAScreenAreNotReadAsReadingsOfOneGpu) {
  const std::string row =
      "|   {}  Card A            Off  | 00000000:0{}:00.0 Off |                  N/A |\n"
      "| 23%   33C    P8    16W / 250W | {:>6}MiB / 12196MiB |      0%      Default |\n";
  const std::string text =
      "| NVIDIA-SMI 390.30                 Driver Version: 390.30                    |\n"
      "| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |\n"
      "| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |\n"
      "|===============================+======================+======================|\n" +
      fmt::format(fmt::runtime(row), 0, 2, 171) + fmt::format(fmt::runtime(row), 1, 8, 10);
  logtest::Files files;
  const auto r = logtest::read_logs({files.write("screen.txt", text)});
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("00000000:02:00.0"), SizeIs(1));
  EXPECT_THAT(r.device("00000000:08:00.0"), SizeIs(1));
}

TEST(LogCases, WhatALibraryOfTheHostMeasuresIsNotReadAsThatOfAGpu) {
  std::string text = "psutil, python 3, gpu 40epochs\n\n";
  for (int i = 0; i < 12; ++i) text += fmt::format("      1 memory_usage: {}.5\n", 900 + i);
  logtest::Files files;
  const auto r = logtest::read_logs({files.write("log", text)});
  EXPECT_THAT(r.error, HasSubstr("that of a process on the host"));
}

TEST(LogCases, AnAmountChangesToTheNext) {
  std::string text = "Idle VRAM: 25568 MiB\n";
  for (int i = 1; i <= 12; ++i)
    text +=
        fmt::format("Turn {:>2} (msgs={:>3}):  {} ->  {} MiB  (delta +2)\n", i, 2 * i, 25568 + 2 * i, 25570 + 2 * i);
  logtest::Files files;
  const auto r = logtest::read_logs({files.write("log", text)});
  ASSERT_EQ(r.error, "");
  ASSERT_THAT(r.device("0"), SizeIs(12));
  EXPECT_EQ(r.device("0").back().second, 25594);
}

TEST(LogCases, APieceOfAnXmlDocumentIsThatOfAGpu) {
  logtest::Files files;
  const auto r = logtest::read_logs({files.write(
      "piece.xml",
      "    </pci>\n    <fan_speed>0 %</fan_speed>\n    <fb_memory_usage>\n      <total>6064 MiB</total>\n"
      "      <used>912 MiB</used>\n      <free>5152 MiB</free>\n    </fb_memory_usage>\n    <bar1_memory_usage>\n"
      "      <total>256 MiB</total>\n      <used>5 MiB</used>\n    </bar1_memory_usage>\n")});
  ASSERT_EQ(r.error, "");
  ASSERT_EQ(r.series(), 1U);
  EXPECT_EQ(r.device("0").back().second, 912);
}

TEST(LogCases, ASingleReadingIsReadIfNothingIsLeftOpen) {
  logtest::Files files;
  const auto read = [&](const std::string& text) { return logtest::read_logs({files.write("log", text)}); };
  for (const char* const text :
       {"starting\nafter 5 iterations memory (MB) | allocated: 10250.5 | max allocated: 12606.0 | reserved: 17482.0\n",
        "rank: 0 / device: cuda:0\nAllocated / Reserved: 4162.88MB / 23816.00MB\n"
        "Max Allocated / Max Reserved: 18706.66MB / 23816.00MB\n",
        "      Epoch      GPU_mem   box_loss   Instances       Size\n"
        "    261/300      2.95G     0.3137          3        640: 100%|####| 246/246 [02:17<00:00,  1.79it/s]\n",
        "GPU memory used: 4000 MiB\ndone\n"}) {
    const auto r = read(text);
    EXPECT_EQ(r.error, "") << text;
    EXPECT_GT(r.memory_samples(), 0U) << text;
  }
  for (const char* const text :
       {"This model needs a GPU with 8 GB of VRAM.\n", "Video card VRAM: 24 GB\ndone\n",
        "My job uses 8 GB of GPU memory when it starts\n", "Peak working set: 400 MB\nmemory used: 4000 MiB\n",
        "The limit: at most 70 % of the GPU memory\n", "DEVICE_MAX_VARIABLE_SIZE = 18239350368 bytes (16.99 GB)\n"})
    EXPECT_NE(read(text).error, "") << text;
}

}  // namespace
}  // namespace vramtrack
