#include "run/client/ask.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <system_error>

#include "core/descriptor.hpp"
#include "core/errno_words.hpp"
#include "core/order.hpp"
#include "host/small_file.hpp"
#include "run/client/socket_line.hpp"

namespace vramtrack::run {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestAnswer = 4U << 20U;  ///< enough for a report of thousands of sites
/// A folder of runs with more entries than this is not ours.
constexpr std::size_t kMostEntries = 4096;

/// The user id of the listening process.
std::optional<std::uint32_t> peer_of(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return peer.uid;
}

std::string folder_in(const std::string& runtime) {
  return runtime + "/vramtrack-runs";
}

std::string temporary_folder(std::uint32_t uid) {
  std::error_code error;
  return fs::temp_directory_path(error).string() + fmt::format("/vramtrack-runs-{}", uid);
}

std::string runtime_of_environment() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  return runtime == nullptr ? "" : runtime;
}

/// Whether it is a folder of `uid` that others cannot enter, and not a link: others may control its target.
bool is_private(const std::string& folder, std::uint32_t uid) {
  struct stat status {};
  return ::lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == uid &&
         (status.st_mode & 077U) == 0;
}

/// The folders that may contain runs of `uid`: the runtime folders of the user's shells, services and jobs.
std::set<std::string> folders_of(std::uint32_t uid) {
  std::set<std::string> all = {folder_in(fmt::format("/run/user/{}", uid)), temporary_folder(uid)};
  if (const std::string runtime = runtime_of_environment(); uid == ::getuid() && !runtime.empty())
    all.insert(folder_in(runtime));
  return all;
}

/// The numbers in a folder's file names that consist of `prefix` and a number.
std::vector<std::uint32_t> numbers_in(const std::string& folder, std::string_view prefix) {
  std::vector<std::uint32_t> found;
  std::error_code error;
  std::size_t seen = 0;
  for (fs::directory_iterator at(folder, error), end; !error && at != end && seen < kMostEntries;
       at.increment(error), ++seen) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    const std::string_view rest = std::string_view(name).substr(prefix.size());
    const auto number = parse_unsigned(rest.substr(0, rest.find('.')));  // ring.PID.N: one per image of a process
    if (number && *number > 0 && *number <= INT32_MAX) found.push_back(static_cast<std::uint32_t>(*number));
  }
  return found;
}

}  // namespace

Result<std::string> ask_control(const std::string& folder, std::string_view line, std::chrono::milliseconds patience,
                                std::optional<std::uint32_t> owner) {
  const LineDeadline until = std::chrono::steady_clock::now() + patience;
  sockaddr_un address{};
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // While the run's queue is full, connect() waits.
  const timeval limit{patience.count() / 1000, (patience.count() % 1000) * 1000};
  if (!control_address(folder, address) ||
      ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0 ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return fail(fmt::format("{}: no run answers there", folder));
  if (owner && peer_of(socket.get()) != owner) return fail(fmt::format("{}: another user listens there", folder));
  if (!send_all(socket.get(), std::string(line) + '\n', until))
    return fail(fmt::format("{}: {}", folder, errno_words(errno)));
  const std::string answered = read_line(socket.get(), kLongestAnswer, until);
  if (answered.empty()) return fail(fmt::format("{}: the run did not answer", folder));
  if (answered.starts_with("error: ")) return fail(answered.substr(7));
  return answered;
}

Result<std::string> runs_folder() {
  const std::string runtime = runtime_of_environment();
  const std::string folder = runtime.empty() ? temporary_folder(::getuid()) : folder_in(runtime);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return fail(fmt::format("{}: {}; set XDG_RUNTIME_DIR to a folder of yours", folder, errno_words(errno)));
  if (!is_private(folder, ::getuid()))
    return fail(fmt::format(
        "{}: it must be a folder of yours that others cannot enter; remove it, or set XDG_RUNTIME_DIR", folder));
  return folder;
}

std::vector<std::string> running_runs() {
  std::vector<std::string> found;
  const auto folder = runs_folder();
  if (!folder) return found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(*folder, error))
    if (ask_control(entry.path().string(), "status")) found.push_back(entry.path().string());
  order(found, std::less<>());
  return found;
}

std::vector<ProbedPid> probed_processes(std::uint32_t uid) {
  std::vector<ProbedPid> found;
  for (const std::string& runs : folders_of(uid)) {
    if (!is_private(runs, uid)) continue;
    for (const std::uint32_t run : numbers_in(runs, "")) {
      const std::string folder = fmt::format("{}/{}", runs, run);
      if (!is_private(folder, uid) || owner_of_process(run) != uid) continue;  // it was killed: nobody answers
      for (const std::uint32_t pid : numbers_in(folder, "ring."))
        if (owner_of_process(pid) == uid) found.push_back({pid, folder});
    }
  }
  order(found, [](const ProbedPid& a, const ProbedPid& b) { return a.pid < b.pid; });
  return found;
}

std::optional<std::uint32_t> owner_of_process(std::uint32_t pid) {
  struct stat status {};
  if (::stat(fmt::format("/proc/{}", pid).c_str(), &status) != 0) return std::nullopt;
  return status.st_uid;
}

}  // namespace vramtrack::run
