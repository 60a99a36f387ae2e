#include "core/config.hpp"

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>

#include "core/settings.hpp"
#include "paths.hpp"

namespace vramtrack {
namespace {

using ::testing::HasSubstr;

std::string file_error(std::string_view toml) {
  LayeredConfig layers;
  const Status status = layers.apply_file(toml, "c.toml");
  return status ? std::string() : status.error().message;
}

TEST(Config, TheDocumentsOwnFileIsRead) {
  LayeredConfig layers;
  const Status status = layers.apply_file(R"([detection]
# Minimum R² for trend significance (0.0-1.0)
min-r-squared = 0.8
min-slope-mb-per-sec = 0.5
confidence-threshold = 0.85
minimum-samples = 30
analysis-window-hours = 2
)",
                                          "c.toml");
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(layers.config().detection.min_r_squared, 0.8);
  EXPECT_EQ(layers.config().detection.min_slope_mb_per_sec, 0.5);
  EXPECT_EQ(layers.config().detection.confidence_threshold, 0.85);
  EXPECT_EQ(layers.config().detection.minimum_samples, 30);
  EXPECT_EQ(layers.config().detection.analysis_window_hours, 2.0);
  EXPECT_EQ(layers.origin(*find_setting("min-r-squared")), "c.toml:3");
  EXPECT_EQ(layers.origin(*find_setting("spike-percent")), "default");
}

TEST(Config, EachLayerOverridesTheOneBelow) {
  LayeredConfig layers;
  ASSERT_TRUE(layers.apply_file("[detection]\nmin-r-squared = 0.5\nspike-percent = 30\nleak-prior = 0.2\n", "f"));
  ASSERT_TRUE(layers.apply_variable("VRAMTRACK_DETECTION_MIN_R_SQUARED", "0.6"));
  ASSERT_TRUE(layers.apply_variable("VRAMTRACK_DETECTION_SPIKE_PERCENT", "40"));
  ASSERT_TRUE(layers.apply_assignment("min-r-squared=0.9", "--set"));
  EXPECT_EQ(layers.config().detection.min_r_squared, 0.9);
  EXPECT_EQ(layers.config().detection.spike_percent, 40);
  EXPECT_EQ(layers.config().detection.leak_prior, 0.2);
  EXPECT_EQ(layers.origin(*find_setting("detection.min-r-squared")), "--set");
  EXPECT_EQ(layers.origin(*find_setting("detection.spike-percent")), "VRAMTRACK_DETECTION_SPIKE_PERCENT");
  EXPECT_EQ(layers.origin(*find_setting("detection.leak-prior")), "f:4");
}

TEST(Config, AnUnknownKeyNamesFileLineAndTheNearest) {
  const std::string error = file_error("[detection]\n\nmin-rsquared = 0.5\n");
  EXPECT_THAT(error, HasSubstr("c.toml:3:"));
  EXPECT_THAT(error, HasSubstr("unknown key 'min-rsquared' in [detection]; the nearest is 'min-r-squared'"));
}

TEST(Config, AnUnknownSectionNamesTheNearest) {
  EXPECT_THAT(file_error("[detecton]\n"),
              HasSubstr("c.toml:1: unknown section [detecton]; the nearest is [detection]"));
}

TEST(Config, AKeyInTheWrongPlaceIsSentToTheRightOne) {
  EXPECT_THAT(file_error("min-r-squared = 0.5\n"), HasSubstr("put it under [detection]"));
  EXPECT_THAT(file_error("[watch]\nraw-hours = 4\n"),
              HasSubstr("c.toml:2: 'raw-hours' is not a key of [watch]; it belongs under [store]"));
  EXPECT_THAT(file_error("detection = 4\n"), HasSubstr("'detection' is a section"));
}

TEST(Config, TheFirstErrorOfSeveralIsNamed) {
  EXPECT_THAT(file_error("[store]\nraw-hours = -1\n[detection]\nbad = 1\n"), HasSubstr("c.toml:2:"));
}

TEST(Config, BadValuesSayWhatWasExpected) {
  EXPECT_THAT(file_error("[detection]\nmin-r-squared = 1.5\n"),
              HasSubstr("out of range; expected a number from 0 to 1"));
  EXPECT_THAT(file_error("[detection]\nmin-r-squared = nan\n"), HasSubstr("out of range"));
  EXPECT_THAT(file_error("[detection]\nmin-r-squared = \"high\"\n"), HasSubstr("wrong type; expected a number"));
  EXPECT_THAT(file_error("[detection]\nminimum-samples = 2.5\n"), HasSubstr("wrong type"));
  EXPECT_THAT(file_error("[watch]\nrecord = 1\n"), HasSubstr("expected true or false"));
  EXPECT_THAT(file_error("[store]\npath = 1979-05-27\n"), HasSubstr("wrong type"));
  EXPECT_THAT(file_error("[sources]\nenabled = [1, 2]\n"), HasSubstr("a list of strings"));
}

TEST(Config, ABadRegularExpressionIsAnError) {
  EXPECT_THAT(file_error("[detection]\nignore-patterns = [\"ok\", \"(\"]\n"),
              HasSubstr("c.toml:2: detection.ignore-patterns: '(' is not a regular expression"));
}

TEST(Config, ARegularExpressionThatWouldExhaustTheStackIsAnError) {
  const std::string nested(500'000, '(');
  EXPECT_THAT(file_error("[detection]\nignore-patterns = [\"" + nested + "\"]\n"), HasSubstr("too long"));
}

TEST(Config, InvalidTomlNamesTheLine) {
  EXPECT_THAT(file_error("[detection]\nmin-r-squared = = 1\n"), HasSubstr("c.toml:2: not valid TOML"));
}

TEST(Config, AFileWithAnErrorAppliesNothing) {
  LayeredConfig layers;
  ASSERT_FALSE(layers.apply_file("[detection]\nmin-r-squared = 0.5\nbad = 1\n", "f"));
  EXPECT_EQ(layers.config().detection.min_r_squared, Config{}.detection.min_r_squared);
}

TEST(Config, VariablesThatAreNotOursAreLeftAlone) {
  LayeredConfig layers;
  EXPECT_TRUE(layers.apply_variable("VRAMTRACK_TRACES", "/x"));
  EXPECT_TRUE(layers.apply_variable("HOME", "/x"));
  const Status status = layers.apply_variable("VRAMTRACK_DETECTION_SPIKE_PERCENTAGE", "20");
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("the nearest is 'detection.spike-percent'"));
}

TEST(Config, AssignmentsReadEveryType) {
  LayeredConfig layers;
  ASSERT_TRUE(layers.apply_assignment("watch.record=off", "--set"));
  ASSERT_TRUE(layers.apply_assignment("sources.enabled=nvml, drm", "--set"));
  ASSERT_TRUE(layers.apply_assignment("ignore-patterns=^a{1,2}[xy]", "--set"));
  ASSERT_TRUE(layers.apply_assignment("detection.minimum_samples=7", "--set"));
  EXPECT_FALSE(layers.config().watch.record);
  EXPECT_THAT(layers.config().sources.enabled, ::testing::ElementsAre("nvml", "drm"));
  EXPECT_THAT(layers.config().detection.ignore_patterns, ::testing::ElementsAre("^a{1,2}[xy]"));
  EXPECT_EQ(layers.config().detection.minimum_samples, 7);
  ASSERT_TRUE(layers.apply_assignment(R"(ignore-patterns=["a", "b,c"])", "--set"));
  EXPECT_THAT(layers.config().detection.ignore_patterns, ::testing::ElementsAre("a", "b,c"));
  for (const char* bad : {"", "=", "min-r-squared", "min-r-squared=", "min-r-squared=0.5x", "watch.record=maybe",
                          "minimum-samples=1e2", "min-r-squared=inf", "nothing=1"})
    EXPECT_FALSE(layers.apply_assignment(bad, "--set")) << bad;
}

TEST(Config, CriticalMayNotComeBeforeWarning) {
  LayeredConfig layers;
  ASSERT_TRUE(layers.apply_assignment("severity.critical-hours=48", "--set"));
  const Status status = layers.check();
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("48, from --set"));
  EXPECT_TRUE(LayeredConfig().check());
}

TEST(Config, EveryDefaultPassesItsOwnCheck) {
  LayeredConfig layers;
  for (const Setting& s : settings()) {
    const Status status = layers.apply(s, s.get(Config{}), "test");
    EXPECT_TRUE(status) << s.name() << ": " << (status ? "" : status.error().message);
    EXPECT_EQ(find_setting(s.name()), &s);
  }
}

TEST(Config, TheTemplateIsAFileThatChangesNothingAndNamesEveryKey) {
  std::string text = config_template();
  LayeredConfig layers;
  ASSERT_TRUE(layers.apply_file(text, "t"));
  for (const Setting& s : settings()) {
    EXPECT_THAT(text, HasSubstr("\n#" + std::string(s.key) + " = "));
    EXPECT_EQ(layers.origin(s), "default");
  }
  // Without the '#' before each key, it is still valid and has the default values.
  std::string active;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    active += (line.size() > 1 && line[0] == '#' && line[1] != ' ' ? line.substr(1) : line) + '\n';
  const Status status = layers.apply_file(active, "t");
  ASSERT_TRUE(status) << status.error().message;
  for (const Setting& s : settings()) EXPECT_EQ(s.get(layers.config()), s.get(Config{})) << s.name();
}

TEST(Config, AReloadTakesTheLiveSettingsAndNamesTheOthers) {
  LayeredConfig next;
  for (const char* live : {"watch.interval-seconds=2", "metrics.per-process=true", "agent.max-streams=3",
                           "agent.token-file=/t", "agent.allowed-hosts=gpu1"})
    ASSERT_TRUE(next.apply_assignment(live, "t"));
  for (const char* unused : {"watch.status-every-seconds=5", "cost.usd-per-gpu-hour=2"})
    ASSERT_TRUE(next.apply_assignment(unused, "t"));
  EXPECT_THAT(settings_for_restart(Config{}, next.config()), ::testing::IsEmpty());
  ASSERT_TRUE(next.apply_assignment("store.raw-hours=3", "t"));
  ASSERT_TRUE(next.apply_assignment("agent.listen=127.0.0.1:1", "t"));
  EXPECT_THAT(settings_for_restart(Config{}, next.config()), ::testing::ElementsAre("store.raw-hours", "agent.listen"));
}

TEST(Config, EverySentenceOfTheTableEndsWithAFullStop) {
  for (const Setting& s : settings()) {
    EXPECT_TRUE(s.help.ends_with('.')) << s.name();
    EXPECT_TRUE(s.when.ends_with('.')) << s.name();
  }
}

TEST(Config, NearestNameIsByEditDistance) {
  const std::string_view known[] = {"spike", "judge", "linear_trend"};
  EXPECT_EQ(nearest_name("spkie", known), "spike");
  EXPECT_EQ(nearest_name("linear", known), "linear_trend");
  EXPECT_EQ(nearest_name("x", {}), "");
}

TEST(Config, ANameIsSuggestedOnlyWhereItMayHaveBeenMeant) {
  const std::string_view known[] = {"spike", "judge", "linear_trend"};
  EXPECT_EQ(near_words("jugde", known), "the nearest is 'judge'");
  EXPECT_EQ(near_words("lin", known), "the nearest is 'linear_trend'");
  EXPECT_EQ(near_words("foo", known), "choose one of spike, judge, linear_trend");
  const std::string_view options[] = {"--since", "--set", "--json"};
  EXPECT_EQ(near_name("--price", options), "");
  EXPECT_EQ(near_name("--speed", options), "");
  EXPECT_EQ(near_name("--sicne", options), "--since");
  EXPECT_EQ(near_name("", {}), "");
  const std::string_view commands[] = {"top", "trace", "report"};
  EXPECT_EQ(near_name("stop", commands), "");
  EXPECT_EQ(near_name("tpo", commands), "top");
  EXPECT_EQ(near_name("eport", commands), "report");
}

// docs/CONFIG.md contains the tables of config.def, word for word. VRAMTRACK_UPDATE=1 rewrites them.
TEST(Config, ReferenceInTheDocumentsIsTheTable) {
  const std::string path = source_dir() + "/docs/CONFIG.md";
  std::stringstream buffer;
  buffer << std::ifstream(path).rdbuf();
  std::string text = buffer.str();
  ASSERT_FALSE(text.empty()) << path;
  for (const std::string_view section : setting_sections()) {
    const std::string begin = "<!-- table: " + std::string(section) + " -->\n";
    const auto from = text.find(begin);
    ASSERT_NE(from, std::string::npos) << begin;
    const auto start = from + begin.size();
    const auto length = text.find("<!-- end -->", start) - start;
    if (std::getenv("VRAMTRACK_UPDATE") != nullptr)
      text.replace(start, length, reference_table(section));
    else
      EXPECT_EQ(text.substr(start, length), reference_table(section));
  }
  if (std::getenv("VRAMTRACK_UPDATE") != nullptr) std::ofstream(path) << text;
}

TEST(ConfigProperty, NoTextBreaksTheParser) {
  const bool ok = rc::check([](const std::string& text) {
    LayeredConfig layers;
    const Status file = layers.apply_file(text, "f");
    if (!file) RC_ASSERT(file.error().message.rfind("f:", 0) == 0);
    const Status assignment = layers.apply_assignment(text, "--set");
    if (!assignment) RC_ASSERT(!assignment.error().message.empty());
  });
  EXPECT_TRUE(ok);
}

TEST(ConfigProperty, AValueWrittenIsTheValueRead) {
  const bool ok = rc::check([](const std::string& path, std::vector<std::string> names, std::uint16_t thousandths) {
    // Bytes that are not UTF-8 text are not TOML.
    const auto ascii = [](std::string text) {
      for (char& c : text) c = static_cast<char>(static_cast<unsigned char>(c) & 0x7f);
      return text;
    };
    for (std::string& name : names) name = ascii(name);
    LayeredConfig layers;
    const double ratio = std::min(1.0, thousandths / 65535.0);
    const std::string text = "[store]\npath = " + toml_text(ascii(path)) +
                             "\n[sources]\nenabled = " + toml_text(names) +
                             "\n[detection]\nmin-r-squared = " + toml_text(ratio) + "\n";
    const Status status = layers.apply_file(text, "f");
    if (!status) RC_FAIL(status.error().message);
    RC_ASSERT(layers.config().store.path == ascii(path));
    RC_ASSERT(layers.config().sources.enabled == names);
    RC_ASSERT(layers.config().detection.min_r_squared == ratio);
  });
  EXPECT_TRUE(ok);
}

}  // namespace
}  // namespace vramtrack
