#include "run/attach_ways.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/errno_words.hpp"
#include "core/option.hpp"
#include "core/printable.hpp"
#include "host/process.hpp"
#include "host/small_file.hpp"
#include "probe/wire.hpp"
#include "run/client/ask.hpp"

namespace vramtrack::run {
namespace {

constexpr std::size_t kLongestLine = 1U << 20U;
/// How long the main thread of a program may take to reach its next line of Python.
constexpr std::chrono::seconds kInjectionPatience{15};
/// How long a debugger may take to read a large program, which is stopped meanwhile.
constexpr std::chrono::seconds kDebuggerPatience{60};
constexpr unsigned kFirstRemoteMinor = 14, kFirstMinor = 8;
constexpr const char* kDebuggers[] = {"/usr/bin/gdb", "/usr/local/bin/gdb"};

/// The options that the program needs at its next start.
constexpr std::string_view kNextTime =
    "next time, start it with 'vramtrack run -- PROGRAM', which needs no change to the program; or make it call "
    "vramtrack.allow_attach(), or import vramtrack with VRAMTRACK_ATTACHABLE=1 set";

std::vector<std::uint64_t> sockets_of(std::uint32_t pid) {
  std::vector<std::uint64_t> inodes;
  const std::string folder = fmt::format("/proc/{}/fd", pid);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir(folder.c_str()), ::closedir);
  if (!listing) return inodes;
  while (const dirent* entry = ::readdir(listing.get())) {
    std::array<char, 64> target{};
    const ssize_t size = ::readlinkat(::dirfd(listing.get()), entry->d_name, target.data(), target.size());
    constexpr std::string_view kSocket = "socket:[";
    std::string_view text(target.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
    if (!text.starts_with(kSocket) || !text.ends_with(']')) continue;
    text.remove_prefix(kSocket.size());
    text.remove_suffix(1);
    if (const auto inode = parse_unsigned(text)) inodes.push_back(*inode);
  }
  return inodes;
}

/// Checks that only this user or root could have written the executable file.
Status is_trusted(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return fail(fmt::format("{}: {}", printable(path), errno_words(errno)));
  const bool is_owned = status.st_uid == ::getuid() || status.st_uid == 0;
  const bool is_shared = (status.st_mode & S_IWOTH) != 0 ||
                         ((status.st_mode & S_IWGRP) != 0 && status.st_gid != ::getgid() && status.st_gid != 0);
  if (!is_owned || is_shared || !S_ISREG(status.st_mode))
    return fail("its interpreter can be written by other users, and is therefore not run");
  return {};
}

Status write_private(const std::string& path, std::string_view text) {
  ::unlink(path.c_str());
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return fail(fmt::format("{}: {}", printable(path), errno_words(errno)));
  bool is_whole = true;
  while (is_whole && !text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    is_whole = n > 0;
    if (is_whole) text.remove_prefix(static_cast<std::size_t>(n));
  }
  const int error = errno;
  ::close(fd);
  if (is_whole) return {};
  return fail(fmt::format("{}: {}", printable(path), errno_words(error)));
}

/// Reads the other end's output until it is closed. Returns false if that takes longer than `until`.
bool read_to_end(int from, std::string& into, std::chrono::steady_clock::time_point until) {
  std::array<char, 4096> piece{};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd waiting{from, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(left.count()));
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    const ssize_t got = ready < 0 ? -1 : ::read(from, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    if (into.size() < kLongestLine) into.append(piece.data(), static_cast<std::size_t>(got));
  }
}

/// The script that the program runs: its source is passed as hexadecimal digits, under its own name.
std::string injected() {
  std::string digits;
  for (const char c : attach_script()) digits += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return fmt::format(
      "import sys\n"
      "def _attach():\n"
      "    module = sys.modules.get('vramtrack.attach_socket') or sys.modules.get('vramtrack_attach')\n"
      "    if module is None:\n"
      "        import types\n"
      "        module = types.ModuleType('vramtrack_attach')\n"
      "        exec(compile(bytes.fromhex('{}'), '<vramtrack attach>', 'exec'), module.__dict__)\n"
      "        sys.modules['vramtrack_attach'] = module\n"
      "    module._open(once=True)\n"
      "_attach()\n",
      digits);
}

/// The output of an executed program, and how it ended.
struct Ran {
  int status = 0;
  std::string output;
};

/// Runs `file` with `words`, of which the last is null, for at most `patience`; nullopt: it took longer and was
/// killed.
Result<std::optional<Ran>> run_tool(const char* file, const char* const* words, std::chrono::seconds patience) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(errno_words(errno));
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    ::dup2(ends[1], STDOUT_FILENO);
    ::execv(file, const_cast<char* const*>(words));
    ::_exit(127);
  }
  ::close(ends[1]);
  if (child < 0) {
    const int error = errno;
    ::close(ends[0]);
    return fail(errno_words(error));
  }
  Ran ran;
  const bool has_ended = read_to_end(ends[0], ran.output, std::chrono::steady_clock::now() + patience);
  ::close(ends[0]);
  if (!has_ended) ::kill(child, SIGKILL);
  pid_t reaped = -1;
  while ((reaped = ::waitpid(child, &ran.status, 0)) < 0 && errno == EINTR) continue;
  if (reaped != child) return fail(errno_words(errno));
  if (!has_ended) return std::nullopt;
  return ran;
}

constexpr std::string_view kForbidden =
    "; the system forbids it (kernel.yama.ptrace_scope): run it as root, or set ptrace_scope to 0";

/// Runs the target's own interpreter, which asks the target to run `script` at its next line of Python.
Status ask_python(const std::string& program, std::uint32_t pid, const std::string& script) {
  const std::string number = fmt::format("{}", pid);
  const std::string name = fmt::format("/proc/{}/exe", pid);
  const char* const code = "import sys; sys.remote_exec(int(sys.argv[1]), sys.argv[2])";
  const char* const words[] = {program.c_str(), "-I", "-S", "-c", code, number.c_str(), script.c_str(), nullptr};
  auto ran = run_tool(name.c_str(), words, kInjectionPatience);
  if (!ran) return fail(ran.error());
  if (!*ran) return fail(fmt::format("its Python did not start within {} s, or hangs", kInjectionPatience.count()));
  std::string& output = (*ran)->output;
  if ((*ran)->status == 0) return {};
  // The last line of a traceback contains the reason.
  while (output.ends_with('\n')) output.pop_back();
  const std::string reason = printable(output.substr(output.rfind('\n') + 1));
  return fail(fmt::format("its Python could not be asked to allow this: {}{}",
                          reason.empty() ? "it did not start" : reason,
                          reason.find("ermission") != std::string::npos ? kForbidden : std::string_view{}));
}

/// Makes gdb stop the program for a moment and ask its interpreter, by Py_AddPendingCall(), to run `script` at the main
/// thread's next line. It does not use the program's heap, because a stopped thread may hold its lock: the text is in a
/// separate page. The text catches every exception, because one that escaped would be raised in the program.
Status ask_debugger(std::uint32_t pid, const std::string& script) {
  const char* const* const gdb = std::find_if(std::begin(kDebuggers), std::end(kDebuggers),
                                              [](const char* path) { return ::access(path, X_OK) == 0; });
  if (gdb == std::end(kDebuggers)) return fail("there is no gdb: install it (apt install gdb)");
  if (const Status trusted = is_trusted(*gdb); !trusted)
    return fail(fmt::format("{}: {}", *gdb, trusted.error().message));
  std::string digits;
  for (const char c : script) digits += fmt::format("{:02x}", static_cast<unsigned char>(c));
  const std::string text = fmt::format(
      "try: exec(compile(open(bytes.fromhex('{}').decode()).read(),'<vramtrack attach>','exec'),{{}})\\nexcept "
      "BaseException: pass\\n",
      digits);
  const std::size_t length = text.size() - 2 + 1;  // two newlines are written as two characters each; a zero ends it
  if (length > 4096) return fail("the path of its script is too long");
#ifdef __x86_64__
  // gdb leaves a file of commands at its first error. One that cannot write the vector registers (gdb 13 on a processor
  // with AMX) could call a function, but not restore what it had changed for that. It does not write an equal value.
  constexpr std::string_view kWritesRegisters =
      "set $xmm0.v4_int32[0] = $xmm0.v4_int32[0] ^ 1\n"
      "set $xmm0.v4_int32[0] = $xmm0.v4_int32[0] ^ 1\n";
#else
  constexpr std::string_view kWritesRegisters;
#endif
  const std::string commands = script + ".gdb";
  const Status written = write_private(
      commands, fmt::format("attach {}\n"
                            "{}"
                            "sharedlibrary libpython3\n"
                            "sharedlibrary libc\\.\n"
                            "set $text = ((void*(*)(void*,unsigned long,int,int,int,long))mmap)(0,4096,3,34,-1,0)\n"
                            "set {{char[{}]}} $text = \"{}\"\n"
                            "printf \"vramtrack: %d\\n\", "
                            "((int(*)(void*,void*))Py_AddPendingCall)((void*)&PyRun_SimpleString,$text)\n"
                            "detach\n",
                            pid, kWritesRegisters, length, text));
  if (!written) return fail(written.error());
  const char* const words[] = {*gdb, "-nx", "-batch", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off",
                               // Loading the symbols of a framework's libraries would take minutes.
                               "-iex", "set auto-solib-add off", "-iex", "set confirm off", "-x", commands.c_str(),
                               nullptr};
  auto ran = run_tool(*gdb, words, kDebuggerPatience);
  ::unlink(commands.c_str());
  if (!ran) return fail(ran.error());
  if (!*ran) return fail(fmt::format("gdb did not finish within {} s and was stopped", kDebuggerPatience.count()));
  const std::string& output = (*ran)->output;
  if (output.find("vramtrack: 0\n") != std::string::npos) return {};
  if (output.find("not permitted") != std::string::npos) return fail(fmt::format("gdb may not stop it{}", kForbidden));
  if (output.find("extended state") != std::string::npos)
    return fail(
        "gdb cannot restore the registers of this processor (AMX), and called nothing: install gdb 14 or newer");
  if (output.find("No symbol") != std::string::npos)
    return fail("gdb does not find the functions of its Python: it is stripped, or is not a CPython");
  return fail(
      "gdb could not call its Python; the last line of its output: " +
      printable(output.substr(std::min(
          output.size(), output.find_last_of('\n', output.size() - std::min<std::size_t>(output.size(), 2)) + 1))));
}

/// Waits for the attach socket that `script` opens. Returns the path of the socket.
Result<std::string> wait_for_attach_socket(const AttachTarget& target, const std::string& script,
                                           std::string_view else_words) {
  const auto until = std::chrono::steady_clock::now() + kInjectionPatience;
  while (std::chrono::steady_clock::now() < until && !target.has_ended()) {
    if (std::string path = find_attach_socket(target.pid()); !path.empty()) {
      ::unlink(script.c_str());
      return path;
    }
    ::poll(nullptr, 0, 20);
  }
  // Keep the file: the program may still run it, and then closes the socket after a minute.
  return fail(fmt::format("process {} {} within {} s", target.pid(), else_words, kInjectionPatience.count()));
}

/// Opens the socket through Python 3.14 or newer, or through a debugger.
Result<std::string> let_in(const AttachTarget& target, const std::string& program, bool with_debugger) {
  const std::uint32_t pid = target.pid();
  if (const Status trusted = is_trusted(fmt::format("/proc/{}/exe", pid)); !trusted) return fail(trusted.error());
  const auto folder = runs_folder();
  if (!folder) return fail(folder.error());
  const std::string script = fmt::format("{}/attach-{}.py", *folder, pid);
  if (const Status written = write_private(script, injected()); !written) return fail(written.error());
  if (const Status asked = with_debugger ? ask_debugger(pid, script) : ask_python(program, pid, script); !asked) {
    ::unlink(script.c_str());
    return fail(asked.error());
  }
  return wait_for_attach_socket(target, script,
                                "did not reach a line of Python (its main thread is waiting or computing in C)");
}

/// Opens the socket through the probe of `vramtrack run`: its search for what keeps memory runs a script that it finds.
Result<std::string> let_in_by_probe(const AttachTarget& target, const std::string& folder) {
  if (::access((folder + probe::kKeptScript).c_str(), R_OK) != 0)
    return fail(
        fmt::format("process {0} runs under 'vramtrack run --no-kept', which does not allow attaching; 'vramtrack "
                    "control {0}' shows what it "
                    "holds, and 'vramtrack trace report' names the lines",
                    target.pid()));
  const std::string script = fmt::format("{}/attach.{}.py", folder, target.pid());
  if (const Status written = write_private(script, injected()); !written) return fail(written.error());
  if (const auto asked = ask_control(folder, "kept"); !asked) {
    ::unlink(script.c_str());
    return fail(fmt::format("process {} runs under 'vramtrack run', which does not answer: {}", target.pid(),
                            asked.error().message));
  }
  return wait_for_attach_socket(target, script,
                                "runs under 'vramtrack run', which accepts a connection only while memory is "
                                "allocated; it allocated no GPU memory");
}

}  // namespace

std::string find_attach_socket(std::uint32_t pid) {
  constexpr std::size_t kMostBytes = 16U << 20U;
  const auto known = read_text_file(fmt::format("/proc/{}/net/unix", pid), kMostBytes);
  return known ? attach_socket_path(*known, sockets_of(pid), pid) : std::string{};
}

Result<std::string> open_attach_socket(const AttachTarget& target, bool with_debugger) {
  const std::uint32_t pid = target.pid();
  const std::string program = link_target(fmt::format("/proc/{}/exe", pid));
  const std::string version = python_version_of(program, read_mapped_names("/proc", pid).names);
  const std::vector<ProbedPid> all = probed_processes(::getuid());
  const auto probed = std::find_if(all.begin(), all.end(), [pid](const ProbedPid& each) { return each.pid == pid; });
  if (version.empty() && probed != all.end())
    return fail(fmt::format(
        "process {0} runs under 'vramtrack run' already, and is not a Python program: 'vramtrack control {0}' "
        "shows what it holds, and 'vramtrack trace report' names the lines",
        pid));
  if (version.empty())
    return fail(
        fmt::format("no Python interpreter was recognized in process {}: only PyTorch's recorder can be switched on "
                    "in a running program; {}",
                    pid, "next time, start it with 'vramtrack run -- PROGRAM'"));
  if (probed != all.end()) return let_in_by_probe(target, probed->folder);
  const std::uint64_t minor = parse_unsigned(version.substr(2)).value_or(0);
  if (minor < kFirstMinor)
    return fail(fmt::format("process {} runs Python {}: attaching needs 3.{} or newer; {}", pid, version, kFirstMinor,
                            kNextTime));
  if (minor < kFirstRemoteMinor && !with_debugger)
    return fail(
        fmt::format("process {} runs Python {}, which cannot be attached to from outside before 3.{}, and has no "
                    "socket from vramtrack.allow_attach(). With {}, gdb stops it for a moment and calls its "
                    "Python (docs/attach.md describes the risk); or {}",
                    pid, version, kFirstRemoteMinor, name_of(Option::inject), kNextTime));
  auto opened = let_in(target, program, minor < kFirstRemoteMinor);
  if (!opened) return fail(fmt::format("process {}: {}; {}", pid, opened.error().message, kNextTime));
  return opened;
}

}  // namespace vramtrack::run
