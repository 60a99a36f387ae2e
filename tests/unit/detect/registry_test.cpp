// detectors.def is the only list of detectors: exactly those run, in that order, and each has its page.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/settings.hpp"
#include "detect/detector.hpp"
#include "paths.hpp"

namespace vramtrack {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = source_dir();

struct Row {
  std::string name;
  bool is_dissent_kept;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
#define VRAMTRACK_DETECTOR(name, dissent) {#name, std::string_view(#dissent) == "kept"},
#include "detect/detectors.def"
  };
  return all;
}

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> names_of(std::span<const DetectorInfo* const> infos) {
  std::vector<std::string> names;
  for (const DetectorInfo* info : infos) names.emplace_back(info->name);
  return names;
}

TEST(Registry, ListsEveryLineOfTheTableInItsOrder) {
  std::vector<std::string> all;
  std::vector<std::string> kept;
  for (const Row& row : rows()) {
    all.push_back(row.name);
    if (row.is_dissent_kept) kept.push_back(row.name);
  }
  EXPECT_EQ(names_of(detectors()), all);
  EXPECT_EQ(names_of(dissenters()), kept);
}

TEST(Registry, TheFirstIsTheDefault) {
  EXPECT_EQ(DetectionConfig{}.detector, detectors().front()->name);
}

TEST(Registry, AFindingBearsTheNameOfItsDetector) {
  for (const DetectorInfo* info : detectors()) {
    EXPECT_EQ(find_detector(info->name), info);
    EXPECT_EQ(info->make({}, kSecondsAndBytes)->finding().detector, info->name);
    EXPECT_FALSE(info->help.empty());
  }
  EXPECT_EQ(find_detector("no such detector"), nullptr);
}

TEST(Registry, EveryDetectorHasItsFileAndItsPage) {
  for (const Row& row : rows()) {
    EXPECT_TRUE(fs::exists(kRoot / "src/detect" / (row.name + ".cpp"))) << row.name;
    const std::string page = text_of(kRoot / "docs/detectors" / (row.name + ".md"));
    EXPECT_EQ(page.substr(0, page.find('\n')), "# " + row.name) << "docs/detectors/" << row.name << ".md";
  }
}

TEST(Registry, EveryPageIsOfADetector) {
  for (const auto& entry : fs::directory_iterator(kRoot / "docs/detectors")) {
    const std::string name = entry.path().stem();
    if (name == "README") continue;
    EXPECT_NE(find_detector(name), nullptr) << entry.path();
  }
}

// docs/detectors/README.md contains the table, word for word. VRAMTRACK_UPDATE=1 rewrites it.
TEST(Registry, TheIndexOfThePagesIsTheTable) {
  std::string table = "| detector | what it looks at | kept as dissent |\n|---|---|---|\n";
  for (const Row& row : rows())
    table += "| [" + row.name + "](" + row.name + ".md) | " + std::string(find_detector(row.name)->help) + " | " +
             (row.is_dissent_kept ? "yes" : "no") + " |\n";
  const fs::path path = kRoot / "docs/detectors/README.md";
  std::string text = text_of(path);
  const std::size_t begin = text.find("| detector |");
  ASSERT_NE(begin, std::string::npos);
  const std::size_t end = std::min(text.find("\n\n", begin), text.size() - 1) + 1;
  if (std::getenv("VRAMTRACK_UPDATE") != nullptr)
    std::ofstream(path) << text.replace(begin, end - begin, table);
  else
    EXPECT_EQ(text.substr(begin, end - begin), table);
}

TEST(Registry, ASettingIsBoundToDetectorsThatExist) {
  for (const Setting& setting : settings()) {
    if (setting.section != "detection" || setting.binds == "everything" || setting.binds == "all detectors") continue;
    std::istringstream binds{std::string(setting.binds)};
    for (std::string name; std::getline(binds >> std::ws, name, ',');)
      EXPECT_NE(find_detector(name), nullptr) << setting.key << " binds " << name;
  }
}

bool is_compared(std::string line, const std::string& name) {
  std::erase_if(line, [](char c) { return c == ' '; });
  const std::string quoted = '"' + name + '"';
  for (std::size_t at = line.find(quoted); at != std::string::npos; at = line.find(quoted, at + 1)) {
    const std::string before = line.substr(at < 2 ? 0 : at - 2, std::min<std::size_t>(at, 2));
    const std::string after = line.substr(at + quoted.size(), 2);
    for (const char* compare : {"==", "!="})
      if (before == compare || after == compare) return true;
  }
  return false;
}

/// The lines of `code` that compare something with a detector's name.
std::vector<std::string> compares(const std::string& file, const std::string& code) {
  std::vector<std::string> found;
  std::istringstream lines(code);
  for (std::string line; std::getline(lines, line);)
    for (const Row& row : rows())
      if (is_compared(line, row.name)) found.push_back("src/" + file + ": " + line);
  return found;
}

// Comparing with a name is a rule that detectors.def does not contain.
TEST(Registry, NoCodeComparesWithTheNameOfADetector) {
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "src")) {
    const std::string extension = entry.path().extension();
    if (extension != ".cpp" && extension != ".hpp" && extension != ".def") continue;
    ++files;
    EXPECT_THAT(compares(fs::relative(entry.path(), kRoot / "src"), text_of(entry.path())), testing::IsEmpty());
  }
  EXPECT_GT(files, 50U) << "the sources were not found";
  EXPECT_THAT(compares("engine/a.cpp", "if (info->name != \"composite\")"), testing::SizeIs(1));
  EXPECT_THAT(compares("engine/a.cpp", "if (\"spike\" == name)"), testing::SizeIs(1));
  EXPECT_THAT(compares("engine/a.cpp", "f.detector = \"spike\";"), testing::IsEmpty());
}

}  // namespace
}  // namespace vramtrack
