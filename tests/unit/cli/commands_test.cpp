// Rules for every command in commands.def.
#include "cli/commands.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "cli/command_line.hpp"
#include "cli/shared_arguments.hpp"
#include "core/settings.hpp"
#include "paths.hpp"
#include "temp_folder.hpp"

namespace vramtrack::cli {
namespace {

using ::testing::HasSubstr;

/// Every command and verb that can be run, and those with verbs.
std::vector<const DeclaredCommand*> flat(const std::vector<DeclaredCommand>& commands) {
  std::vector<const DeclaredCommand*> all;
  for (const DeclaredCommand& command : commands) {
    all.push_back(&command);
    for (const DeclaredCommand* verb : flat(command.verbs)) all.push_back(verb);
  }
  return all;
}

Parsed parse(const std::string& line) {
  std::vector<std::string> words = {"vramtrack"};
  std::istringstream in(line);
  for (std::string word; in >> word;) words.push_back(word);
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  return parse_command_line(commands(), static_cast<int>(argv.size()), argv.data());
}

TEST(Commands, EachHasHelpAndExamplesThatNameIt) {
  const auto all = declared(commands());
  EXPECT_GE(all.size(), 11U);
  for (const DeclaredCommand* command : flat(all)) {
    const CommandInfo& info = *command->info;
    EXPECT_FALSE(info.help.empty()) << command->full_name;
    EXPECT_FALSE(info.help.ends_with('.')) << command->full_name;
    EXPECT_TRUE(info.examples.starts_with("Example")) << command->full_name;
    EXPECT_THAT(std::string(info.examples), HasSubstr("vramtrack " + command->full_name));
    EXPECT_EQ(info.declare == nullptr, !info.verbs.empty()) << command->full_name << ": either verbs or a runner";
    const Parsed help = parse(command->full_name + " --help");
    EXPECT_EQ(help.exit_code, 0) << help.error;
    EXPECT_THAT(help.out, HasSubstr(std::string(info.help)));
  }
}

TEST(Commands, EachArgumentIsDescribed) {
  const auto all = declared(commands());
  for (const DeclaredCommand* command : flat(all)) {
    std::set<std::string> names;
    for (const Argument& argument : command->arguments.all()) {
      const std::string what = command->full_name + ' ' + argument.name;
      EXPECT_TRUE(names.insert(argument.name).second) << what << " is declared twice";
      EXPECT_FALSE(argument.help.empty()) << what;
      EXPECT_FALSE(argument.help.ends_with('.')) << what << ": the man page adds the full stop";
      EXPECT_TRUE(argument.manual.empty() || argument.manual.ends_with('.')) << what;
      EXPECT_EQ(argument.metavar.empty(), argument.is_operand() || argument.takes == Takes::nothing) << what;
      EXPECT_TRUE(argument.set) << what;
    }
  }
}

TEST(Commands, EachIsOneFile) {
  for (const CommandInfo* info : commands()) {
    const std::string file = "src/cli/cmd_" + std::string(info->name) + ".cpp";
    EXPECT_TRUE(std::filesystem::exists(source_dir() + '/' + file)) << file;
  }
}

TEST(Commands, TheLastExampleOfEachCanBeParsed) {
  for (const char* line :
       {"watch --json --every 1min", "agent --scenario leaking_training --speed 60 --seed 3",
        "top --replay a b --from 8h", "replay --speed 600 old.db", "analyze --capacity 24GiB --format json old.log.gz",
        "report --set cost.usd-per-gpu-hour=2.5 --checkpoint-every 30min gpu.csv apps.csv",
        "simulate my.toml --seed 3 --csv gpu.csv", "test --limit 1MiB/step --junit leak.xml -- ./bench -x --json",
        "snapshot leaks --used 10GiB,12GiB a.pickle b.pickle", "snapshot export --format pprof --peak x", "doctor",
        "config show --set min-r-squared=0.8", "config init --force"})
    EXPECT_EQ(parse(line).error, "") << line;
}

/// The configuration requested by the options.
ConfigRequest requested(const std::vector<std::pair<std::string, std::string>>& options) {
  ConfigRequest request;
  Arguments arguments;
  add_config(arguments, request);
  add_detector(arguments, request);
  add_interval(arguments, request);
  add_every(arguments, request, "Every");
  add_no_record(arguments, request, "Not");
  add_sources(arguments, request);
  for (const auto& [name, word] : options)
    for (const Argument& argument : arguments.all())
      if (argument.name == name) {
        const Status set = argument.set(word);
        EXPECT_TRUE(set) << name << (set ? "" : set.error().message);
      }
  return request;
}

std::string write_config(const TempFolder& folder, const std::string& toml) {
  const std::string path = folder.file("config.toml");
  std::ofstream(path) << toml;
  return path;
}

TEST(ConfigRequest, OptionsAreStrongerThanAssignmentsAndThoseThanTheFile) {
  const TempFolder folder;
  const std::string path =
      write_config(folder, "[watch]\ninterval-seconds = 2\nstatus-every-seconds = 20\n[store]\nraw-hours = 3\n");
  const auto layers = load_config(requested({{"--config", path},
                                             {"--set", "watch.interval-seconds=4"},
                                             {"--set", "watch.status-every-seconds=40"},
                                             {"--interval", "8s"},
                                             {"--no-record", ""},
                                             {"--detector", "spike"},
                                             {"--source", "drm"},
                                             {"--source", "nvml"}}));
  ASSERT_TRUE(layers) << layers.error().message;
  const Config& config = layers->config();
  EXPECT_EQ(config.watch.interval_seconds, 8);
  EXPECT_EQ(config.watch.status_every_seconds, 40);
  EXPECT_EQ(config.store.raw_hours, 3);
  EXPECT_FALSE(config.watch.record);
  EXPECT_EQ(config.detection.detector, "spike");
  EXPECT_THAT(config.sources.enabled, ::testing::ElementsAre("drm", "nvml"));
  EXPECT_EQ(layers->origin(*find_setting("watch.interval-seconds")), "--interval");
}

TEST(ConfigRequest, ErrorsNameTheOption) {
  const auto error_of = [](const ConfigRequest& request) {
    const auto layers = load_config(request);
    return layers ? std::string() : layers.error().message;
  };
  const TempFolder folder;
  const std::string path = write_config(folder, "");
  EXPECT_THAT(error_of(requested({{"--config", path}, {"--interval", "2h"}})), HasSubstr("--interval: "));
  EXPECT_THAT(error_of(requested({{"--config", path}, {"--set", "x"}})), HasSubstr("--set: 'x' is not section.key"));
  EXPECT_THAT(error_of(requested({{"--config", path}, {"--detector", "jugde"}})), HasSubstr("the nearest is 'judge'"));
  EXPECT_THAT(error_of(requested({{"--config", path + ".none"}})), HasSubstr("no such file"));
}

TEST(ConfigRequest, AFileThatSaysWhatIsDoneIsRefusedIfOthersMayChangeIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root: a user decides what is done with his rights";
  const auto error_of = [](const std::string& path) {
    const auto layers = load_config(requested({{"--config", path}}));
    return layers ? std::string() : layers.error().message;
  };
  const std::vector<std::string> deeds = {
      "[notify]\nexec = [\"true\"]\n", "[sources]\nnvml-library = \"/x/libnvidia-ml.so\"\n",
      "[[policy]]\nname = \"p\"\nsteps = [{ do = \"terminate\" }]\n",
      "[[policy]]\nname = \"p\"\nsteps = [{ do = \"checkpoint\", program = [\"true\"] }]\n"};
  for (const std::string& deed : deeds) {
    const TempFolder folder;
    const std::string path = write_config(folder, deed);
    EXPECT_EQ(error_of(path), "");
    ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
    EXPECT_THAT(error_of(path), HasSubstr("another user could change it: " + path + " can be written"));
    ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
    ASSERT_EQ(::chmod(folder.path().c_str(), 0777), 0);
    EXPECT_THAT(error_of(path), HasSubstr("another user could change it: " + folder.path() + " can be written"));
    ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
    ASSERT_EQ(::chown(path.c_str(), 65534, 0), 0);
    EXPECT_THAT(error_of(path), HasSubstr("belongs to the user")) << "his file, root's command";
  }
  const TempFolder shared;
  const std::string script = shared.file("save.sh");
  std::ofstream(script) << "exit 0\n";
  ASSERT_EQ(::chmod(script.c_str(), 0666), 0);
  for (const std::string& deed :
       {"[notify]\nexec = [\"sh\", \"" + script + "\"]\n",
        "[[policy]]\nname = \"p\"\nsteps = [{ do = \"run\", program = [\"sh\", \"-c\", \"" + script + " now\"] }]\n"}) {
    const TempFolder folder;
    EXPECT_THAT(error_of(write_config(folder, deed)), HasSubstr("could change the file " + script));
  }
  const TempFolder folder;
  const std::string harmless = write_config(folder, "[watch]\ninterval-seconds = 2\n");
  ASSERT_EQ(::chmod(harmless.c_str(), 0666), 0);
  EXPECT_EQ(error_of(harmless), "") << "that cannot be used to do anything";
}

TEST(ConfigRequest, AProgramThatOthersMayChangeIsRefusedAtTheStart) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const TempFolder folder;
  const std::string program = folder.file("save.sh");
  std::ofstream(program) << "#!/bin/sh\n";
  for (const std::string& deed :
       {"[notify]\nexec = [\"" + program + "\"]\n",
        "[[policy]]\nname = \"p\"\nsteps = [{ do = \"checkpoint\", program = [\"" + program + "\"] }]\n"}) {
    const std::string path = write_config(folder, deed);
    ASSERT_EQ(::chmod(program.c_str(), 0755), 0);
    EXPECT_TRUE(load_config(requested({{"--config", path}})));
    ASSERT_EQ(::chmod(program.c_str(), 0757), 0);
    const auto layers = load_config(requested({{"--config", path}}));
    ASSERT_FALSE(layers);
    EXPECT_THAT(layers.error().message, HasSubstr("the program " + program + " is not run"));
  }
}

}  // namespace
}  // namespace vramtrack::cli
