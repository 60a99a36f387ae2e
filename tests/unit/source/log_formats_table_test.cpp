// Checks the table in docs/formats/logs.md of every format, its fixtures and the number of samples in each.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "log_testing.hpp"
#include "paths.hpp"
#include "source/log/format.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

struct Row {
  std::string format, seen, fixture;
  std::size_t samples = 0;
};

/// Rows "| `format` | where | [file](...) | samples |" in the section "Where the layouts come from".
std::vector<Row> table() {
  std::ifstream file(source_dir() + "/docs/formats/logs.md");
  std::vector<Row> rows;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) inside = line == "## Where the layouts come from";
    if (!inside || !line.starts_with("| `")) continue;
    std::vector<std::string> cells;
    for (std::size_t at = 1; at < line.size();) {
      const std::size_t end = line.find(" |", at);
      cells.emplace_back(logtext::trim(std::string_view(line).substr(at, end - at)));
      at = end + 2;
    }
    EXPECT_EQ(cells.size(), 4U) << line;
    if (cells.size() != 4) continue;
    const auto unquoted = [](const std::string& cell) { return cell.substr(1, cell.size() - 2); };
    rows.push_back({unquoted(cells[0]), cells[1], unquoted(cells[2]), std::stoul(cells[3])});
  }
  return rows;
}

TEST(FormatsTable, GivesTheSamplesOfEachFixture) {
  for (const Row& row : table()) {
    const auto r = logtest::read_logs({logtest::fixture(row.fixture)});
    EXPECT_EQ(r.error, "") << row.fixture;
    EXPECT_THAT(r.formats, testing::ElementsAre(row.format)) << row.fixture;
    EXPECT_EQ(r.memory_samples(), row.samples) << row.fixture;
    EXPECT_GT(row.samples, 0U) << row.fixture;
    EXPECT_FALSE(row.seen.empty()) << row.fixture;
  }
}

TEST(FormatsTable, HasEveryFormatAndEveryFixture) {
  std::set<std::string> formats, fixtures;
  for (const Row& row : table()) {
    formats.insert(row.format);
    fixtures.insert(row.fixture);
  }
  for (const LogFormatInfo* format : log_formats())
    EXPECT_TRUE(formats.contains(std::string(format->name))) << format->name;
  const std::filesystem::path folder = logtest::fixture("");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().extension() != ".py") {
      EXPECT_TRUE(fixtures.contains(std::filesystem::relative(entry.path(), folder).string())) << entry.path();
    }
}

}  // namespace
}  // namespace vramtrack
