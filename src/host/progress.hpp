// ProgressReader: what the kernel shows about processes that hold memory: whether they make progress, and what they
// are. It reads only /proc, runs no other program and needs no ptrace.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/progress.hpp"
#include "core/series.hpp"
#include "host/process.hpp"
#include "host/sockets.hpp"

namespace vramtrack {

/// One per live loop. Not thread-safe.
///
/// Cost of a round: one /proc/PID/stat per process of the machine (6 us each), and two small files per requested
/// process; for a worker of multiprocessing and its parent, the descriptors. One that has rested since the round
/// before costs its descriptors and sockets (host/sockets.hpp) and a file for each of its threads and of those of its
/// children besides. Nothing if no process is requested.
class ProgressReader {
 public:
  /// `sys_root`: the parent folder of fs/cgroup, which contains the cgroups.
  ProgressReader(std::string proc_root, std::string sys_root);

  /// Appends a reading of each of `processes` with its start ticks; its state is 'R' if any thread of it or of its
  /// children has work for a core. For other users' processes, I/O and sockets need CAP_SYS_PTRACE, else unknown.
  void read(std::span<const ProcessInfo> processes, Timestamp now, std::vector<ProgressReading>& out);

 private:
  struct Entry : ProcessStat {
    std::uint32_t pid = 0;
  };
  /// What is kept about a process from round to round.
  struct Before {
    std::uint64_t start_ticks = 0;
    Timestamp time;
    double cpu_s = 0;
    std::optional<std::uint64_t> io_bytes;
    std::uint64_t file_pages_bytes = 0;  ///< of mapped files, resident at the last look
    std::uint64_t mapped_bytes = 0;      ///< read through mappings since the first look
    std::uint32_t parent_pid = 0;        ///< the first one seen
    bool parent_left = false;
    std::uint64_t round = 0;
  };
  struct Job;

  void list_processes();
  [[nodiscard]] const Entry* find(std::uint32_t pid) const;
  void read_children(const Entry& process, ProcessProgress& into) const;
  void read_parent(const Entry& process, const ProcessInfo& info, Before& before, ProcessProgress& into) const;
  void read_status(std::uint32_t pid, Before& before, ProcessProgress& into) const;
  struct Io {
    std::uint64_t read_bytes = 0;
    std::uint64_t written_bytes = 0;
  };
  [[nodiscard]] std::optional<Io> io_of(std::uint32_t pid) const;
  [[nodiscard]] Job job_of(std::uint32_t pid) const;
  void read_at_rest(const Entry& process, const ProcessInfo& info, SocketTables& sockets, ProcessProgress& into) const;
  [[nodiscard]] bool is_frozen(const ProcessInfo& info) const;
  [[nodiscard]] bool waits_for_terminal(std::uint32_t pid) const;
  [[nodiscard]] std::string file(std::uint32_t pid, std::string_view name) const;

  std::string proc_root_;
  std::string sys_root_;
  std::vector<Entry> all_;  ///< of this round, by pid
  std::multimap<std::uint32_t, std::uint32_t> children_;
  std::map<std::uint32_t, Before> before_;
  std::uint64_t round_ = 0;
};

}  // namespace vramtrack
