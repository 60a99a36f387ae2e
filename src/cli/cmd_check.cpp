// check: finds code that keeps GPU memory in Python source. The python3 of PATH parses it with its own parser, because
// it knows the program's version of the language; the rules are python/vramtrack/check*.py.
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "cli/check_script.hpp"
#include "cli/commands.hpp"
#include "cli/output_option.hpp"
#include "cli/progress.hpp"
#include "core/descriptor.hpp"
#include "core/errno_words.hpp"
#include "core/regular_file.hpp"
#include "host/child_program.hpp"

namespace vramtrack::cli {
namespace {

constexpr int kFailed = 2;

/// Runs a script of a given length that arrives over the descriptor in its first argument, with the other arguments. It
/// reports its progress over the descriptor, one line at a time; after an empty line it waits until the other end is
/// closed, and prints.
constexpr const char* kStart = R"(import os, sys
if sys.version_info < (3, 8):
    sys.stderr.write("vramtrack: check needs Python 3.8 or newer, and the python3 in PATH is %d.%d; put a newer one first in PATH\n" % sys.version_info[:2])
    sys.exit(2)
link = int(sys.argv[1])
with open(link, "rb", closefd=False) as file:
    script = file.read(int(sys.argv[2]))
exec(compile(script, "<vramtrack check>", "exec"))
def show(words):
    os.write(link, words.encode() + b"\n")
    if not words:
        os.read(link, 1)
sys.exit(main(sys.argv[3:], show))
)";

struct CheckOptions {
  std::vector<std::string> files;
  std::string format = "text";
};

/// Shows the lines that arrive over `link`, until an empty one or the end of input.
void follow(int link, Progress& progress) {
  std::string line;
  for (char byte = 0; ::read(link, &byte, 1) == 1;) {
    if (byte != '\n') {
      line += byte;
    } else if (line.empty()) {
      return;
    } else {
      progress.show(std::exchange(line, {}));
    }
  }
}

int check(const CheckOptions& options, Console& console) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    console.error("check: cannot connect to python3: " + errno_words(errno));
    return kFailed;
  }
  Descriptor ours(ends[0]);
  Descriptor its(ends[1]);
  // Isolated, so that nothing is imported from the folder or the environment of the checked program.
  std::vector<std::string> program{"python3",
                                   "-I",
                                   "-B",
                                   "-X",
                                   "utf8",
                                   "-c",
                                   kStart,
                                   std::to_string(its.get()),
                                   std::to_string(check_script().size()),
                                   "--format",
                                   options.format,
                                   "--"};
  program.insert(program.end(), options.files.begin(), options.files.end());
  const auto started = start_program(program, {}, its.get());
  its.reset();
  if (!started) {
    console.error(
        "check: there is no python3 in PATH that can be run, and check needs one (3.8 or newer) to read the source; "
        "install one, or activate the environment that has it");
    return kFailed;
  }
  // A program that has already ended has reported why.
  if (write_all(ours.get(), check_script())) {
    Progress progress(console, options.files);
    follow(ours.get(), progress);
  }
  ours.reset();
  return shell_status(wait_for_program(*started));
}

Runner declare(Arguments& arguments) {
  const auto options = std::make_shared<CheckOptions>();
  arguments
      .operands("FILE", "Python files, notebooks (*.ipynb), and folders of them; - is standard input",
                text(options->files))
      .required()
      .file();
  arguments.format({"text", "json"}, "Print as: text (default), json", text(options->format));
  return with_output(arguments, [options](Console& console) { return check(*options, console); });
}

}  // namespace

const CommandInfo check_command{
    "check", "Find the statements in Python programs that keep GPU memory, before the programs run",
    "Examples:\n"
    "  vramtrack check train.py\n"
    "  vramtrack check --json src/ scripts/eval.py explore.ipynb\n"
    "Exit: 0 nothing found, 1 findings, 2 a file could not be read or there is no python3. A comment\n"
    "'# vramtrack: ignore' on a line silences it. See docs/check.md.",
    declare};

}  // namespace vramtrack::cli
