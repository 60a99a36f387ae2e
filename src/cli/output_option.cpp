#include "cli/output_option.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "core/descriptor.hpp"
#include "core/errno_words.hpp"
#include "core/output_file.hpp"

namespace vramtrack::cli {
namespace {

constexpr int kFailed = 2;

/// While the object lives, standard output is a file in memory.
class Collected {
 public:
  Collected()
      : real_(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)), text_(::memfd_create("vramtrack-output", MFD_CLOEXEC)) {
    works_ = real_.get() >= 0 && text_.get() >= 0 && ::dup2(text_.get(), STDOUT_FILENO) >= 0;
  }
  ~Collected() { give_back(); }
  Collected(const Collected&) = delete;
  Collected& operator=(const Collected&) = delete;

  [[nodiscard]] bool works() const { return works_; }

  void give_back() {
    if (works_) ::dup2(real_.get(), STDOUT_FILENO);
    works_ = false;
  }

  [[nodiscard]] bool is_empty() const { return ::lseek(text_.get(), 0, SEEK_END) <= 0; }

  Status write_to(OutputFile& file) const {
    std::array<char, 1 << 16> part;
    for (off_t at = 0;;) {
      const ssize_t got = ::pread(text_.get(), part.data(), part.size(), at);
      if (got < 0) return fail("cannot write the output: " + errno_words(errno));
      if (got == 0 || !file.write(std::string_view(part.data(), static_cast<std::size_t>(got)))) return file.finish();
      at += got;
    }
  }

 private:
  Descriptor real_;
  Descriptor text_;
  bool works_ = false;
};

int run_into(const std::string& path, const Runner& run, Console& console) {
  const auto failed = [&console](const std::string& why) {
    console.error(why);
    return kFailed;
  };
  auto file = OutputFile::open(path);
  if (!file) return failed(file.error().message);
  Collected printed;
  if (!printed.works()) return failed("cannot write the output: " + errno_words(errno));
  Console inner;  // detects that it writes to a file
  const int exit_code = run(inner);
  printed.give_back();
  if (printed.is_empty()) return exit_code;
  const Status written = printed.write_to(*file);
  return written ? exit_code : failed(written.error().message);
}

}  // namespace

Runner with_output(Arguments& arguments, Runner run) {
  const auto path = std::make_shared<std::string>();
  arguments.output(*path);
  return [path, run = std::move(run)](Console& console) {
    return path->empty() ? run(console) : run_into(*path, run, console);
  };
}

}  // namespace vramtrack::cli
