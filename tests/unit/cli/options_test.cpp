// Only src/cli writes the names of vramtrack's options. If other modules recommend an option, they use an Option
// (core/option.hpp), so that each surface names it in its own way.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.hpp"
#include "core/option.hpp"
#include "paths.hpp"

namespace vramtrack::cli {
namespace {

namespace fs = std::filesystem;

void add_names(const std::vector<DeclaredCommand>& commands, std::set<std::string, std::less<>>& names) {
  for (const DeclaredCommand& command : commands) {
    for (const Argument& argument : command.arguments.all())
      if (argument.name.starts_with("--")) names.insert(argument.name);
    add_names(command.verbs, names);
  }
}

/// The options of all commands.
const std::set<std::string, std::less<>>& our_options() {
  static const auto all = [] {
    std::set<std::string, std::less<>> names;
    add_names(declared(commands()), names);
    return names;
  }();
  return all;
}

std::string content(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Literal {
  std::size_t line = 0;
  std::string text;  ///< as in the source, without quotes; adjacent literals are joined
};

/// Whether the single quote at `i` is within a number, such as 1'000; in U'a' it is not.
bool separates_digits(std::string_view source, std::size_t i) {
  return i > 0 && i + 1 < source.size() && std::isxdigit(source[i - 1]) && std::isxdigit(source[i + 1]);
}

/// The string literals of a C++ source.
std::vector<Literal> literals_of(std::string_view source) {
  std::vector<Literal> out;
  bool continues = false;  // only spaces and comments since the last literal
  std::size_t line = 1;
  const auto add = [&](std::string_view text) {
    if (!continues) out.push_back({line, {}});
    out.back().text += text;
    continues = true;
    line += static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  };
  for (std::size_t i = 0; i < source.size(); ++i) {
    const std::string_view rest = source.substr(i);
    if (rest.starts_with("//")) {
      i = std::min(source.find('\n', i), source.size()) - 1;
    } else if (rest.starts_with("R\"")) {
      const std::string end = ")" + std::string(rest.substr(2, rest.find('(') - 2)) + "\"";
      const std::size_t begin = i + rest.find('(') + 1, stop = source.find(end, begin);
      add(source.substr(begin, stop - begin));
      i = stop + end.size() - 1;
    } else if (rest.front() == '"' || (rest.front() == '\'' && !separates_digits(source, i))) {
      std::size_t stop = i + 1;
      while (stop < source.size() && source[stop] != rest.front()) stop += source[stop] == '\\' ? 2U : 1U;
      if (stop >= source.size()) {
        ADD_FAILURE() << "a quotation that opens in line " << line << " does not end";
        break;
      }
      if (rest.front() == '"')
        add(source.substr(i + 1, stop - i - 1));
      else
        continues = false;
      i = stop;
    } else if (rest.front() == '\n') {
      ++line;
    } else if (rest.front() != ' ') {
      continues = false;
    }
  }
  return out;
}

constexpr std::array<std::string_view, 11> kPrograms = {"vramtrack ", "nvidia-smi ", "amd-smi ", "rocm-smi ",
                                                        "gpustat ",   "tegrastats ", "docker ",  "py-spy ",
                                                        "python ",    "vllm ",       "while "};

/// Whether an option belongs to a command in the words before it: `clause` names a command, or `literal` is one.
bool is_of_command(std::string_view literal, std::string_view clause) {
  return std::any_of(kPrograms.begin(), kPrograms.end(), [&](std::string_view program) {
    return literal.starts_with(program) || clause.find(program) != clause.npos;
  });
}

/// The vramtrack options that a literal names itself.
std::vector<std::string> options_in(std::string_view literal) {
  std::vector<std::string> found;
  if (literal.starts_with("<!DOCTYPE")) return found;  // properties of a style sheet
  for (std::size_t at = literal.find("--"); at != literal.npos; at = literal.find("--", at + 2)) {
    if (at > 0 && (std::isalnum(literal[at - 1]) || literal[at - 1] == '-')) continue;
    std::size_t end = at + 2;
    while (end < literal.size() && (std::islower(literal[end]) || literal[end] == '-')) ++end;
    const std::string_view name = literal.substr(at, end - at);
    if (!our_options().contains(name)) continue;
    // A command is in quotes, in brackets or in a clause of its own.
    const std::size_t begin = literal.find_last_of("'(;`\"", at);
    const std::string_view clause =
        literal.substr(begin == literal.npos ? 0 : begin, at - (begin == literal.npos ? 0 : begin));
    if (!is_of_command(literal, clause)) found.emplace_back(name);
  }
  return found;
}

TEST(Options, AreFoundInSentences) {
  const auto found = [](std::string_view source) {
    std::vector<std::string> all;
    for (const Literal& literal : literals_of(source))
      for (std::string& name : options_in(literal.text)) all.push_back(std::move(name));
    return all;
  };
  using ::testing::ElementsAre;
  using ::testing::IsEmpty;
  EXPECT_THAT(found(R"(f("pass --capacity");)"), ElementsAre("--capacity"));
  EXPECT_THAT(found("f(\"give \"  // so\n  \"--unit (see --start)\");"), ElementsAre("--unit", "--start"));
  EXPECT_THAT(found(R"(f('"', "--unit");)"), ElementsAre("--unit"));
  EXPECT_THAT(found(R"(f("'vramtrack doctor' shows what to do, --or-simulate needs no GPU");)"),
              ElementsAre("--or-simulate"));
  EXPECT_THAT(found(R"(// pass "--capacity"
f("'vramtrack watch " "--interval 1s' takes a sample a second", "tegrastats --interval 1000", "--query-gpu");)"),
              IsEmpty());
}

TEST(Options, AreNamedByTheSurfaceAlone) {
  const fs::path root = source_dir() + "/src";
  std::size_t literals = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string file = fs::relative(entry.path(), root).string();
    // Tables (.def) name options of other programs, and settings.
    if (file.starts_with("cli/") || (!file.ends_with(".cpp") && !file.ends_with(".hpp"))) continue;
    for (const Literal& literal : literals_of(content(entry.path()))) {
      ++literals;
      if (literal.text.ends_with("or as --line-pattern says")) continue;   // a format's line in the man page
      if (file == "act/slurm.cpp" && literal.text == "--batch") continue;  // an argument of scancel
      EXPECT_THAT(options_in(literal.text), ::testing::IsEmpty())
          << "src/" << file << ':' << literal.line << ": '" << literal.text
          << "' names an option of the command line; use name_of(Option::...), see core/option.hpp";
    }
  }
  EXPECT_GT(literals, 5000U);
}

TEST(Options, AreThoseOfTheCommands) {
  for (const Option option : kEveryOption) {
    const std::string_view name = name_of(option);
    EXPECT_TRUE(our_options().contains(name.substr(0, name.find(' ')))) << name;
    EXPECT_TRUE(example_of(option).starts_with(name)) << name;
  }
}

/// Whether the program that `make run` builds has the file, and its texts (unlike `explain` and policies).
bool says_in_the_main_job(const std::string& file) {
  static const auto other = [] {
    std::vector<std::string> paths = {"explain/", "act/"};
    std::ifstream list(source_dir() + "/src/left_out.txt");
    for (std::string line; std::getline(list, line);)
      if (!line.starts_with('#')) paths.push_back(line);
    return paths;
  }();
  return (file.ends_with(".cpp") || file.ends_with(".hpp")) &&
         std::none_of(other.begin(), other.end(), [&](const std::string& path) { return file.starts_with(path); });
}

// A hint at a command that this program lacks explains how to get it: command_hint (core/command.hpp).
TEST(Commands, AreNamedByTheirHint) {
  static const std::regex kCommand("'(?:sudo )?vramtrack ([a-z]+)");
  const std::set<std::string, std::less<>> left_out = [] {
    std::set<std::string, std::less<>> names;
    for (const CommandInfo* command : commands()) names.emplace(command->name);
    for (const char* name : {"watch", "top", "replay", "analyze", "report", "simulate"}) names.erase(name);
    return names;
  }();
  const fs::path root = source_dir() + "/src";
  std::size_t hints = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string file = fs::relative(entry.path(), root).string();
    if (!says_in_the_main_job(file)) continue;
    for (const Literal& literal : literals_of(content(entry.path()))) {
      for (std::sregex_iterator at(literal.text.begin(), literal.text.end(), kCommand), end; at != end; ++at) {
        if (at->prefix().str().ends_with("under ")) continue;  // the state of a program
        ++hints;
        EXPECT_FALSE(left_out.contains((*at)[1].str()))
            << "src/" << file << ':' << literal.line << ": " << literal.text;
      }
    }
  }
  EXPECT_GT(hints, 5U);
}

}  // namespace
}  // namespace vramtrack::cli
