#include "host/process.hpp"

#include <fcntl.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <unordered_set>

#include "host/cgroup.hpp"
#include "host/command_line.hpp"
#include "host/small_file.hpp"
#include "host/workload.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kMapsBytes = std::size_t{16} << 20;
constexpr std::size_t kMostNames = 4096;
constexpr std::uint64_t kForkedOnly = 0x40;  // the kernel's PF_FORKNOEXEC

std::string process_file(std::string_view proc_root, std::uint32_t pid, std::string_view file) {
  std::string path(proc_root);
  path.append("/").append(std::to_string(pid)).append("/").append(file);
  return path;
}

/// The value of "Key:\tvalue" in a status text; empty if absent.
std::string_view status_value(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    if (line.substr(0, key.size()) == key) return trimmed(line.substr(key.size()));
  }
  return {};
}

/// The name of a uid on this machine, else the uid as text.
std::string user_name(std::string_view uid_text) {
  const auto uid = parse_unsigned(uid_text);
  if (!uid) return {};
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> buffer;
  if (getpwuid_r(static_cast<uid_t>(*uid), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    return entry.pw_name;
  return std::string(uid_text);
}

/// "/x/site-packages/vllm/_C.abi3.so" -> "vllm/"; empty for other paths.
std::string package_of(std::string_view path) {
  for (const std::string_view folder : {"/site-packages/", "/dist-packages/"}) {
    const std::size_t at = path.rfind(folder);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = path.substr(at + folder.size());
    const std::size_t slash = rest.find('/');
    if (slash != std::string_view::npos) return std::string(rest.substr(0, slash + 1));
  }
  return {};
}

/// Only its entry is left, until its parent has reaped it.
bool has_ended(char state) {
  return state == 'Z' || state == 'X';
}

/// Collects names from the lines of a maps file.
struct MapsLines {
  std::vector<std::string> names;

  void take(std::string_view line) {
    std::string_view path = line.substr(std::min(line.find('/'), line.size()));
    // A library is mapped in several neighbouring pieces.
    if (path.empty() || path == last_) return;
    last_ = path;
    constexpr std::string_view kDeleted = " (deleted)";
    if (path.size() > kDeleted.size() && path.substr(path.size() - kDeleted.size()) == kDeleted)
      path.remove_suffix(kDeleted.size());
    add(std::string(path.substr(path.rfind('/') + 1)));
    add(package_of(path));
  }

 private:
  void add(std::string name) {
    if (!name.empty() && names.size() < kMostNames && known_.insert(name).second) names.push_back(std::move(name));
  }

  std::string last_;
  std::unordered_set<std::string> known_;
};

}  // namespace

std::optional<ProcessStat> parse_stat(std::string_view text) {
  const std::size_t open = text.find('(');
  // comm may itself hold ") S 1": only the last parenthesis closes it.
  const std::size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  ProcessStat stat;
  stat.name = text.substr(open + 1, close - open - 1);
  std::string_view rest = text.substr(close + 1);
  bool complete = false;
  std::uint64_t threads = 1;
  // The name is followed by fields 3 (state) to 22 (start ticks), and in all kernels 24 (resident pages).
  for (int field = 3; field <= 24; ++field) {
    rest.remove_prefix(std::min(rest.find_first_not_of(" \n"), rest.size()));
    const std::string_view value = rest.substr(0, rest.find_first_of(" \n"));
    if (value.empty()) break;
    rest.remove_prefix(value.size());
    if (field == 3) stat.state = value.front();
    if (field == 4) stat.parent_pid = static_cast<std::uint32_t>(parse_unsigned(value).value_or(0));
    if (field == 5) stat.group = static_cast<std::uint32_t>(parse_unsigned(value).value_or(0));
    if (field == 6) stat.session = static_cast<std::uint32_t>(parse_unsigned(value).value_or(0));
    if (field == 7) stat.terminal = parse_unsigned(value).value_or(0);
    if (field == 8)
      if (const auto group = parse_unsigned(value)) stat.foreground_group = static_cast<std::int64_t>(*group);
    if (field == 9) stat.is_forked_only = (parse_unsigned(value).value_or(0) & kForkedOnly) != 0;
    if (field == 10 || field == 12) stat.page_faults += parse_unsigned(value).value_or(0);
    if (field == 16 || field == 17) stat.waited_ticks += parse_unsigned(value).value_or(0);
    if (field == 14 || field == 15) stat.cpu_ticks += parse_unsigned(value).value_or(0);
    if (field == 20) threads = parse_unsigned(value).value_or(1);
    if (field == 24) stat.resident_pages = parse_unsigned(value);
    if (field == 22) {
      const auto ticks = parse_unsigned(value);
      if (!ticks) return std::nullopt;
      stat.start_ticks = *ticks;
      complete = true;
    }
  }
  if (!complete) return std::nullopt;
  // A program whose main thread has ended while others continue lives.
  if (has_ended(stat.state) && threads > 1) stat.state = 'S';
  return stat;
}

std::optional<Alive> process_alive(std::string_view proc_root, std::uint32_t pid, std::string& path) {
  path.assign(proc_root).append("/").append(std::to_string(pid)).append("/stat");
  std::array<char, 1024> buffer;
  const auto text = read_small_file(path.c_str(), buffer);
  if (!text) return std::nullopt;
  const auto stat = parse_stat(*text);
  if (!stat || has_ended(stat->state)) return std::nullopt;
  static const auto page_bytes = static_cast<std::uint64_t>(std::max(1L, ::sysconf(_SC_PAGESIZE)));
  // A process of the first tick after boot would look unknown; nothing but pid 1 can be that old.
  Alive alive{std::max<std::uint64_t>(stat->start_ticks, 1), stat->state, tick_seconds(stat->cpu_ticks), std::nullopt};
  if (stat->resident_pages) alive.resident_bytes = *stat->resident_pages * page_bytes;
  return alive;
}

std::optional<double> machine_uptime_s(const std::string& proc_root) {
  std::array<char, 256> buffer;
  const auto text = read_small_file((proc_root + "/uptime").c_str(), buffer);
  double value = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc{}) return std::nullopt;
  return value;
}

double tick_seconds(std::uint64_t ticks) {
  static const auto ticks_per_s = static_cast<double>(std::max(1L, ::sysconf(_SC_CLK_TCK)));
  return static_cast<double>(ticks) / ticks_per_s;
}

double process_age_s(double up_s, std::uint64_t start_ticks) {
  return std::max(0.0, up_s - tick_seconds(start_ticks));
}

std::optional<ProcessInfo> read_process(const std::string& proc_root, std::uint32_t pid) {
  std::array<char, 4096> buffer;
  const auto stat_text = read_small_file(process_file(proc_root, pid, "stat").c_str(), buffer);
  if (!stat_text) return std::nullopt;
  const auto stat = parse_stat(*stat_text);
  if (!stat) return std::nullopt;
  ProcessInfo info;
  info.pid = pid;
  info.start_ticks = std::max<std::uint64_t>(stat->start_ticks, 1);
  info.name = stat->name;
  if (const auto raw = read_small_file(process_file(proc_root, pid, "cmdline").c_str(), buffer))
    info.command = command_line(*raw);
  if (const auto status = read_small_file(process_file(proc_root, pid, "status").c_str(), buffer)) {
    const std::string_view uids = status_value(*status, "Uid:");
    info.user = user_name(uids.substr(0, uids.find('\t')));
    const std::uint32_t inner = innermost_pid(*status);
    if (inner != pid) info.ns_pid = inner;
  }
  if (auto cgroup = cgroup_of(proc_root, pid)) {
    info.cgroup = std::move(cgroup->path);
    info.container = std::move(cgroup->container);
    info.pod = std::move(cgroup->pod);
    info.slurm_job = std::move(cgroup->slurm_job);
    if (!info.container.empty())
      info.image = container_image(std::filesystem::path(proc_root).parent_path().string(), info.container);
    if (!info.slurm_job.empty()) info.job_name = slurm_job_name(proc_root, pid);
  }
  return info;
}

bool user_exists(const std::string& name) {
  if (parse_unsigned(name)) return true;
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> buffer;
  return getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr;
}

MappedNames read_mapped_names(const std::string& proc_root, std::uint32_t pid) {
  MappedNames mapped;
  const int fd = ::open(process_file(proc_root, pid, "maps").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const bool denied = errno == EACCES || errno == EPERM;
    mapped.access = denied ? MappedNames::Access::denied : MappedNames::Access::gone;
    return mapped;
  }
  // Line by line from a small buffer: an allocator with many segments can make this file megabytes long.
  MapsLines lines;
  std::string pending;
  std::array<char, 16384> chunk;
  ssize_t got = 0;
  for (std::size_t total = 0; total < kMapsBytes; total += static_cast<std::size_t>(got)) {
    got = ::read(fd, chunk.data(), chunk.size());
    if (got <= 0) break;
    pending.append(chunk.data(), static_cast<std::size_t>(got));
    std::string_view complete = pending;
    const std::size_t end = complete.rfind('\n');
    if (end == std::string_view::npos) continue;
    complete = complete.substr(0, end + 1);
    while (!complete.empty()) lines.take(next_line(complete));
    pending.erase(0, end + 1);
  }
  const int error = errno;
  ::close(fd);
  // Opening may be allowed and reading refused: access is checked again when the file is read.
  if (got < 0 && lines.names.empty()) {
    mapped.access = error == EACCES || error == EPERM ? MappedNames::Access::denied : MappedNames::Access::gone;
    return mapped;
  }
  mapped.access = MappedNames::Access::read;
  mapped.names = std::move(lines.names);
  return mapped;
}

std::uint32_t innermost_pid(std::string_view status_text) {
  const std::string_view pids = status_value(status_text, "NSpid:");
  if (pids.empty()) return 0;
  const std::size_t last = pids.find_last_of("\t ");
  const auto pid = parse_unsigned(last == std::string_view::npos ? pids : pids.substr(last + 1));
  return pid ? static_cast<std::uint32_t>(*pid) : 0;
}

}  // namespace vramtrack
