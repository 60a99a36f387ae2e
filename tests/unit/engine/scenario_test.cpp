// Scenario in, verdicts out: every file of tests/scenarios is played through the engine; the reports are compared with
// the file's [truth] and with tests/golden/scenarios.txt (VRAMTRACK_UPDATE_GOLDEN=1 rewrites it).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "paths.hpp"
#include "scenario_run.hpp"

namespace vramtrack {
namespace {

const std::string kTests = tests_dir();

std::vector<std::string> scenario_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(kTests + "/scenarios"))
    if (entry.path().extension() == ".toml") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

std::string who(const SeriesKey& key, const View& view) {
  std::string device = key.device_id;
  for (const SeriesView& s : view.series)
    if (s.key == key && s.device.index) device = fmt::format("gpu{}", *s.device.index);
  return key.pid == 0 ? device : fmt::format("{}/{}", device, key.pid);
}

/// One line per scenario: the device's final verdict, then every alert.
std::string summary(const ScenarioRun& run) {
  std::string line = run.scenario.name + ":";
  for (const SeriesView& s : run.view->series)
    if (s.key.metric == Metric::device_used) {
      const Finding& f = s.verdict.finding;
      line += fmt::format(" {}={}{}", who(s.key, *run.view), to_string(f.state),
                          f.pattern == Pattern::none ? "" : fmt::format("/{}", to_string(f.pattern)));
    }
  for (const AlertChange& change : run.changes) {
    if (change.news == AlertNews::escalated) continue;
    const SeriesKey& key = run.catalog.key(change.alert.series);
    if (change.news == AlertNews::raised)
      line += fmt::format(" +{}@{:.0f}min:{}", who(key, *run.view), run.seconds(change.alert.raised) / 60,
                          to_string(change.alert.finding.pattern));
    else
      line += fmt::format(" -{}@{:.0f}min:{}", who(key, *run.view), run.seconds(*change.alert.cleared) / 60,
                          to_string(change.alert.ended));
  }
  return line;
}

/// A leak, with or without an alert, that was not withdrawn: `analyze` exits with 1 for it.
bool claimed(const ScenarioRun& run) {
  for (const SeriesView& s : run.view->series)
    for (const std::vector<Alert>* all : {&s.alerts, &s.suspicions})
      for (const Alert& alert : *all)
        if (alert.finding.leak && alert.ended != AlertEnd::withdrawn) return true;
  return false;
}

TEST(Scenarios, EveryVerdictIsAsRecorded) {
  std::string got;
  for (const std::string& file : scenario_files()) {
    auto scenario = sim::load_scenario(file);
    ASSERT_TRUE(scenario) << scenario.error().message;
    got += summary(*play(*scenario)) + "\n";
  }
  const std::string golden = kTests + "/golden/scenarios.txt";
  if (std::getenv("VRAMTRACK_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(golden) << got;
    GTEST_SKIP() << "rewrote " << golden;
  }
  std::stringstream expected;
  expected << std::ifstream(golden).rdbuf();
  EXPECT_EQ(got, expected.str());
}

class Truth : public testing::TestWithParam<std::string> {};

/// Series that cannot be judged while they last, and why (docs/detectors/judge.md, "When it is wrong").
const std::set<std::string> kUndecidable = {
    "leak_diurnal",          // at night the load falls as fast as the leak rises: the total stands still for nine hours
    "leak_partial_release",  // its releases grow with its allocations: bounded, and withdrawn in the end
};

TEST_P(Truth, LeaksAreClaimedAndHealthIsNot) {
  auto scenario = sim::load_scenario(GetParam());
  ASSERT_TRUE(scenario) << scenario.error().message;
  ASSERT_TRUE(scenario->truth) << "a scenario of tests/scenarios says what is so";
  const auto run = play(*scenario);
  run->engine->end_of_recording();
  run->view = run->engine->view();
  if (kUndecidable.contains(run->scenario.name)) GTEST_SKIP() << "undecidable: " << summary(*run);
  EXPECT_EQ(claimed(*run), run->scenario.truth->leak) << summary(*run);
  if (!run->scenario.truth->leak || !run->scenario.truth->suspect_pid || !run->first_raise) return;
  const std::string device = run->scenario.devices[run->scenario.truth->device].info.id;
  for (const SeriesView& s : run->first_raise->series)
    if (s.key.metric == Metric::device_used && s.key.device_id == device && s.verdict.finding.leak) {
      ASSERT_TRUE(s.verdict.suspect) << summary(*run);
      EXPECT_EQ(s.verdict.suspect->pid, *run->scenario.truth->suspect_pid) << summary(*run);
    }
}

INSTANTIATE_TEST_SUITE_P(All, Truth, testing::ValuesIn(scenario_files()), [](const auto& file) {
  std::string name = std::filesystem::path(file.param).stem().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

}  // namespace
}  // namespace vramtrack
