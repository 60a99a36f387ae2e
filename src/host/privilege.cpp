#include "host/privilege.hpp"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "core/file_way.hpp"

namespace vramtrack {

namespace {

/// The capabilities of this thread; 0 if the kernel does not report them.
std::uint64_t effective_capabilities() {
  std::ifstream in("/proc/self/status");
  std::uint64_t effective = 0;
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("CapEff:\t")) std::from_chars(line.data() + 8, line.data() + line.size(), effective, 16);
  return effective;
}

bool is_regular(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

/// The file that a name without a slash stands for, as the shell finds it; otherwise `program`.
std::string found_in_path(const std::string& program) {
  const char* const folders = std::getenv("PATH");
  if (program.find('/') != std::string::npos || folders == nullptr) return program;
  for (std::string_view rest = folders; !rest.empty();) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    std::string path = (folder.empty() ? "." : std::string(folder)) + '/' + program;
    if (is_regular(path) && ::access(path.c_str(), X_OK) == 0) return path;
  }
  return program;
}

/// The parts of an argument that may be the path of a file: the argument, and each absolute path in it.
std::vector<std::string> paths_in(const std::string& argument) {
  constexpr std::string_view kEnds = " \t\n\r\"'`=:,;|&<>()[]{}";  // of a word, in a shell's text, a list or an option
  std::vector<std::string> paths = {argument};
  for (std::size_t at = 0; at < argument.size();) {
    const std::size_t end = std::min(argument.find_first_of(kEnds, at), argument.size());
    const std::size_t root = argument.find('/', at);  // not always its first character: -I/opt/lib
    if (root < end) paths.push_back(argument.substr(root, end - root));
    at = end + 1;
  }
  return paths;
}

}  // namespace

bool may_read_others() {
  return ::geteuid() == 0 || ((effective_capabilities() >> CAP_SYS_PTRACE) & 1U) != 0;
}

bool is_privileged() {
  return ::geteuid() == 0 || effective_capabilities() != 0;
}

Result<std::vector<std::string>> trusted_command(std::vector<std::string> argv) {
  if (!is_privileged()) return argv;
  std::string& program = argv.front();
  program = found_in_path(program);
  if (const std::string writer = others_who_write(program); !writer.empty())
    return fail(fmt::format("the program {} is not run, because another user could replace it: {}", program, writer));
  for (auto argument = argv.begin() + 1; argument != argv.end(); ++argument)
    for (const std::string& path : paths_in(*argument))
      if (const std::string writer = is_regular(path) ? others_who_write(path) : std::string(); !writer.empty())
        return fail(
            fmt::format("the program {} is not run, because another user could change the file {} that its arguments "
                        "name: {}",
                        program, path, writer));
  return argv;
}

Status trusted_library(const std::string& path) {
  if (!is_privileged() || path.find('/') == std::string::npos) return {};
  const std::string writer = others_who_write(path);
  if (writer.empty()) return {};
  return fail(fmt::format("the library {} is not loaded, because another user could replace it: {}", path, writer));
}

void keep_capabilities() {
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

}  // namespace vramtrack
