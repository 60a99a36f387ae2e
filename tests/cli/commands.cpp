// The commands of vramtrack, one after the other in one process: a start of the program takes as long as the analysis
// of a small log. one_process.py starts it and has the other half of this protocol: a request on standard input is a
// line with the number of bytes that follow, which are the arguments, each ended by a zero byte. The answer on standard
// output is a line with the exit code and the lengths of what the command wrote to standard output and to standard
// error, and then both. Commands read an empty standard input.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "cli/command_line.hpp"

namespace {

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::exit(3);
}

/// A standard stream that is a file in memory from here on.
class Captured {
 public:
  explicit Captured(int stream) : stream_(stream) {
    const int file = ::memfd_create("captured", MFD_CLOEXEC);
    if (file < 0 || ::dup2(file, stream) < 0) give_up("memfd_create");
    ::close(file);
  }

  /// What was written since the last call.
  std::string take() {
    std::string text(static_cast<std::size_t>(::lseek(stream_, 0, SEEK_CUR)), '\0');
    if (::pread(stream_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) give_up("pread");
    if (::ftruncate(stream_, 0) != 0 || ::lseek(stream_, 0, SEEK_SET) != 0) give_up("ftruncate");
    return text;
  }

 private:
  int stream_;
};

}  // namespace

int main() {
  std::FILE* const requests = ::fdopen(::dup(STDIN_FILENO), "r");
  std::FILE* const answers = ::fdopen(::dup(STDOUT_FILENO), "w");
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (requests == nullptr || answers == nullptr || ::dup2(nothing, STDIN_FILENO) < 0) give_up("standard streams");
  Captured out(STDOUT_FILENO);
  Captured error(STDERR_FILENO);
  for (std::size_t length = 0; std::fscanf(requests, "%zu%*1[\n]", &length) == 1;) {
    std::string words(length, '\0');
    if (std::fread(words.data(), 1, length, requests) != length) return 3;
    std::vector<const char*> argv = {"vramtrack"};
    for (std::size_t at = 0; at < length; at = words.find('\0', at) + 1) argv.push_back(&words[at]);
    argv.push_back(nullptr);
    const int code = vramtrack::cli::run_command_line(static_cast<int>(argv.size()) - 1, argv.data());
    const std::string written = out.take();
    const std::string reported = error.take();
    std::fprintf(answers, "%d %zu %zu\n", code, written.size(), reported.size());
    std::fwrite(written.data(), 1, written.size(), answers);
    std::fwrite(reported.data(), 1, reported.size(), answers);
    std::fflush(answers);
  }
}
