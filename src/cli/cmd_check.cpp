// check: finds what keeps GPU memory in Python source. Python's own parser reads it, in the python3 of PATH, which is
// the one that knows the language of the program; the rules are python/vramtrack/check*.py.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "cli/check_script.hpp"
#include "cli/commands.hpp"
#include "cli/output_option.hpp"
#include "core/errno_words.hpp"
#include "host/child_program.hpp"

namespace vramtrack::cli {
namespace {

constexpr int kFailed = 2;

/// Runs the script that the descriptor of its first argument has, with the others.
constexpr const char* kStart = R"(import sys
if sys.version_info < (3, 8):
    sys.stderr.write("vramtrack: check needs Python 3.8 or newer, and the python3 in PATH is %d.%d; put a newer one first in PATH\n" % sys.version_info[:2])
    sys.exit(2)
with open(int(sys.argv[1]), encoding="utf-8") as file:
    script = file.read()
exec(compile(script, "<vramtrack check>", "exec"))
sys.exit(main(sys.argv[2:]))
)";

struct CheckOptions {
  std::vector<std::string> files;
  std::string format = "text";
};

/// A descriptor of memory with the script, at its beginning.
Result<int> script_descriptor() {
  const int descriptor = ::memfd_create("vramtrack-check", MFD_CLOEXEC);
  if (descriptor < 0) return fail("no memory for the script: " + errno_words(errno));
  std::string_view rest = check_script();
  while (!rest.empty()) {
    const ssize_t written = ::write(descriptor, rest.data(), rest.size());
    if (written < 0) {
      const int error = errno;
      ::close(descriptor);
      return fail("no memory for the script: " + errno_words(error));
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  ::lseek(descriptor, 0, SEEK_SET);
  return descriptor;
}

int check(const CheckOptions& options, Console& console) {
  const auto script = script_descriptor();
  if (!script) {
    console.error("check: " + script.error().message);
    return kFailed;
  }
  // Isolated: what the folder or the environment of the checked program has is not imported.
  std::vector<std::string> program{
      "python3", "-I", "-B", "-X", "utf8", "-c", kStart, std::to_string(*script), "--format", options.format, "--"};
  program.insert(program.end(), options.files.begin(), options.files.end());
  const auto started = start_program(program, {}, *script);
  ::close(*script);
  if (!started) {
    console.error(
        "check: there is no python3 in PATH that can be run, and check needs one (3.8 or newer) to read the "
        "source; install it, or activate the environment that has it");
    return kFailed;
  }
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
    "check", "Find the statements of Python programs that keep GPU memory, before they run",
    "Examples:\n"
    "  vramtrack check train.py\n"
    "  vramtrack check --json src/ scripts/eval.py explore.ipynb\n"
    "Exit: 0 nothing found, 1 findings, 2 a file could not be read or there is no python3. A comment\n"
    "'# vramtrack: ignore' on a line silences it. See docs/check.md.",
    declare};

}  // namespace vramtrack::cli
