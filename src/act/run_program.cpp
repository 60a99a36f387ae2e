#include "act/run_program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>

#include "core/descriptor.hpp"
#include "core/errno_words.hpp"
#include "core/printable.hpp"
#include "core/regular_file.hpp"
#include "host/privilege.hpp"

extern char** environ;

namespace vramtrack::act {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kMostErrors = 4096;
constexpr std::chrono::milliseconds kLook{20};

/// Writes the input to an unnamed file: a pipe would block if the program does not read it.
bool fill(Descriptor& file, const std::string& input) {
  file.reset(::memfd_create("vramtrack-alert", MFD_CLOEXEC));
  return file.get() >= 0 && write_all(file.get(), input) && ::lseek(file.get(), 0, SEEK_SET) == 0;
}

/// A list of texts in the form execve needs; the texts must outlive it.
std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

/// Variables that a program needs to find other programs, its files, its language and the network. The rest of our
/// environment, which may contain tokens, is not passed on.
bool is_passed_on(std::string_view variable) {
  constexpr std::array<std::string_view, 19> kPassedOn = {"PATH",
                                                          "HOME",
                                                          "USER",
                                                          "LOGNAME",
                                                          "SHELL",
                                                          "LANG",
                                                          "LANGUAGE",
                                                          "TZ",
                                                          "TMPDIR",
                                                          "XDG_RUNTIME_DIR",
                                                          "http_proxy",
                                                          "https_proxy",
                                                          "HTTP_PROXY",
                                                          "HTTPS_PROXY",
                                                          "no_proxy",
                                                          "SLURM_CONF",
                                                          "KUBECONFIG",
                                                          "KUBERNETES_SERVICE_HOST",
                                                          "KUBERNETES_SERVICE_PORT"};
  const std::string_view name = variable.substr(0, variable.find('='));
  return name.starts_with("LC_") || std::find(kPassedOn.begin(), kPassedOn.end(), name) != kPassedOn.end();
}

std::vector<std::string> environment(const Variables& variables) {
  std::vector<std::string> out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    if (is_passed_on(*entry)) out.emplace_back(*entry);
  for (const auto& [name, value] : variables) {
    std::string clean = value;
    std::erase(clean, '\0');
    out.push_back(name + '=' + clean);
  }
  return out;
}

/// Starts the program; returns 0 or an errno.
int spawn(std::vector<std::string> argv, std::vector<std::string> variables, int input, int output, int errors,
          pid_t& pid) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t how;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&how);
  // Each action allocates memory. Without one of them, the program would have the wrong files.
  int error = posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  if (error == 0)
    error = output >= 0 ? posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO)
                        : posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  if (error == 0) error = posix_spawn_file_actions_adddup2(&files, errors, STDERR_FILENO);
  // Our descriptors are opened with O_CLOEXEC; those inherited from our parent are not.
  if (error == 0) error = posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
  sigset_t all;
  sigset_t none;
  sigfillset(&all);
  sigemptyset(&none);
  posix_spawnattr_setsigdefault(&how, &all);
  posix_spawnattr_setsigmask(&how, &none);
  posix_spawnattr_setpgroup(&how, 0);
  posix_spawnattr_setflags(&how,
                           static_cast<short>(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK));
  if (error == 0)
    error = ::posix_spawnp(&pid, argv.front().c_str(), &files, &how, pointers(argv).data(), pointers(variables).data());
  posix_spawnattr_destroy(&how);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

/// Reads the program's messages and keeps the end of them.
void listen(int fd, std::string& errors, std::chrono::milliseconds at_most) {
  pollfd wait{fd, POLLIN, 0};
  if (fd < 0 || ::poll(&wait, 1, static_cast<int>(at_most.count())) <= 0) return;
  std::array<char, kMostErrors> part{};
  const ssize_t n = ::read(fd, part.data(), part.size());
  if (n > 0) errors.append(part.data(), static_cast<std::size_t>(n));
  if (errors.size() > kMostErrors) errors.erase(0, errors.size() - kMostErrors);
}

std::string last_line(std::string errors) {
  while (!errors.empty() && (errors.back() == '\n' || errors.back() == ' ')) errors.pop_back();
  const std::string line = printable(errors.substr(errors.rfind('\n') + 1).substr(0, 200));
  return line.empty() ? std::string() : ": " + line;
}

}  // namespace

Variables variables_of(const Message& m, const OutboxRules& rules) {
  return {{"VRAMTRACK_ALERT_EVENT", m.event},
          {"VRAMTRACK_ALERT_ID", m.id},
          {"VRAMTRACK_ALERT_INCIDENT", m.incident},
          {"VRAMTRACK_ALERT_SEVERITY", std::string(to_string(m.severity))},
          {"VRAMTRACK_ALERT_HOST", rules.host},
          {"VRAMTRACK_ALERT_DEVICE", m.device},
          {"VRAMTRACK_ALERT_PID", m.pid != 0 ? std::to_string(m.pid) : std::string()},
          {"VRAMTRACK_ALERT_HEADLINE", std::string(headline(m.text))},
          {"VRAMTRACK_ALERT_SIMULATED", rules.simulated}};
}

namespace {

/// Runs a program once; `output` (-1: discarded) is its standard output.
Outcome run(const std::vector<std::string>& argv, const std::string& input, const Variables& variables, int output,
            double timeout_s, const std::atomic<bool>& stop) {
  const auto failed = [&](const std::string& why) {
    return Outcome{Outcome::Kind::retry, fmt::format("{} {}", argv.front(), why), {}};
  };
  Descriptor in;
  if (!fill(in, input)) return failed("could not be given the alert: " + errno_words(errno));
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return failed("could not be started: " + errno_words(errno));
  const Descriptor errors_end(ends[0]);
  Descriptor program_end(ends[1]);
  std::string errors;
  errors.reserve(2 * kMostErrors);  // no allocation once the program runs: a failure would leave it unattended
  pid_t pid = -1;
  const int error = spawn(argv, environment(variables), in.get(), output, program_end.get(), pid);
  program_end.reset();
  if (error != 0) return failed("could not be started: " + errno_words(error));

  const auto deadline = steady_clock::now() +
                        std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(timeout_s));
  int status = 0;
  bool killed = false;
  for (;;) {
    const pid_t ended = ::waitpid(pid, &status, WNOHANG);
    if (ended == pid || (ended < 0 && errno != EINTR)) break;
    if (!killed && (stop || steady_clock::now() >= deadline)) {
      ::kill(-pid, SIGKILL);
      killed = true;
    }
    // If the program has closed its end (as a daemon does), poll() returns at once: then only check occasionally.
    const auto before = steady_clock::now();
    listen(errors_end.get(), errors, kLook);
    if (const auto rest = kLook - (steady_clock::now() - before); rest > steady_clock::duration::zero())
      ::poll(nullptr, 0, static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(rest).count()));
  }
  // Read its last messages without waiting for others in its group, which may hold the pipe open.
  listen(errors_end.get(), errors, std::chrono::milliseconds{0});
  if (killed)
    return failed(stop ? "was ended because vramtrack ended"
                       : fmt::format("took longer than {:.3g} s and was ended", timeout_s) + last_line(errors));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {Outcome::Kind::delivered, {}, {}};
  if (WIFSIGNALED(status)) return failed(fmt::format("was ended by signal {}", WTERMSIG(status)) + last_line(errors));
  return failed(fmt::format("ended with exit status {}", WEXITSTATUS(status)) + last_line(errors));
}

}  // namespace

Outcome run_program(const std::vector<std::string>& argv, const std::string& input, const Variables& variables,
                    double timeout_s, const std::atomic<bool>& stop) {
  const auto trusted = trusted_command(argv);
  if (!trusted) return {Outcome::Kind::retry, trusted.error().message, {}};
  return run(*trusted, input, variables, -1, timeout_s, stop);
}

Result<std::string> run_for_output(const std::vector<std::string>& argv, double timeout_s,
                                   const std::atomic<bool>& stop) {
  constexpr std::size_t kMostOutput = 64 * 1024;
  // A file rather than a pipe, so that nobody has to read while the program writes.
  const Descriptor output(::memfd_create("vramtrack-output", MFD_CLOEXEC));
  if (output.get() < 0) return fail(argv.front() + " could not be started: " + errno_words(errno));
  const Outcome outcome = run(argv, {}, {}, output.get(), timeout_s, stop);
  if (outcome.kind != Outcome::Kind::delivered) return fail(outcome.why);
  std::string text(kMostOutput, '\0');
  const ssize_t n = ::pread(output.get(), text.data(), text.size(), 0);
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return text;
}

}  // namespace vramtrack::act
