// Finding the door of a Python program, opening it where Python offers that, and speaking through it.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <utility>

#include "core/errno_words.hpp"
#include "core/output_file.hpp"
#include "core/printable.hpp"
#include "host/process.hpp"
#include "host/small_file.hpp"
#include "run/attach.hpp"
#include "run/client/ask.hpp"

namespace vramtrack::run {
namespace {

constexpr int kPatienceMs = 120'000;  ///< a snapshot of a large program takes a while
constexpr std::size_t kLongestLine = 1U << 20U;
constexpr std::size_t kMostLines = 10'000;
/// How long the main thread of a program may take to come to its next line of Python.
constexpr std::chrono::seconds kInjectionPatience{15};
constexpr unsigned kFirstRemoteMinor = 14;

/// What the program has to be started with, for the next time.
constexpr std::string_view kNextTime =
    "start it the next time with 'vramtrack run -- PROGRAM', which needs nothing of the program; or let it call "
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

std::string find_door(std::uint32_t pid) {
  constexpr std::size_t kMostBytes = 16U << 20U;
  const auto known = read_text_file(fmt::format("/proc/{}/net/unix", pid), kMostBytes);
  return known ? door_path(*known, sockets_of(pid), pid) : std::string{};
}

/// A connection to the door, which is the target's own: the kernel says who listens there.
Result<int> connect_to(const std::string& path, std::uint32_t pid) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return fail(fmt::format("{}: the path is too long", printable(path)));
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  // A blocking connection would wait without end where others wait in line already.
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  ucred peer{};
  socklen_t size = sizeof peer;
  if (fd < 0 || ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int error = errno;
    if (fd >= 0) ::close(fd);
    if (error == EAGAIN)
      return fail(fmt::format(
          "process {} does not answer: another vramtrack is attached to it, and more are waiting; try again later",
          pid));
    return fail(fmt::format("{}: {}", printable(path), errno_words(error)));
  }
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != ::getuid() ||
      peer.pid != static_cast<pid_t>(pid)) {
    ::close(fd);
    return fail(fmt::format("{} is not process {}'s: another process listens there", printable(path), pid));
  }
  return fd;
}

/// Whether only this user, or root, could have written the file that is executed.
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

/// Reads what the other end writes until it is closed, or `until`: then false.
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

/// The script that the program runs: its source travels as hexadecimal digits, and keeps a name of its own.
std::string injected() {
  std::string digits;
  for (const char c : attach_script()) digits += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return fmt::format(
      "import sys\n"
      "def _attach():\n"
      "    door = sys.modules.get('vramtrack.door') or sys.modules.get('vramtrack_attach')\n"
      "    if door is None:\n"
      "        import types\n"
      "        door = types.ModuleType('vramtrack_attach')\n"
      "        exec(compile(bytes.fromhex('{}'), '<vramtrack attach>', 'exec'), door.__dict__)\n"
      "        sys.modules['vramtrack_attach'] = door\n"
      "    door._open(once=True)\n"
      "_attach()\n",
      digits);
}

/// Runs the target's own interpreter, which asks the target to run `script` at its next line of Python.
Status ask_python(const std::string& program, std::uint32_t pid, const std::string& script) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(errno_words(errno));
  const std::string number = fmt::format("{}", pid);
  const std::string name = fmt::format("/proc/{}/exe", pid);
  const char* const code = "import sys; sys.remote_exec(int(sys.argv[1]), sys.argv[2])";
  // What the child needs is made before the fork.
  const char* const words[] = {program.c_str(), "-I", "-S", "-c", code, number.c_str(), script.c_str(), nullptr};
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    ::dup2(ends[1], STDOUT_FILENO);
    ::execv(name.c_str(), const_cast<char* const*>(words));
    ::_exit(127);
  }
  ::close(ends[1]);
  if (child < 0) {
    const int error = errno;
    ::close(ends[0]);
    return fail(errno_words(error));
  }
  std::string said;
  const bool has_ended = read_to_end(ends[0], said, std::chrono::steady_clock::now() + kInjectionPatience);
  ::close(ends[0]);
  if (!has_ended) ::kill(child, SIGKILL);
  int status = -1;
  pid_t reaped = -1;
  while ((reaped = ::waitpid(child, &status, 0)) < 0 && errno == EINTR) continue;
  if (reaped != child) return fail(errno_words(errno));
  if (!has_ended)
    return fail(fmt::format("its Python did not start within {} s, or hangs", kInjectionPatience.count()));
  if (status == 0) return {};
  // The last line of a traceback is the reason.
  while (said.ends_with('\n')) said.pop_back();
  const std::string reason = printable(said.substr(said.rfind('\n') + 1));
  return fail(
      fmt::format("its Python could not be asked to allow this: {}{}", reason.empty() ? "it did not start" : reason,
                  reason.find("ermission") != std::string::npos
                      ? "; the system forbids it (kernel.yama.ptrace_scope): run it as root, or set ptrace_scope to 0"
                      : ""));
}

/// Has Python 3.14 and newer open the door. The path of its socket.
Result<std::string> let_in(const AttachTarget& target, const std::string& program) {
  const std::uint32_t pid = target.pid();
  if (const Status trusted = is_trusted(fmt::format("/proc/{}/exe", pid)); !trusted) return fail(trusted.error());
  const auto folder = runs_folder();
  if (!folder) return fail(folder.error());
  const std::string script = fmt::format("{}/attach-{}.py", *folder, pid);
  if (const Status written = write_private(script, injected()); !written) return fail(written.error());
  if (const Status asked = ask_python(program, pid, script); !asked) {
    ::unlink(script.c_str());
    return fail(asked.error());
  }
  const auto until = std::chrono::steady_clock::now() + kInjectionPatience;
  while (std::chrono::steady_clock::now() < until && !target.has_ended()) {
    if (std::string path = find_door(pid); !path.empty()) {
      ::unlink(script.c_str());
      return path;
    }
    ::poll(nullptr, 0, 20);
  }
  // The file stays: the program may still come to run it, and then closes the door after a minute.
  return fail(
      fmt::format("process {} did not reach a line of Python within {} s: its main thread is waiting or computing in C",
                  pid, kInjectionPatience.count()));
}

}  // namespace

Result<AttachSession> AttachSession::open(const AttachTarget& target) {
  const std::uint32_t pid = target.pid();
  std::string path = find_door(pid);
  if (path.empty()) {
    std::string program(4096, '\0');
    const ssize_t size = ::readlink(fmt::format("/proc/{}/exe", pid).c_str(), program.data(), program.size());
    program.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    const MappedNames mapped = read_mapped_names("/proc", pid);
    const std::string version = python_version_of(program, mapped.names);
    if (std::any_of(mapped.names.begin(), mapped.names.end(),
                    [](const std::string& name) { return name.starts_with("libvramtrack_probe"); }))
      return fail(fmt::format(
          "process {0} runs under 'vramtrack run' already: 'vramtrack control {0}' shows what it holds, and 'vramtrack "
          "trace report' names the lines",
          pid));
    if (version.empty())
      return fail(
          fmt::format("no Python interpreter was recognized in process {}: only PyTorch's recorder can be switched on "
                      "in a running program; {}",
                      pid, "start it the next time with 'vramtrack run -- PROGRAM'"));
    if (parse_unsigned(version.substr(2)).value_or(0) < kFirstRemoteMinor)
      return fail(
          fmt::format("process {} runs Python {}, which cannot be attached to from outside before 3.{}, and has no "
                      "socket from vramtrack.allow_attach(); {}",
                      pid, version, kFirstRemoteMinor, kNextTime));
    auto opened = let_in(target, program);
    if (!opened) return fail(fmt::format("process {}: {}; {}", pid, opened.error().message, kNextTime));
    path = std::move(*opened);
  }
  const auto connected = connect_to(path, pid);
  if (!connected) return fail(connected.error());
  AttachSession session;
  session.socket_ = *connected;
  return session;
}

AttachSession::AttachSession(AttachSession&& other) noexcept {
  *this = std::move(other);
}
AttachSession& AttachSession::operator=(AttachSession&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(buffer_, other.buffer_);
  return *this;
}
AttachSession::~AttachSession() {
  if (socket_ >= 0) ::close(socket_);
}

Result<std::string> AttachSession::read_line() {
  std::array<char, 4096> piece{};
  for (;;) {
    if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    pollfd waiting{socket_, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, kPatienceMs);
    if (ready < 0 && errno == EINTR) continue;  // asked to end: the answer is still to come
    if (ready == 0) return fail("the program did not answer; another vramtrack may be attached to it");
    const ssize_t got = ready < 0 ? -1 : ::recv(socket_, piece.data(), piece.size(), 0);
    if (got <= 0 || buffer_.size() > kLongestLine) return fail("the program has ended, or has closed the connection");
    buffer_.append(piece.data(), static_cast<std::size_t>(got));
  }
}

Result<std::string> AttachSession::ask(std::string_view request) {
  const std::string line = std::string(request) + '\n';
  if (::send(socket_, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
    return fail("the program has ended, or has closed the connection");
  auto answer = read_line();
  if (!answer) return answer;
  if (answer->starts_with("error: ")) return fail(printable(answer->substr(7)));
  return answer->size() > 3 ? answer->substr(3) : std::string{};
}

Status AttachSession::snapshot(const std::string& path) {
  auto file = OutputFile::open(path);
  if (!file) return fail(file.error());
  const int fd = file->descriptor();
  std::string line = "snapshot\n";
  iovec words{line.data(), line.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> ancillary{};
  msghdr message{};
  message.msg_iov = &words;
  message.msg_iovlen = 1;
  message.msg_control = ancillary.data();
  message.msg_controllen = ancillary.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  const bool is_sent = ::sendmsg(socket_, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(line.size());
  const auto answer = is_sent ? read_line() : Result<std::string>(fail("the program has ended"));
  if (answer && answer->starts_with("ok")) return file->finish();
  if (!answer) return fail(answer.error());
  return fail(answer->starts_with("error: ") ? printable(answer->substr(7)) : "the snapshot could not be written");
}

Result<std::vector<std::string>> AttachSession::kept(bool since) {
  const auto answer = ask(since ? "kept since" : "kept");
  if (!answer) return fail(answer.error());
  const auto count = parse_unsigned(std::string_view(*answer).substr(0, answer->find(' ')));
  if (!count || *count > kMostLines) return fail("the program did not say what keeps its tensors");
  std::vector<std::string> lines;
  for (std::uint64_t i = 0; i < *count; ++i) {
    const auto line = read_line();
    if (!line) return fail(line.error());
    lines.push_back(printable(*line));
  }
  return lines;
}

}  // namespace vramtrack::run
