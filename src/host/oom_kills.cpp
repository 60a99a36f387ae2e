#include "host/oom_kills.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

#include "host/host_memory.hpp"
#include "host/small_file.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kRecordBytes = 8192;  // CONSOLE_EXT_LOG_MAX: no record is longer
constexpr std::size_t kMostRecords = 100'000;
constexpr std::size_t kMostNameBytes = 64;

/// The text after "KEY=", up to the next comma.
std::string_view value_of(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = text.substr(at + key.size());
  return rest.substr(0, rest.find(','));
}

}  // namespace

/// The kernel writes, in this order (mm/oom_kill.c):
///   oom-kill:constraint=CONSTRAINT_MEMCG,...,oom_memcg=/a,task_memcg=/a/b,task=python,pid=42,uid=0
///   Memory cgroup out of memory: Killed process 42 (python) total-vm:1kB, ...    or    Out of memory: Killed process
///   ...
std::optional<OomKill> OomKillReader::record(std::string_view record) {
  const std::size_t comma = record.find(',');
  const std::size_t semicolon = record.find(';');
  if (semicolon == std::string_view::npos || comma > semicolon) return std::nullopt;
  const auto priority = parse_unsigned(record.substr(0, comma));
  constexpr std::uint64_t kFacilities = 8;  // the kernel's is 0
  if (!priority || *priority >= kFacilities) return std::nullopt;
  const std::string_view message = record.substr(semicolon + 1);
  if (message.starts_with("oom-kill:")) {
    // The name of the task may contain anything, so the search for what follows it starts at the end.
    const std::size_t pid = message.rfind(",pid=");
    pid_ = pid == std::string_view::npos
               ? 0
               : static_cast<std::uint32_t>(parse_unsigned(value_of(message.substr(pid), ",pid=")).value_or(0));
    cgroup_ = std::string(value_of(message.substr(0, message.find(",task=")), ",oom_memcg="));
    return std::nullopt;
  }
  constexpr std::string_view kKilled = "illed process ";
  const std::size_t at = message.find(kKilled);
  if (at == std::string_view::npos || message.find("ut of memory") > at) return std::nullopt;
  const std::string_view rest = message.substr(at + kKilled.size());
  const auto pid = parse_unsigned(rest.substr(0, rest.find_first_of(" ,")));
  if (!pid || *pid == 0) return std::nullopt;
  OomKill kill;
  kill.pid = static_cast<std::uint32_t>(*pid);
  const std::size_t open = rest.find('(');
  const std::size_t close = rest.rfind(") total-vm");
  if (open != std::string_view::npos && close != std::string_view::npos && close > open)
    kill.name = std::string(rest.substr(open + 1, std::min(close - open - 1, kMostNameBytes)));
  if (message.starts_with("Memory cgroup")) kill.cgroup = kill.pid == pid_ && !cgroup_.empty() ? cgroup_ : "/";
  pid_ = 0;
  cgroup_.clear();
  return kill;
}

OomCounts parse_memory_events(std::string_view text) {
  OomCounts out;
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    const std::size_t blank = line.find(' ');
    if (blank == std::string_view::npos) continue;
    const auto count = parse_unsigned(trimmed(line.substr(blank)));
    if (line.substr(0, blank) == "oom") out.limits = count.value_or(0);
    if (line.substr(0, blank) == "oom_kill") out.kills = count.value_or(0);
  }
  return out;
}

OomKills::OomKills(const std::string& proc_root, const std::string& sys_root)
    : cgroup_root_(sys_root + "/fs/cgroup"),
      log_(::open((std::filesystem::path(proc_root).parent_path() / "dev/kmsg").c_str(),
                  O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  if (log_.get() >= 0) ::lseek(log_.get(), 0, SEEK_END);
}

std::vector<OomKill> OomKills::logged() {
  std::vector<OomKill> out;
  if (log_.get() < 0) return out;
  std::array<char, kRecordBytes> record{};
  for (std::size_t i = 0; i < kMostRecords; ++i) {
    const ssize_t got = ::read(log_.get(), record.data(), record.size());
    if (got < 0 && (errno == EPIPE || errno == EINTR)) continue;  // a record that was overwritten meanwhile
    if (got <= 0) break;
    rest_.append(record.data(), static_cast<std::size_t>(got));
    std::string_view lines = rest_;
    while (lines.find('\n') != std::string_view::npos)
      if (auto kill = reader_.record(next_line(lines))) out.push_back(std::move(*kill));
    rest_.erase(0, rest_.size() - lines.size());
    if (rest_.size() > 2 * kRecordBytes) rest_.clear();
  }
  return out;
}

/// The kills include those of its descendants; `oom` counts each folder separately.
std::optional<OomCounts> OomKills::read(const std::string& folder) const {
  std::array<char, 1024> buffer;
  const auto text = read_small_file((cgroup_root_ + folder + "/memory.events").c_str(), buffer);
  if (!text) return std::nullopt;
  OomCounts counts = parse_memory_events(*text);
  if (const auto local = read_small_file((cgroup_root_ + folder + "/memory.events.local").c_str(), buffer))
    counts.limits = parse_memory_events(*local).limits;
  return counts;
}

void OomKills::remember(const std::string& folder) {
  for (const std::string& at : cgroup_folders(folder)) {
    Counts& known = folders_[at];
    if (known.round == round_) continue;
    known.round = round_;
    if (const auto counts = read(at)) known.counts = *counts;
  }
}

void OomKills::forget_others() {
  std::erase_if(folders_, [this](const auto& known) { return known.second.round != round_; });
}

std::optional<OomKill> OomKills::ended(std::uint32_t pid, const std::string& folder) {
  bool was_killed = false;
  OomKill kill{pid, {}, {}};
  for (const std::string& at : cgroup_folders(folder)) {
    const auto known = folders_.find(at);
    const auto now = known == folders_.end() ? std::nullopt : read(at);
    if (!now) continue;  // a container's folder may end with its process
    OomCounts& before = known->second.counts;
    if (!was_killed) {
      if (now->kills <= before.kills) return std::nullopt;
      ++before.kills;  // one count explains one end
      was_killed = true;
    }
    if (now->limits <= before.limits) continue;
    kill.cgroup = at.empty() ? "/" : at;
    break;
  }
  return was_killed ? std::optional(kill) : std::nullopt;
}

}  // namespace vramtrack
