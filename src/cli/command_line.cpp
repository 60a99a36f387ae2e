#include "cli/command_line.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <vector>

#include "cli/config_file.hpp"
#include "cli/other_names.hpp"
#include "core/command.hpp"
#include "core/settings.hpp"

namespace vramtrack::cli {
namespace {

/// A command of the command line, with its verbs. Must outlive the parsing, because the library keeps references.
struct Declared {
  const CommandInfo* info = nullptr;
  CLI::App* app = nullptr;
  Arguments arguments;
  Runner run;
  std::deque<bool> flags;  ///< whether each of the flags was given, in the order of the arguments
  std::vector<std::unique_ptr<Declared>> verbs;
};

/// Stores a word; an error is passed to the library in the form that it expects, and comes back as a usage error.
void store(const Argument& argument, const std::string& word) {
  const Status stored = argument.set(word);
  if (!stored) throw CLI::ValidationError(argument.name, stored.error().message);
}

/// "-o,--output,--out": all names of an option, in the library's syntax.
std::string all_names(const Argument& argument) {
  std::string names = argument.name;
  for (const auto* others : {&argument.also, &argument.silent})
    for (const std::string& other : *others) names += ',' + other;
  return names;
}

/// Prints only those names of an option that are to be shown.
class HelpText : public CLI::Formatter {
 public:
  explicit HelpText(const Arguments& arguments) : arguments_(arguments) {}

  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    for (const Argument& argument : arguments_.all()) {
      if (argument.is_operand() || argument.silent.empty() || !option->check_name(argument.name)) continue;
      return joined(argument.names(), ",");
    }
    return Formatter::make_option_name(option, is_positional);
  }

 private:
  const Arguments& arguments_;
};

void declare(Declared& command, const Argument& argument) {
  CLI::App& app = *command.app;
  const std::string names = all_names(argument);
  CLI::Option* option = nullptr;
  if (argument.takes == Takes::nothing) {
    app.add_flag(names, command.flags.emplace_back(false), argument.help);
    return;
  }
  if (argument.takes == Takes::one) {
    option = app.add_option_function<std::string>(
        names, [&argument](const std::string& word) { store(argument, word); }, argument.help);
  } else {
    option = app.add_option_function<std::vector<std::string>>(
        names,
        [&argument](const std::vector<std::string>& words) {
          for (const std::string& word : words) store(argument, word);
        },
        argument.help);
  }
  option->type_name(argument.metavar);
  if (argument.takes == Takes::list) option->delimiter(',')->allow_extra_args(false);
  if (argument.takes == Takes::repeated) option->take_all()->allow_extra_args(false);
  if (argument.takes == Takes::several && !argument.is_operand()) option->expected(1, -1);
  if (argument.is_required && !argument.reads_stdin) option->required();
}

/// A command that is not named gets no arguments, because declaring them takes most of the start-up time.
std::unique_ptr<Declared> declare(CLI::App& above, const CommandInfo& info, bool is_named) {
  auto command = std::make_unique<Declared>();
  command->info = &info;
  command->app = above.add_subcommand(std::string(info.name), std::string(info.help));
  if (!is_named) return command;
  command->app->footer(std::string(info.examples));
  if (info.declare != nullptr) {
    command->run = info.declare(command->arguments);
    command->app->formatter(std::make_shared<HelpText>(command->arguments));
    for (const Argument& argument : command->arguments.all()) declare(*command, argument);
  }
  if (!info.verbs.empty()) command->app->require_subcommand(1);
  for (const CommandInfo* verb : info.verbs) command->verbs.push_back(declare(*command->app, *verb, true));
  return command;
}

const Declared* parsed_of(const std::vector<std::unique_ptr<Declared>>& commands) {
  for (const auto& command : commands)
    if (command->app->parsed()) return command->verbs.empty() ? command.get() : parsed_of(command->verbs);
  return nullptr;
}

void set_flags(const Declared& command) {
  auto given = command.flags.begin();
  for (const Argument& argument : command.arguments.all())
    if (argument.takes == Takes::nothing && *given++) static_cast<void>(argument.set({}));
}

/// Whether input was sent to standard input: a pipe or a file, but not a terminal or /dev/null.
bool is_sent_input() {
  struct stat what {};
  return ::fstat(STDIN_FILENO, &what) == 0 &&
         (S_ISFIFO(what.st_mode) || S_ISREG(what.st_mode) || S_ISSOCK(what.st_mode));
}

/// Reads "vramtrack analyze < gpu.csv" as "vramtrack analyze -". The error says what is missing.
Status take_standard_input(const Declared& command) {
  for (const Argument& argument : command.arguments.all()) {
    if (!argument.reads_stdin || command.app->get_option(argument.name)->count() > 0) continue;
    if (!is_sent_input()) return fail(argument.name + " is required");
    if (const Status set = argument.set("-"); !set) return set;
  }
  return {};
}

/// The innermost command that was named, or the program itself.
const CLI::App& deepest(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : deepest(*chosen.front());
}

std::vector<std::string_view> commands_of(const CLI::App& app) {
  std::vector<std::string_view> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(sub->get_name());
  return names;
}

/// "vramtrack snapshot leaks"
std::string full_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : full_name(*app.get_parent()) + ' ' + app.get_name();
}

/// The first word that is neither a command nor a verb where one is expected; empty if there is none.
std::string unknown_command(const CLI::App& app) {
  if (commands_of(deepest(app)).empty()) return {};
  const std::vector<std::string> left = app.remaining(true);
  return left.empty() || left.front().starts_with('-') ? std::string() : left.front();
}

/// "'top', 'report' and 3 others": the first few of several names.
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 3;
  if (names.size() <= kMost) return fmt::format("'{}'", fmt::join(names, "', '"));
  return fmt::format("'{}' and {} more", fmt::join(names.begin(), names.begin() + kMost, "', '"), names.size() - kMost);
}

/// The commands that have this verb, such as "trace diff".
std::vector<std::string> with_verb(std::span<const CommandInfo* const> commands, std::string_view verb) {
  std::vector<std::string> out;
  for (const CommandInfo* command : commands)
    for (const CommandInfo* each : command->verbs)
      if (each->name == verb) out.push_back(fmt::format("{} {}", command->name, verb));
  return out;
}

std::string unknown_command_words(std::span<const CommandInfo* const> commands, const CLI::App& app,
                                  const std::string& word, std::span<const char* const> words) {
  const CLI::App& group = deepest(app);
  const auto known = commands_of(group);
  if (&group != &app) {
    const std::string other = other_verb(group.get_name(), word);
    return fmt::format("unknown subcommand '{}' of {}; {}", word, group.get_name(),
                       other.empty() ? near_words(word, known) : other);
  }
  std::string near = other_command(word);
  if (const auto verbs = with_verb(commands, word); near.empty() && !verbs.empty())
    near = fmt::format("the nearest {} {}", verbs.size() == 1 ? "is" : "are", some_of(verbs));
  if (near.empty() && !near_name(word, known).empty()) near = near_words(word, known);
  if (near.empty()) near = other_program(words);
  return fmt::format("unknown command '{}'{}{}", word, near.empty() ? "" : "; ", near);
}

/// The first option that the command lacks, or empty. (The library would name the words after it instead.)
std::string unknown_option(const CLI::App& app, int argc, const char* const* argv) {
  const CLI::App& command = deepest(app);
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string_view word = argv[i];
    const bool is_short = word.size() > 1 && word[0] == '-' && std::isalpha(static_cast<unsigned char>(word[1])) != 0;
    if (!word.starts_with("--") && !is_short) continue;
    std::string name(word.substr(0, is_short ? 2 : word.find('=')));
    if (command.get_option_no_throw(name) == nullptr) return name;
  }
  return {};
}

/// The long name that is shown for a name that is not: --since for --from.
std::string shown_name(const CLI::App& command, std::string_view name) {
  const CLI::Option* const option = command.get_option_no_throw(std::string(name));
  return option == nullptr || option->get_lnames().empty() ? std::string(name) : "--" + option->get_lnames().front();
}

/// What to write instead of an option that the command lacks; empty if nothing resembles it.
std::string near_option_words(const CLI::App& command, const DeclaredCommand& own, const std::string& name) {
  std::vector<std::string> shown;
  std::vector<std::string> others;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& each : option->get_lnames())
      (each == option->get_lnames().front() ? shown : others).push_back("--" + each);
  if (std::string other = other_option(own, name); !other.empty()) return other;
  const std::vector<std::string_view> names(shown.begin(), shown.end());
  if (!near_name(name, names).empty()) return near_words(name, names);
  const std::vector<std::string_view> other_names(others.begin(), others.end());
  const std::string_view near = near_name(name, other_names);
  return near.empty() ? std::string() : fmt::format("the nearest is '{}'", shown_name(command, near));
}

bool has_option(const DeclaredCommand& command, const std::string& name) {
  return std::ranges::any_of(command.arguments.all(), [&](const Argument& argument) {
    const std::vector<std::string> names = argument.names();
    return std::ranges::find(names, name) != names.end();
  });
}

bool takes_a_program(const DeclaredCommand& command) {
  return std::ranges::any_of(command.arguments.all(),
                             [](const Argument& a) { return a.is_operand() && a.with == Completes::programs; });
}

/// Appends the declared commands and their verbs, flattened.
void add_all(std::vector<DeclaredCommand>& from, std::vector<DeclaredCommand*>& into) {
  for (DeclaredCommand& command : from) {
    into.push_back(&command);
    add_all(command.verbs, into);
  }
}

/// Every command and verb with its arguments, for finding what the user meant.
class AllDeclared {
 public:
  explicit AllDeclared(std::span<const CommandInfo* const> commands) : declared_(declared(commands)) {
    add_all(declared_, all_);
  }
  [[nodiscard]] const std::vector<DeclaredCommand*>& all() const { return all_; }
  /// Returns one without arguments for the program itself.
  [[nodiscard]] const DeclaredCommand& of(const CLI::App& command) const {
    const auto own = std::ranges::find_if(
        all_, [&](const DeclaredCommand* each) { return "vramtrack " + each->full_name == full_name(command); });
    return own == all_.end() ? none_ : **own;
  }

 private:
  std::vector<DeclaredCommand> declared_;
  std::vector<DeclaredCommand*> all_;
  DeclaredCommand none_;
};

std::string unknown_option_words(const AllDeclared& commands, const CLI::App& command, const std::string& name) {
  const DeclaredCommand& own = commands.of(command);
  const bool has_program = takes_a_program(own);
  std::string what = fmt::format("unknown option '{}'", name);
  // A short option before a program belongs to that program.
  const bool is_of_program = has_program && !name.starts_with("--");
  if (const std::string near = is_of_program ? std::string() : near_option_words(command, own, name); !near.empty()) {
    what += "; " + near;
  } else if (!is_of_program) {
    std::vector<std::string> others;
    for (const DeclaredCommand* each : commands.all())
      if (has_option(*each, name)) others.push_back(each->full_name);
    if (!others.empty()) what += fmt::format("; {} {} it", some_of(others), others.size() == 1 ? "has" : "have");
  }
  if (has_program) what += "; put the program's own options after '--'";
  return what;
}

/// The library's own errors in plain words.
std::string library_error_words(const CLI::ParseError& e) {
  std::string what = e.what();
  while (!what.empty() && (what.back() == '\n' || what.back() == '.')) what.pop_back();
  const std::string name = what.substr(0, what.find(':'));
  const auto after = [&what](std::string_view begin) {
    const std::size_t at = what.find(begin);
    return at == std::string::npos ? std::string() : what.substr(at + begin.size());
  };
  if (const std::string received = after("At Most 1 required but received "); !received.empty())
    return fmt::format("{}: give it once, not {} times", name, received);
  if (const std::string missing = after(" required "); missing.ends_with(" missing"))
    return fmt::format("{}: {} is missing", name, missing.substr(0, missing.find(' ')));
  if (const std::string extra = after("argument was not expected: "); !extra.empty())
    return fmt::format("unexpected argument '{}'", extra);
  if (const std::string extra = after("arguments were not expected: "); !extra.empty())
    return "unexpected arguments: " + extra;
  if (const std::string flag = after("Could not convert: "); !flag.empty())
    return fmt::format("{} takes no value", flag.substr(0, flag.find(' ')));
  return what;
}

Parsed usage_error(std::span<const CommandInfo* const> commands, const CLI::ParseError& e, const CLI::App& app,
                   int argc, const char* const* argv) {
  const CLI::App& command = deepest(app);
  const std::string word = unknown_command(app);
  const std::string option = unknown_option(app, argc, argv);
  const auto verbs = commands_of(command);
  std::string what;
  if (argc == 1) return {{}, 2, app.help(), {}};
  if (!word.empty())
    what = unknown_command_words(commands, app, word, std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
  else if (!verbs.empty() && &command != &app)
    what = fmt::format("{} needs a subcommand: {}", command.get_name(), fmt::join(verbs, ", "));
  else if (!option.empty())
    what = unknown_option_words(AllDeclared(commands), command, option);
  else
    what = library_error_words(e);
  if (const auto left = app.remaining(true); left.size() == 1 && what.starts_with("unexpected argument"))
    if (const std::string near = other_argument(AllDeclared(commands).of(command), left.front()); !near.empty())
      what += "; " + near;
  return {{}, 2, {}, fmt::format("{}; see '{} --help'", what, full_name(command))};
}

bool is_command(std::span<const CommandInfo* const> commands, std::string_view word) {
  return std::any_of(commands.begin(), commands.end(), [&](const CommandInfo* each) { return each->name == word; });
}

/// Whether the words name a recording and no command: the first is one, or one follows leading options.
bool names_a_recording(std::span<const CommandInfo* const> commands, std::span<const char* const> words) {
  const std::string_view first = words.front();
  if (is_python(first)) return false;
  if (first == "-" || first.find_first_of("./") == 0 || is_file(first)) return true;
  if (!first.starts_with('-')) return !is_command(commands, first) && first.find_first_of("./") != first.npos;
  if (first == "-h" || first == "--help" || first == "-v" || first == "--version") return false;
  return std::none_of(words.begin(), words.end(), [&](const char* word) { return is_command(commands, word); }) &&
         std::any_of(words.begin(), words.end(), [](const char* word) { return is_file(word); });
}

/// The words as the parser expects them: "help watch" becomes "watch --help", "version" becomes "--version", and a
/// recording alone becomes the operand of analyze.
std::vector<const char*> spelled_out(std::span<const CommandInfo* const> commands, int argc, const char* const* argv) {
  std::vector<const char*> words(argv, argv + argc);
  if (words.size() < 2) return words;
  const std::string_view first = words[1];
  if (first == "help") {
    words.erase(words.begin() + 1);
    words.push_back("--help");
  } else if (first == "version" || first == "-V") {
    words[1] = "--version";
  } else if (!is_command(commands, first) && is_command(commands, "analyze") &&
             names_a_recording(commands, std::span(words).subspan(1))) {
    words.insert(words.begin() + 1, "analyze");
  }
  return words;
}

/// The command in the first word if the program that `make run` builds lacks it; otherwise empty.
std::string_view left_out(int argc, const char* const* argv) {
  const auto names = commands_left_out();
  const auto named = argc > 1 ? std::ranges::find(names, std::string_view(argv[1])) : names.end();
  return named == names.end() ? std::string_view() : *named;
}

std::string footer() {
  std::string text =
      "Examples:\n"
      "  vramtrack watch            this machine's GPUs\n"
      "  vramtrack top              the same on a screen\n"
      "  vramtrack gpu.csv          analyze a log of nvidia-smi\n"
      "  vramtrack simulate         see a leak found and its prediction come true\n"
      "'vramtrack COMMAND --help' shows the options of a command.";
  if (const auto names = commands_left_out(); !names.empty())
    text += fmt::format("\n'make build' builds the other commands: {}.", fmt::join(names, ", "));
  return text;
}

}  // namespace

Parsed parse_command_line(std::span<const CommandInfo* const> commands, int given, const char* const* given_argv) {
  const std::vector<const char*> words = spelled_out(commands, given, given_argv);
  const auto argc = static_cast<int>(words.size());
  const char* const* argv = words.data();
  if (const std::string_view name = left_out(argc, argv); !name.empty())
    return {{},
            2,
            {},
            fmt::format("'{}' is not part of this program, which 'make run' built; 'make build' builds all commands",
                        name)};
  CLI::App app("Finds GPU memory leaks: which process leaks, how fast, and when memory will run out", "vramtrack");
  app.set_help_flag("-h,--help", "Print this help");
  app.set_version_flag("-v,--version", std::string("vramtrack ") + VRAMTRACK_VERSION, "Print the version");
  app.require_subcommand(1);
  app.footer(footer());
  std::vector<std::unique_ptr<Declared>> declared;
  // If a command is named, only that one is parsed; the help and the messages about unknown words name all.
  const std::string_view first = argc > 1 ? argv[1] : "";
  const bool is_alone = is_command(commands, first) || first == "--version" || first == "-v";
  for (const CommandInfo* info : commands)
    if (const bool is_named = info->name == first; is_named || !is_alone)
      declared.push_back(declare(app, *info, is_named));
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion& e) {
    return {{}, 0, std::string(e.what()) + '\n', {}};
  } catch (const CLI::CallForHelp& e) {
    if (!unknown_command(app).empty()) return usage_error(commands, e, app, argc, argv);
    return {{}, 0, app.help(), {}};
  } catch (const CLI::ParseError& e) {
    return usage_error(commands, e, app, argc, argv);
  }
  const Declared& command = *parsed_of(declared);
  if (const Status taken = take_standard_input(command); !taken)
    return {{}, 2, {}, fmt::format("{}; see '{} --help'", taken.error().message, full_name(*command.app))};
  set_flags(command);
  return {command.run, 0, {}, {}};
}

int run_command_line(int argc, const char* const* argv) {
  Console console;
  set_commands_left_out(commands_left_out());
  const Parsed parsed = parse_command_line(commands(), argc, argv);
  console.write(parsed.out);
  if (!parsed.error.empty()) console.error(parsed.error);
  if (!parsed.run) return parsed.exit_code;
  for (const std::string& ignored : ignored_variables()) console.warn(ignored);
  const int exit_code = parsed.run(console);
  return console.failed() ? 2 : exit_code;
}

}  // namespace vramtrack::cli
