// The files that are generated from the commands' declarations are up to date. To rewrite them: VRAMTRACK_UPDATE=1
// build/release/cli_test --gtest_filter='Written.*'
#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "cli/commands.hpp"
#include "cli/completions.hpp"
#include "cli/man_page.hpp"
#include "paths.hpp"

namespace vramtrack::cli {
namespace {

constexpr const char* kHow =
    " is stale; VRAMTRACK_UPDATE=1 build/release/cli_test --gtest_filter='Written.*' rewrites it";

bool updates() {
  return std::getenv("VRAMTRACK_UPDATE") != nullptr;
}

std::string path_of(const std::string& file) {
  return source_dir() + '/' + file;
}

std::string content(const std::string& file) {
  std::stringstream text;
  text << std::ifstream(path_of(file)).rdbuf();
  return text.str();
}

/// The first difference, which is more useful than two whole long files.
std::string first_difference(const std::string& is, const std::string& should_be) {
  std::istringstream a(is);
  std::istringstream b(should_be);
  std::string line;
  std::string wanted;
  for (std::size_t number = 1;; ++number) {
    const bool more = static_cast<bool>(std::getline(a, line));
    const bool more_wanted = static_cast<bool>(std::getline(b, wanted));
    if (!more && !more_wanted) return {};
    if (more != more_wanted || line != wanted)
      return "line " + std::to_string(number) + " is\n  " + (more ? line : "missing") + "\nand should be\n  " +
             (more_wanted ? wanted : "missing");
  }
}

void expect_written(const std::string& file, const std::string& text) {
  if (updates()) std::ofstream(path_of(file)) << text;
  EXPECT_EQ(first_difference(content(file), text), "") << file << kHow;
}

/// The file with the text between `.\" written: NAME` and `.\" end` replaced.
std::string with_part(const std::string& text, const std::string& name, const std::string& part) {
  const std::string begin = ".\\\" written from src/cli: " + name + "\n";
  const std::size_t at = text.find(begin);
  const std::size_t end = at == std::string::npos ? at : text.find(".\\\" end\n", at);
  EXPECT_NE(end, std::string::npos) << "docs/man/vramtrack.1 lacks the line " << begin
                                    << "or the '.\\\" end' behind it";
  return end == std::string::npos ? text : text.substr(0, at) + begin + part + text.substr(end);
}

TEST(Written, CompletionsForBash) {
  expect_written("contrib/completions/vramtrack.bash", bash_completion(declared(commands())));
}

TEST(Written, CompletionsForZsh) {
  expect_written("contrib/completions/_vramtrack", zsh_completion(declared(commands())));
}

TEST(Written, CompletionsForFish) {
  expect_written("contrib/completions/vramtrack.fish", fish_completion(declared(commands())));
}

TEST(Written, SynopsisCommandsAndOptionsOfTheManPage) {
  const auto all = declared(commands());
  std::string text = with_part(content("docs/man/vramtrack.1"), "synopsis", man_synopsis(all));
  text = with_part(text, "commands", man_commands(all));
  text = with_part(text, "options", man_options(all));
  expect_written("docs/man/vramtrack.1", text);
}

/// `text` on one line, without Markdown markup.
std::string in_one_line(const std::string& text) {
  std::istringstream in(text);
  std::string out;
  for (std::string word; in >> word;) out += (out.empty() ? "" : " ") + word;
  std::erase(out, '`');
  return out;
}

TEST(Written, ThePageOnLogsSaysOfFormatsWhatTheManPageSays) {
  const std::string page = in_one_line(content("docs/formats/logs.md"));
  std::size_t compared = 0;
  for (const DeclaredCommand& command : declared(commands()))
    for (const Argument& argument : command.arguments.all())
      if (argument.name == "--input-format") {
        EXPECT_THAT(page, ::testing::HasSubstr(argument.manual)) << command.full_name;
        EXPECT_FALSE(argument.manual.empty());
        ++compared;
      }
  EXPECT_GE(compared, 3U);
}

}  // namespace
}  // namespace vramtrack::cli
