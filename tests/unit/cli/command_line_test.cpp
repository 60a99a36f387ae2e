#include "cli/command_line.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "cli/arguments.hpp"
#include "golden.hpp"

namespace vramtrack::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// The arguments of this test's command when it was last run.
struct Given {
  std::vector<std::string> files;
  bool json = false;
  std::string format = "text";
  std::optional<double> interval_s;
  std::optional<std::uint64_t> capacity_bytes;
  std::uint64_t top = 10;
  double rate = 0.5;
  std::vector<std::string> gpus;
  std::vector<std::string> settings;
};

Given g_given;

Runner declare_probe(Arguments& arguments) {
  const auto given = std::make_shared<Given>();
  arguments.operands("FILE", "Files", text(given->files)).required();
  arguments.flag("--json", "As JSON", given->json);
  arguments.option("--format", "NAME", "A format", one_of({"text", "html"}, given->format));
  arguments.option("--interval", "DURATION", "An interval", duration(given->interval_s));
  arguments.option("--capacity", "SIZE", "A capacity", capacity(given->capacity_bytes));
  arguments.option("--top", "NUMBER", "A number", whole_number([given](std::uint64_t n) { given->top = n; }, 1, 100));
  arguments.option("--rate", "P", "A ratio", number(given->rate, 0, 1));
  arguments.list("--gpu", "GPUS", "Some GPUs", text(given->gpus));
  arguments.repeated("--set", "KEY=VALUE", "Settings", text(given->settings));
  return [given](Console&) {
    g_given = *given;
    return 7;
  };
}

Runner declare_verb(Arguments&) {
  return [](Console&) { return 8; };
}

constexpr CommandInfo kProbe{"probe", "Takes one of everything", "Example:\n  vramtrack probe x", declare_probe};
constexpr CommandInfo kShow{"show", "Shows", "Example:\n  vramtrack group show", declare_verb};
constexpr CommandInfo kHide{"hide", "Hides", "Example:\n  vramtrack group hide", declare_verb};
constexpr const CommandInfo* kVerbs[] = {&kShow, &kHide};
constexpr CommandInfo kGroup{"group", "Has verbs", "Example:\n  vramtrack group show", nullptr, kVerbs};
constexpr const CommandInfo* kCommands[] = {&kProbe, &kGroup};

Parsed parse(const std::vector<const char*>& words) {
  std::vector<const char*> argv = {"vramtrack"};
  argv.insert(argv.end(), words.begin(), words.end());
  return parse_command_line(kCommands, static_cast<int>(argv.size()), argv.data());
}

/// The usage error for these words, which exits with 2 and runs nothing.
std::string error_of(const std::vector<const char*>& words) {
  const Parsed parsed = parse(words);
  EXPECT_FALSE(parsed.run) << "it was parsed";
  EXPECT_EQ(parsed.exit_code, 2);
  EXPECT_EQ(parsed.out, "");
  return parsed.error;
}

Given given(const std::vector<const char*>& words) {
  const Parsed parsed = parse(words);
  EXPECT_EQ(parsed.error, "");
  Console console;
  g_given = Given();
  if (parsed.run) {
    EXPECT_EQ(parsed.run(console), 7);
  }
  return g_given;
}

TEST(CommandLine, EveryKindOfArgumentIsStored) {
  const Given all = given(
      {"probe", "--json", "--format", "html", "--interval=90s", "--capacity", "24GiB", "--top", "3", "--rate", "0.25",
       "--gpu", "0,1",    "--gpu",    "2",    "--set",          "a=1,2",      "--set", "b=3",   "x", "y"});
  EXPECT_THAT(all.files, ElementsAre("x", "y"));
  EXPECT_TRUE(all.json);
  EXPECT_EQ(all.format, "html");
  EXPECT_EQ(all.interval_s, 90);
  EXPECT_EQ(all.capacity_bytes, 24ULL << 30U);
  EXPECT_EQ(all.top, 3U);
  EXPECT_EQ(all.rate, 0.25);
  EXPECT_THAT(all.gpus, ElementsAre("0", "1", "2"));
  EXPECT_THAT(all.settings, ElementsAre("a=1,2", "b=3"));
}

TEST(CommandLine, WhatIsNotGivenKeepsItsDefault) {
  const Given none = given({"probe", "x"});
  EXPECT_FALSE(none.json);
  EXPECT_FALSE(none.interval_s);
  EXPECT_EQ(none.top, 10U);
  EXPECT_FALSE(given({"probe", "--json=false", "x"}).json);
}

TEST(CommandLine, WordsBehindTwoDashesAreOperands) {
  EXPECT_THAT(given({"probe", "--", "--json", "-x"}).files, ElementsAre("--json", "-x"));
}

TEST(CommandLine, ErrorsAreInTheWordsOfTheGolden) {
  std::string refused;
  for (const std::vector<const char*>& words :
       std::initializer_list<std::vector<const char*>>{{"probe"},
                                                       {"probe", "x", "--interval", "0s"},
                                                       {"probe", "x", "--interval", "soon"},
                                                       {"probe", "x", "--interval", "5"},
                                                       {"probe", "x", "--capacity", "24"},
                                                       {"probe", "x", "--format", "xml"},
                                                       {"probe", "x", "--rate", "1.5"},
                                                       {"probe", "x", "--top", "101"},
                                                       {"probe", "x", "--top"},
                                                       {"probe", "x", "--top", "1", "--top", "2"},
                                                       {"probe", "x", "--json=maybe"},
                                                       {"group", "show", "x"},
                                                       {"group"},
                                                       {"group", "draw"},
                                                       {"prob", "x"},
                                                       {"foo"},
                                                       {"probe", "x", "--jsn"},
                                                       {"probe", "x", "--price"},
                                                       {"group", "sho"},
                                                       {"group", "show", "--gpu", "1"}}) {
    const std::string message = error_of(words);
    EXPECT_NE(message, "") << fmt::format("{}", fmt::join(words, " "));
    refused += fmt::format("$ vramtrack {}\n{}\n", fmt::join(words, " "), message);
  }
  expect_golden("words/cli/refused.txt", refused);
}

TEST(CommandLine, NumbersAreWithinTheirRange) {
  for (const char* bad : {"0", "101", "x", "-1", "1.5", "", "99999999999999999999"})
    EXPECT_THAT(error_of({"probe", "x", "--top", bad}), StartsWith("--top: ")) << bad;
  for (const char* bad : {"nan", "inf", "-0.1", "x", "0.5x"})
    EXPECT_THAT(error_of({"probe", "x", "--rate", bad}), StartsWith("--rate: ")) << bad;
}

TEST(CommandLine, LimitsOfMemoryHaveAUnitOrAreNone) {
  std::uint64_t bytes = 7;
  const SetWord set = memory_limit([&bytes](std::uint64_t given) { bytes = given; });
  for (const char* bad : {"20", "1", "300kB", "0.5MiB"})
    EXPECT_THAT(set(bad).error().message, HasSubstr("give a unit, for example 24GiB")) << bad;
  for (const char* bad : {"0.3", "0GiB", "0.0"})
    EXPECT_THAT(set(bad).error().message, HasSubstr("must be greater than zero")) << bad << ": only 0 lifts a limit";
  EXPECT_THAT(set("much").error().message, HasSubstr("is not a size"));
  EXPECT_EQ(bytes, 7U);
  for (const auto& [word, expected] :
       {std::pair("0", 0ULL), std::pair("1MiB", 1ULL << 20U), std::pair("20GiB", 20ULL << 30U)}) {
    EXPECT_TRUE(set(word)) << word;
    EXPECT_EQ(bytes, expected) << word;
  }
}

TEST(CommandLine, LengthsOfTimeHaveAUnit) {
  for (const char* bad : {"5", "1.5", "0", "300 "})
    EXPECT_THAT(error_of({"probe", "x", "--interval", bad}), StartsWith("--interval: ")) << bad;
  for (const auto& [word, expected_s] :
       {std::pair("5s", 5.0), std::pair("5min", 300.0), std::pair("2 hours", 7200.0), std::pair("1w", 604800.0)})
    EXPECT_EQ(given({"probe", "x", "--interval", word}).interval_s, expected_s) << word;
}

TEST(CommandLine, KnownWordsMayBeInCapitals) {
  EXPECT_EQ(given({"probe", "x", "--format", "HTML"}).format, "html");
}

/// The values received by a command with options that have other names.
struct Written {
  std::string output, since, format = "text";
  bool json = false;
};
Written g_written;

Runner declare_writer(Arguments& arguments) {
  const auto written = std::make_shared<Written>();
  arguments.operands("FILE", "Files", [](const std::string&) { return Status(); });
  arguments.option("--output", "FILE", "Where to", text(written->output));
  arguments.option("--since", "TIME", "From when on", text(written->since));
  arguments.format({"text", "json", "html"}, "A form", text(written->format));
  return [written](Console&) {
    g_written = *written;
    return 7;
  };
}

Runner declare_liner(Arguments& arguments) {
  const auto written = std::make_shared<Written>();
  arguments.json("Lines", written->json);
  return [written](Console&) {
    g_written = *written;
    return 7;
  };
}

constexpr CommandInfo kWriter{"analyze", "Writes", "", declare_writer};
constexpr CommandInfo kLiner{"lines", "Lines", "", declare_liner};
constexpr const CommandInfo* kWriters[] = {&kWriter, &kLiner};

Parsed parse_written(std::vector<const char*> words) {
  words.insert(words.begin(), "vramtrack");
  return parse_command_line(kWriters, static_cast<int>(words.size()), words.data());
}

Written written(const std::vector<const char*>& words) {
  const Parsed parsed = parse_written(words);
  EXPECT_EQ(parsed.error, "");
  Console console;
  g_written = {};
  if (parsed.run) parsed.run(console);
  return g_written;
}

TEST(CommandLine, OptionsHaveTheNamesThatPeopleType) {
  EXPECT_EQ(written({"analyze", "-o", "a", "x"}).output, "a");
  EXPECT_EQ(written({"analyze", "-oa"}).output, "a");
  EXPECT_EQ(written({"analyze", "--from", "8h"}).since, "8h");
  EXPECT_EQ(written({"analyze", "--json"}).format, "json");
  EXPECT_EQ(written({"analyze", "--format", "json"}).format, "json");
  EXPECT_TRUE(written({"lines", "--json"}).json);
  EXPECT_TRUE(written({"lines", "--format", "json"}).json);
  EXPECT_FALSE(written({"lines", "--format", "text"}).json);
  const std::string help = parse_written({"analyze", "--help"}).out;
  EXPECT_THAT(help, HasSubstr("  -o,--output FILE "));
  EXPECT_THAT(help, HasSubstr("  --since TIME "));
  EXPECT_THAT(help, ::testing::Not(HasSubstr("--from"))) << "it is understood, and not shown";
}

TEST(CommandLine, ARecordingAloneIsAnalysed) {
  const std::string here = "/proc/self/stat";
  EXPECT_EQ(written({here.c_str(), "-o", "a"}).output, "a");
  EXPECT_EQ(written({"no_such.csv", "-o", "a"}).output, "a") << "its name tells; the command says that it is missing";
  EXPECT_EQ(written({"-o", "a", here.c_str()}).output, "a");
  EXPECT_EQ(written({"-", "-o", "a"}).output, "a");
  EXPECT_THAT(parse_written({"analyse", here.c_str()}).error, HasSubstr("nearest is 'analyze'"));
  EXPECT_THAT(parse_written({"-o", "a", "lines"}).error, HasSubstr("unknown option '-o'"));
}

TEST(CommandLine, TheVersionIsToldByItsUsualNames) {
  for (const char* word : {"version", "-v", "-V", "--version"})
    EXPECT_THAT(parse({word}).out, ::testing::StartsWith("vramtrack ")) << word;
}

TEST(CommandLine, HelpIsACommandToo) {
  EXPECT_EQ(parse({"help"}).out, parse({"--help"}).out);
  EXPECT_EQ(parse({"help", "probe"}).out, parse({"probe", "--help"}).out);
  EXPECT_EQ(parse({"help", "group", "show"}).out, parse({"group", "show", "--help"}).out);
  EXPECT_THAT(error_of({"help", "foo"}), HasSubstr("unknown command 'foo'"));
}

TEST(CommandLine, AnUnknownNameIsNamedWithTheNearest) {
  const auto nearest = [](std::vector<const char*> words) {
    const std::string message = error_of(std::move(words));
    constexpr std::string_view kBefore = "the nearest is '";
    const std::size_t at = message.find(kBefore);
    if (at == std::string::npos) return std::string("none");
    const std::size_t begin = at + kBefore.size();
    return message.substr(begin, message.find('\'', begin) - begin);
  };
  EXPECT_EQ(nearest({"prob", "x"}), "probe");
  EXPECT_EQ(nearest({"probe", "x", "--jsn"}), "--json");
  EXPECT_EQ(nearest({"foo"}), "none");
  EXPECT_EQ(nearest({"ps"}), "holders");
  EXPECT_EQ(nearest({"probe", "x", "--price"}), "none");
  EXPECT_EQ(nearest({"probe", "x", "-x"}), "none");
  EXPECT_EQ(nearest({"probe", "x", "-j"}), "--json") << "the beginning of a name";
  EXPECT_EQ(nearest({"probe", "x", "--cap", "1"}), "--capacity");
  EXPECT_EQ(nearest({"probe", "x", "--g", "1"}), "--gpu");
  EXPECT_EQ(nearest({"probe", "x", "--form", "1"}), "--format");
  EXPECT_EQ(nearest({"hide"}), "group hide") << "a verb without its command";
  EXPECT_EQ(nearest({"group", "sho"}), "show");
  EXPECT_THAT(error_of({"group", "show", "--gpu", "1"}), HasSubstr("'probe' has it"));
  EXPECT_THAT(parse({}).out, HasSubstr("probe"));  // the help
}

TEST(CommandLine, AnUnknownCommandIsAnErrorEvenBesideHelp) {
  EXPECT_THAT(error_of({"foo", "--help"}), HasSubstr("unknown command 'foo'"));
  EXPECT_THAT(error_of({"--help", "foo"}), HasSubstr("unknown command 'foo'"));
  EXPECT_THAT(error_of({"group", "foo", "-h"}), HasSubstr("unknown subcommand 'foo' of group"));
}

TEST(CommandLine, HelpIsThatOfTheCommand) {
  const Parsed all = parse({"--help"});
  EXPECT_EQ(all.exit_code, 0);
  EXPECT_FALSE(all.run);
  EXPECT_THAT(all.out, HasSubstr("  probe                       Takes one of everything\n"));
  const Parsed one = parse({"probe", "--help"});
  EXPECT_THAT(one.out, HasSubstr("  --interval DURATION         An interval\n"));
  EXPECT_THAT(one.out, HasSubstr("Example:\n  vramtrack probe x\n"));
  EXPECT_THAT(parse({"group", "show", "--help"}).out, HasSubstr("Usage: vramtrack group show"));
  EXPECT_THAT(parse({"--version"}).out, ::testing::StartsWith("vramtrack "));
}

TEST(CommandLine, VerbsAreRun) {
  Console console;
  EXPECT_EQ(parse({"group", "hide"}).run(console), 8);
}

}  // namespace
}  // namespace vramtrack::cli
