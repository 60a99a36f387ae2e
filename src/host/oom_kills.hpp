// Processes that the kernel ended because memory of the machine or of a cgroup ran out: from the kernel's log if it
// may be read, and from the counters of cgroups.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/descriptor.hpp"

namespace vramtrack {

struct OomKill {
  std::uint32_t pid = 0;
  std::string name;    ///< short name, as the kernel has it; untrusted
  std::string cgroup;  ///< the folder whose memory ran out ("/": the root of a container); empty: the machine's
  friend bool operator==(const OomKill&, const OomKill&) = default;
};

/// Reads the records of /dev/kmsg, "priority,sequence,microseconds,flags;message", one after another. Records that
/// programs wrote are ignored. Pure except for its own state; not thread-safe.
class OomKillReader {
 public:
  /// A kill, if the record is the last of those about it.
  std::optional<OomKill> record(std::string_view record);

 private:
  std::uint32_t pid_ = 0;  ///< the pid in the previous record, which names the cgroup
  std::string cgroup_;
};

/// `oom` and `oom_kill` from the text of memory.events, or of memory.events.local. Pure.
struct OomCounts {
  std::uint64_t limits = 0;  ///< how often its own memory ran out
  std::uint64_t kills = 0;   ///< its processes that the kernel ended, whichever memory ran out
  friend bool operator==(const OomCounts&, const OomCounts&) = default;
};
OomCounts parse_memory_events(std::string_view text);

/// One per live loop. Not thread-safe.
class OomKills {
 public:
  /// The kernel's log is the one beside `proc_root`: /dev/kmsg. Earlier messages are not read. Without the right to
  /// read it, cgroups are the only source.
  OomKills(const std::string& proc_root, const std::string& sys_root);

  /// What the kernel has logged since the last call. One system call if there is nothing new.
  std::vector<OomKill> logged();
  /// Remembers the counters of a process's cgroup while it lives, and forgets those of folders not requested since the
  /// last call of begin().
  void begin() { ++round_; }
  void remember(const std::string& folder);
  void forget_others();
  /// The process, which has ended, was in `folder`: whether the kernel ended a process of it since it was remembered.
  std::optional<OomKill> ended(std::uint32_t pid, const std::string& folder);

 private:
  struct Counts {
    OomCounts counts;
    std::uint64_t round = 0;
  };
  [[nodiscard]] std::optional<OomCounts> read(const std::string& folder) const;

  std::string cgroup_root_;
  Descriptor log_;
  std::string rest_;
  OomKillReader reader_;
  std::map<std::string, Counts> folders_;
  std::uint64_t round_ = 0;
};

}  // namespace vramtrack
