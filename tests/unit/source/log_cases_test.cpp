// Logs of the shape of public ones: readings that lack rows, columns that seem to be an index, figures of one step of a
// program. GPUs are never merged, and a log is not refused for one bad reading.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "log_testing.hpp"
#include "source/log/line_pattern.hpp"

namespace vramtrack {
namespace {

using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Not;
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
    if (gpu != 3)
      for (const auto& [time, mib] : its) EXPECT_EQ(mib, 9000 + 20 * gpu) << gpu;
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

// A job's log: rows of blanks look like columns, but the line above them has fewer titles.
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
  EXPECT_THAT(r.error, HasSubstr("no column of used memory"));
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
  EXPECT_THAT(r.warnings(), HasSubstr("do not add up to one total"));
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
  EXPECT_THAT(read_text("# Nvidia System GPU Input Plugin\n\nThis plugin collects metrics.\n").error,
              Not(HasSubstr("as a dmon log")));
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
  EXPECT_THAT(read_text("used_gpu_memory [MiB]\n1 MiB\n69 MiB\n74 MiB\n").warnings(),
              HasSubstr("what one process holds"));
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
  EXPECT_EQ(r.catalog->device("0")->capacity_bytes, std::nullopt);
}

TEST(LogCases, MeansOfAnIntervalAreReadForWantOfReadings) {
  std::string text = "timestamp,cuda:0 (gpu:0)/memory_used (MiB)/mean,cuda:1 (gpu:1)/memory_used (MiB)/mean\n";
  for (int i = 0; i < 6; ++i) text += fmt::format("2026-03-01T10:00:{:02},{},{}\n", i, 4000 + i, 9000);
  const auto r = read_text(text, "a.csv");
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.series(), 2U);
  EXPECT_THAT(read_text("RUN,MEM_AVG\n0,2028.0\n1,2028.0\n2,2061.5\n", "a.csv").error, HasSubstr("differs in each"));
}

}  // namespace
}  // namespace vramtrack
