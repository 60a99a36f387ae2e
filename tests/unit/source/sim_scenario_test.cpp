#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "paths.hpp"
#include "source/sim/scenario.hpp"
#include "source/sim/sim.hpp"

namespace vramtrack::sim {
namespace {

using testing::HasSubstr;

const std::string kHead = "duration_s = \"1h\"\n[[device]]\ncapacity_bytes = \"24GiB\"\n";  // 3 lines

std::string error_of(const std::string& toml) {
  const Result<Scenario> scenario = parse_scenario(toml, "a.toml");
  return scenario ? "parsed" : scenario.error().message;
}

TEST(SimScenario, ReadsUnitsOrPlainNumbers) {
  const auto s =
      parse_scenario(kHead +
                         "[[process]]\nname = \"p\"\n[[process.shape]]\nkind = \"linear\"\n"
                         "rate_bytes_per_s = \"60MiB/min\"\nonset_s = \"90s\"\n"
                         "[[process.shape]]\nkind = \"linear\"\nrate_bytes_per_s = \"-30KiB/15s\"\n"
                         "[[process.shape]]\nkind = \"requests\"\nrequests_per_s = \"3/min\"\nleak_bytes = 1.5\n",
                     "a.toml");
  ASSERT_TRUE(s) << s.error().message;
  EXPECT_EQ(s->duration_s, 3600);
  EXPECT_EQ(s->devices[0].capacity_bytes, 24ULL << 30);
  const auto& shapes = s->processes[0].shapes;
  EXPECT_DOUBLE_EQ(shapes[0]["rate_bytes_per_s"], 1 << 20);
  EXPECT_DOUBLE_EQ(shapes[0].onset_s, 90);
  EXPECT_DOUBLE_EQ(shapes[1]["rate_bytes_per_s"], -2048);
  EXPECT_DOUBLE_EQ(shapes[2]["requests_per_s"], 0.05);
  EXPECT_DOUBLE_EQ(shapes[2]["leak_bytes"], 1.5);
}

TEST(SimScenario, ATableMayStandForSeveralDevices) {
  const auto s = parse_scenario(
      "duration_s = 60\n[[device]]\ncount = 3\ncapacity_bytes = 9\n[[device]]\nid = \"X\"\ncapacity_bytes = 1\n", "a");
  ASSERT_TRUE(s) << s.error().message;
  ASSERT_EQ(s->devices.size(), 4U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(s->devices[i].capacity_bytes, 9U);
    EXPECT_EQ(s->devices[i].info.index, static_cast<int>(i));
  }
  EXPECT_NE(s->devices[0].info.id, s->devices[2].info.id);
  EXPECT_EQ(s->devices[3].info.id, "X");
  EXPECT_EQ(s->devices[3].info.index, 3);
}

TEST(SimScenario, ReadsTheTruth) {
  const auto s = parse_scenario(
      kHead + "[truth]\nleak = true\npattern = \"cyclic\"\nonset_s = \"5min\"\noom_s = \"2h\"\nsuspect_pid = 7\n", "a");
  ASSERT_TRUE(s) << s.error().message;
  EXPECT_TRUE(s->truth->leak);
  EXPECT_EQ(s->truth->pattern, Pattern::cyclic);
  EXPECT_EQ(s->truth->onset_s, 300);
  EXPECT_EQ(s->truth->oom_s, 7200);
  EXPECT_EQ(s->truth->suspect_pid, 7u);
}

struct Mistake {
  std::string toml;
  std::string line;      ///< "a.toml:4:"
  std::string expected;  ///< a part of the message
};

TEST(SimScenario, MistakesNameFileLineAndTheNearestKey) {
  const std::string process = kHead + "[[process]]\n";  // line 4
  const std::string shape = process + "[[process.shape]]\n";
  const std::vector<Mistake> mistakes = {
      {"duration_s = = 3", "a.toml:1:", "not TOML"},
      {"perod_s = 3\n" + kHead, "a.toml:1:", "nearest known key is 'period_s'"},
      {"period = 3\n" + kHead, "a.toml:1:", "nearest known key is 'period_s'"},
      {"period_s = \"5 parsecs\"\n" + kHead, "a.toml:1:", "5 parsecs"},
      {"period_s = true\n" + kHead, "a.toml:1:", "expected a number or a string with a unit"},
      {"jitter = 3\n" + kHead, "a.toml:1:", "3 is out of range; expected 0 to 0.9"},
      {"seed = 1.5\n" + kHead, "a.toml:1:", "not a whole number"},
      {"seed = nan\n" + kHead, "a.toml:1:", ""},
      {"start = \"today\"\n" + kHead, "a.toml:1:", "without quotes"},
      {"duration_s = 60\n", "a.toml:1:", "at least one [[device]]"},
      {"duration_s = 60\n[[device]]\nname = \"x\"\n", "a.toml:2:", "capacity_bytes: is missing"},
      {kHead + "[[device]]\ncapacity_bytes = 1\nid = \"X\"\n[[device]]\ncapacity_bytes = 1\nid = \"X\"\n",
       "a.toml:7:", "'X' is taken"},
      {"duration_s = 60\n[[device]]\ncount = 2\nid = \"X\"\ncapacity_bytes = 1\n", "a.toml:2:", "'X' is taken"},
      {process + "devices = 3\n", "a.toml:5:", "positions of [[device]] tables, 0 to 0"},
      {process + "start_s = \"-1s\"\n", "a.toml:5:", "start_s"},
      {shape + "kind = \"sawtoth\"\n", "a.toml:6:", "nearest is 'sawtooth'"},
      {shape + "kind = \"sawtooth\"\namplitud_bytes = 3\nperiod_s = 2\namplitude_bytes = 1\n",
       "a.toml:7:", "nearest known key is 'amplitude_bytes'"},
      {shape + "kind = \"linear\"\n", "a.toml:5:", "rate_bytes_per_s: is missing"},
      {shape + "kind = \"linear\"\nrate_bytes_per_s = \"3MiB\"\n", "a.toml:7:", "not a rate"},
      {shape + "kind = \"staircase\"\nstep_bytes = 1\nevery_s = 0.001\nintervals = \"often\"\n",
       "a.toml:9:", "regular, jittered, random"},
      {"duration_s = \"300d\"\n[[device]]\ncapacity_bytes = 1\n[[process]]\n[[process.shape]]\nkind = "
       "\"staircase\"\nstep_bytes = 1\nevery_s = 0.001\n",
       "a.toml:8:", "events"},
      {kHead + "[[fault]]\nkind = \"gap\"\nfrom_s = 9\nto_s = 3\n", "a.toml:7:", "is before from_s"},
      {kHead + "[truth]\nleek = true\n", "a.toml:5:", "nearest known key is 'leak'"},
      {kHead + "[process]\n", "a.toml:4:", "[[process]]"},
  };
  for (const Mistake& mistake : mistakes) {
    const std::string error = error_of(mistake.toml);
    EXPECT_THAT(error, HasSubstr(mistake.line)) << mistake.toml;
    EXPECT_THAT(error, HasSubstr(mistake.expected)) << mistake.toml;
  }
}

TEST(SimScenario, OfSeveralMistakesTheFirstInTheFileIsTold) {
  EXPECT_THAT(error_of("duration_s = 3\nx = 1\n[[device]]\ncapacity_bytes = \"much\"\n"), HasSubstr("a.toml:2:"));
}

TEST(SimScenario, AFolderIsAnError) {
  const auto scenario = load_scenario("/tmp");
  ASSERT_FALSE(scenario);
  EXPECT_THAT(scenario.error().message, testing::StartsWith("/tmp is a directory"));
}

TEST(SimScenario, AMissingFileIsAnError) {
  EXPECT_THAT(load_scenario("/nonexistent/x.toml").error().message, HasSubstr("/nonexistent/x.toml"));
}

TEST(SimScenario, TheDocumentNamesEveryShapeAndEveryKey) {
  std::ifstream file(source_dir() + "/docs/formats/scenario.md");
  std::stringstream text;
  text << file.rdbuf();
  for (const ShapeKind* kind : shape_kinds()) {
    const std::string row = "\n### `" + std::string(kind->name) + "`";
    const std::size_t at = text.str().find(row);
    ASSERT_NE(at, std::string::npos) << kind->name;
    const std::string section = text.str().substr(at, text.str().find("\n#", at + 1) - at);
    for (const Parameter& parameter : kind->parameters)
      EXPECT_THAT(section, HasSubstr("`" + std::string(parameter.key) + "`"));
  }
}

}  // namespace
}  // namespace vramtrack::sim
