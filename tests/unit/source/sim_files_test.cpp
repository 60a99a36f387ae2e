// The committed scenarios: each parses, plays within its capacities, and matches its stated truth.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "paths.hpp"
#include "source/sim/sim.hpp"

namespace vramtrack::sim {
namespace {

std::vector<std::filesystem::path> scenario_files() {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::directory_iterator(tests_dir() + "/scenarios"))
    if (entry.path().extension() == ".toml") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

/// The result of a whole run of a scenario, for the device in its truth.
struct Outcome {
  std::vector<double> used_bytes;
  std::uint64_t largest_bytes = 0;  ///< in any device series
  std::uint64_t smallest_bytes = ~0ULL;
  double first_oom_s = -1;
  std::vector<std::uint32_t> pids;
};

Outcome play(const Scenario& scenario) {
  Outcome out;
  Catalog catalog;
  const auto source = make_simulation(scenario, catalog);
  const auto device = *catalog.find({Metric::device_used, scenario.devices[scenario.truth->device].info.id, 0, 0});
  Batch batch;
  for (bool more = true; more;) {
    batch.clear();
    more = *source->poll({}, batch) == Progress::more;
    for (const Sample& sample : batch.samples) {
      if (catalog.key(sample.series).metric != Metric::device_used) continue;
      out.largest_bytes = std::max(out.largest_bytes, sample.bytes);
      out.smallest_bytes = std::min(out.smallest_bytes, sample.bytes);
      if (sample.series == device) out.used_bytes.push_back(static_cast<double>(sample.bytes));
    }
    for (const Event& event : batch.events)
      if (event.text == "out of memory" && out.first_oom_s < 0)
        out.first_oom_s = seconds_between(scenario.start.value_or(Timestamp{}), event.time);
  }
  for (const ProcessInfo& process : catalog.processes()) out.pids.push_back(process.pid);
  return out;
}

class SimFiles : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(SimFiles, PlaysAndItsTruthIsTrue) {
  const Result<Scenario> scenario = load_scenario(GetParam().string());
  ASSERT_TRUE(scenario) << scenario.error().message;
  EXPECT_EQ(scenario->name, GetParam().stem());
  EXPECT_FALSE(scenario->help.empty());
  ASSERT_TRUE(scenario->truth);
  const Truth& truth = *scenario->truth;
  const Outcome outcome = play(*scenario);

  EXPECT_LE(outcome.largest_bytes, scenario->devices.front().capacity_bytes);
  EXPECT_GE(outcome.smallest_bytes, static_cast<std::uint64_t>(scenario->devices.front().baseline_bytes));
  EXPECT_GT(outcome.used_bytes.size(), 100u);
  if (truth.oom_s) {
    EXPECT_NEAR(outcome.first_oom_s, *truth.oom_s, 2 * scenario->period_s);
  } else {
    EXPECT_EQ(outcome.first_oom_s, -1) << "ends out of memory: say so in [truth] oom_s";
  }
  if (truth.suspect_pid) {
    EXPECT_THAT(outcome.pids, testing::Contains(*truth.suspect_pid));
  }
  if (truth.leak) {
    ASSERT_TRUE(truth.onset_s);
    EXPECT_NE(truth.pattern, Pattern::none);
    // It grows considerably from its onset to the OOM (or the end).
    const double n = static_cast<double>(outcome.used_bytes.size());
    const auto at = [&](double t_s) {
      return outcome.used_bytes[static_cast<std::size_t>(std::clamp(n * t_s / scenario->duration_s, 0.0, n - 1))];
    };
    const double end_s = truth.oom_s ? *truth.oom_s - 3 * scenario->period_s : scenario->duration_s;
    EXPECT_GT(at(end_s) - at(*truth.onset_s + 120), 0.01 * at(0));
  }
}

std::string label(const testing::TestParamInfo<std::filesystem::path>& info) {
  return info.param.stem();
}
INSTANTIATE_TEST_SUITE_P(Files, SimFiles, testing::ValuesIn(scenario_files()), label);

TEST(SimFilesAll, BothKindsAreThere) {
  int leaks = 0, healthy = 0;
  for (const auto& file : scenario_files()) (load_scenario(file.string())->truth->leak ? leaks : healthy) += 1;
  EXPECT_GE(leaks, 20);
  EXPECT_GE(healthy, 20);
}

}  // namespace
}  // namespace vramtrack::sim
