// Other people's recordings, if they are available: every file is read, and every row is a sample.
#include <gmock/gmock.h>
#include <zlib.h>

#include <cstdlib>

#include "log_testing.hpp"
#include "paths.hpp"

namespace vramtrack {
namespace {

std::filesystem::path traces() {
  const char* given = std::getenv("VRAMTRACK_TRACES");
  return given != nullptr ? given : std::filesystem::path(source_dir()) / ".." / "shared" / "traces";
}

/// Counts the lines of a plain or gzipped file, with another reader than the one under test.
std::size_t count_lines(const std::filesystem::path& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  std::size_t lines = 0;
  char buffer[65536];
  for (int n = gzread(file, buffer, sizeof buffer); n > 0; n = gzread(file, buffer, sizeof buffer))
    lines += static_cast<std::size_t>(std::count(buffer, buffer + n, '\n'));
  gzclose(file);
  return lines;
}

TEST(Traces, EverySeriesIsReadRowForRow) {
  const auto folder = traces() / "series";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no recordings at " << folder << " (VRAMTRACK_TRACES)";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path().string());
    LogOptions options = logtest::utc();
    if (entry.path().filename().string().starts_with("aux_")) options.format = "csv";  // memory of hosts
    const auto r = logtest::read_logs({entry.path().string()}, options);
    EXPECT_EQ(r.error, "");
    EXPECT_EQ(r.samples.size(), count_lines(entry.path()) - 1);
    EXPECT_EQ(r.notes.skipped_lines, 0U);
    EXPECT_TRUE(r.in_order());
  }
}

TEST(Traces, RawLogsAreReadUnmodified) {
  const auto folder = traces() / "raw";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no recordings at " << folder << " (VRAMTRACK_TRACES)";
  const auto expect = [&](const char* name, std::size_t samples, std::size_t series) {
    const auto r = logtest::read_logs({(folder / name).string()});
    EXPECT_EQ(r.error, "") << name;
    EXPECT_EQ(r.memory_samples(), samples) << name;
    EXPECT_EQ(r.series(), series) << name;
    EXPECT_EQ(r.notes.skipped_lines, 0U) << name;
    EXPECT_TRUE(r.in_order()) << name;
  };
  // Counted with grep and Python.
  expect("mddair_query_gpu_no_total.csv", 5239, 1);
  expect("orin_query_gpu.csv", 590, 1);
  expect("rtx2070_repeated_headers.csv", 224, 1);
  expect("rtx5080_windows_table.log", 160, 1);
  expect("rtx8000_table_processes.log", 571 + 516, 1 + 20);
}

}  // namespace
}  // namespace vramtrack
