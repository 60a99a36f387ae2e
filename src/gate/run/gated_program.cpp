#include "gate/run/gated_program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>

#include "core/errno_words.hpp"
#include "gate/marks.hpp"
#include "host/child_program.hpp"
#include "host/interrupt.hpp"

namespace vramtrack::gate {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{20};  ///< how soon the program's end is detected when its pipe is quiet
constexpr std::size_t kMostSamples = 1'000'000;

class Pipe {
 public:
  Pipe() { opened_ = ::pipe2(ends_.data(), O_CLOEXEC) == 0; }
  ~Pipe() {
    close(0);
    close(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  [[nodiscard]] bool opened() const { return opened_; }
  [[nodiscard]] int end(std::size_t which) const { return ends_[which]; }
  void close(std::size_t which) {
    if (ends_[which] >= 0) ::close(ends_[which]);
    ends_[which] = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
  bool opened_ = false;
};

/// The pipe as "DEVICE:INODE:PATH". A child can thus recognise it among other files with the same descriptor number,
/// and open it if a launcher has closed all descriptors.
std::string identity_of(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return "";
  return fmt::format("{}:{}:/proc/{}/fd/{}", status.st_dev, status.st_ino, ::getpid(), fd);
}

/// Starts the program with the pipe's writing end at the same descriptor number.
Result<pid_t> start(const std::vector<std::string>& program, int fd, const std::string& evidence_folder) {
  std::vector<Variable> changes = {{"VRAMTRACK_MARK_FD", std::to_string(fd)}, {"VRAMTRACK_MARK_PIPE", identity_of(fd)}};
  // If the variable is already set, the user chose another folder, or none.
  if (!evidence_folder.empty() && ::getenv("VRAMTRACK_TEST_EVIDENCE") == nullptr)
    changes.push_back({"VRAMTRACK_TEST_EVIDENCE", evidence_folder});
  return start_program(program, changes, fd);
}

class Run {
 public:
  Run(pid_t pid, int fd, double sample_s, const TreeMemory& memory)
      : pid_(pid),
        fd_(fd),
        period_(std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(sample_s))),
        memory_(memory) {}

  ProgramRun go() {
    auto next_sample = steady_clock::now() + period_;
    bool ended = false;
    while (!ended) {
      if (Interrupt::requested() && !run_.interrupted) {
        run_.interrupted = true;
        ::kill(pid_, SIGTERM);
      }
      const auto now = steady_clock::now();
      const auto wait =
          std::min<steady_clock::duration>(kLook, std::max(next_sample - now, steady_clock::duration::zero()));
      read_marks(std::chrono::ceil<std::chrono::milliseconds>(wait));
      ended = has_ended();
      // Descendants may hold the pipe open forever, so only what it contains when the program ends counts.
      if (ended) {
        while (read_marks(std::chrono::milliseconds(0))) continue;
        break;
      }
      if (steady_clock::now() >= next_sample) {
        sample();
        next_sample = std::max(next_sample + period_, steady_clock::now());
      }
    }
    // A short program may end before its first sample; the message about it must state whether measuring was possible.
    if (run_.marks.empty() && run_.samples.empty() && run_.not_measured.empty()) (void)measure();
    run_.skipped_lines = reader_.skipped_lines();
    return std::move(run_);
  }

 private:
  bool has_ended() {
    const auto end = ended_program(pid_);
    if (!end) return false;
    run_.exit_code = end->exit_code;
    run_.signal = end->signal;
    return true;
  }

  std::optional<double> measure() {
    const Result<double> bytes = memory_(pid_);
    if (bytes) return *bytes;
    run_.not_measured = bytes.error().message;
    return std::nullopt;
  }

  void sample() {
    if (run_.samples.size() >= kMostSamples) return;
    if (const auto bytes = measure(); bytes && (*bytes > 0 || !run_.samples.empty())) run_.samples.push_back(*bytes);
  }

  bool read_marks(std::chrono::milliseconds wait) {
    pollfd waiting{fd_, POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(wait.count())) <= 0 || waiting.revents == 0) return false;
    std::array<char, 4096> buffer{};
    const ssize_t n = ::read(fd_, buffer.data(), buffer.size());
    if (n <= 0) return false;
    for (const gate::Mark& mark : reader_.read({buffer.data(), static_cast<std::size_t>(n)})) take(mark);
    return true;
  }

  void take(const gate::Mark& mark) {
    const auto bytes = mark.used_bytes ? mark.used_bytes : measure();
    if (!bytes) return;
    auto series = std::find_if(run_.marks.begin(), run_.marks.end(),
                               [&](const IterationSeries& s) { return s.name == mark.name && s.key == mark.key; });
    if (series == run_.marks.end()) {
      if (run_.marks.size() >= 256) return;
      run_.marks.push_back({mark.name, mark.key, {}});
      series = run_.marks.end() - 1;
    }
    if (series->used_bytes.size() < kMostSamples) series->used_bytes.push_back(*bytes);
  }

  pid_t pid_;
  int fd_;
  steady_clock::duration period_;
  const TreeMemory& memory_;
  gate::MarkReader reader_;
  ProgramRun run_;
};

}  // namespace

Result<ProgramRun> run_gated(const std::vector<std::string>& program, double sample_s, const TreeMemory& memory,
                             const std::string& evidence_folder) {
  Pipe pipe;
  if (!pipe.opened()) return fail(fmt::format("cannot create a pipe: {}", errno_words(errno)));
  const Interrupt interrupt;
  const auto pid = start(program, pipe.end(1), evidence_folder);
  if (!pid) return fail(pid.error());
  // The writing end stays open here for children that open it by its path after everyone else has closed it.
  return Run(*pid, pipe.end(0), sample_s, memory).go();
}

}  // namespace vramtrack::gate
