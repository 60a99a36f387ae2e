// Logs of the shape of public ones: readings that lack rows, columns that seem to be an index, figures of one step of a
// program. GPUs are never merged, and a log is not refused for one bad reading.
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

}  // namespace
}  // namespace vramtrack
