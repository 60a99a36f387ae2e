// How often formats read the head of a log before one of them is chosen.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "core/zone.hpp"
#include "log_testing.hpp"
#include "source/log/recognise.hpp"

namespace vramtrack {
namespace {

using logtest::Files;
using logtest::fixture;
using logtest::utc;

/// The number of times the head of `path` is read; 0 if it is refused.
std::size_t head_reads(const std::string& path) {
  const auto planned = recognise_log(path, utc(), *Zone::open("UTC"));
  return planned ? (*planned)->head_reads : 0;
}

TEST(Recognition, ReadsTheHeadOfAnyFixtureAtMostTwice) {
  std::size_t files = 0;
  std::size_t once = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(fixture(""))) {
    if (!entry.is_regular_file()) continue;
    const std::size_t reads = head_reads(entry.path().string());
    EXPECT_LE(reads, 2U) << entry.path();
    files += reads > 0 ? 1U : 0U;
    once += reads == 1 ? 1U : 0U;
  }
  EXPECT_GT(files, 40U);
  EXPECT_GE(once * 4, files * 3) << "few heads are of two formats";
}

std::string content(const std::string& name) {
  std::ifstream file(fixture(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// `text` with `prefix(line)` before each line.
template <class Prefix>
std::string with_prefix(const std::string& text, Prefix prefix) {
  std::string out = prefix(0);
  int line = 0;
  for (const char c : text) {
    out += c;
    if (c == '\n') out += prefix(++line);
  }
  return out;
}

TEST(Recognition, ReadsAMixtureOnceByEachFormatInIt) {
  const auto worker = [](int) { return std::string("worker-0 | "); };
  const auto time = [](int line) { return fmt::format("2026-03-01T10:{:02}:{:02}Z ", line / 60 % 60, line % 60); };
  struct Mixture {
    std::string what, text;
    std::size_t most = 2;
  };
  const Mixture logs[] = {
      {"a screen before text", content("table_linux.log") + content("text.log")},
      {"text before a screen", content("text.log") + content("table_linux.log")},
      // Screens, rows, and lines of text.
      {"a screen before a table", content("table_linux.log") + content("query_gpu.csv"), 3},
      {"text before a table", content("text.log") + content("query_gpu.csv")},
      // A few screens are also read as text, and with the prefix.
      {"screens behind a prefix", with_prefix(content("table_linux.log"), worker), 3},
      {"screens behind a time", with_prefix(content("nvtop_screen.log"), time), 3},
      {"a table behind a time", with_prefix(content("query_gpu.csv"), time)},
      {"a table of your own behind a time", with_prefix(content("own_logger.csv"), time)},
  };
  Files files;
  for (const Mixture& log : logs) EXPECT_LE(head_reads(files.write("log", log.text)), log.most) << log.what;
}

}  // namespace
}  // namespace vramtrack
