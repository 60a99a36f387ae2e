// Collector: finds the rings of a run's processes, empties them, and passes on their records.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "probe/wire.hpp"
#include "run/ring_file.hpp"

namespace vramtrack::run {

/// A process with a ring, in order of discovery.
struct ProbedProcess {
  std::size_t index = 0;
  std::uint32_t pid = 0;  ///< in the process's own pid namespace
  std::uint64_t start_ticks = 0;
  std::int64_t begin_realtime_us = 0;  ///< the origin of its records' times
};

/// A process that could not create a ring.
struct UnrecordedProcess {
  std::uint32_t pid = 0;  ///< in the process's own pid namespace
  std::uint64_t start_ticks = 0;
  std::string command;  ///< untrusted
  std::string why;
  std::uint64_t limit_bytes = 0;  ///< the limit that it obeys nevertheless, from its start on; 0: none
};

struct Limits {
  std::uint64_t limit_bytes = 0;  ///< the limit per device and process; 0: none
  std::uint64_t soft_limit_bytes = 0;
};

/// Not thread-safe.
class Collector {
 public:
  using Take = std::function<void(const ProbedProcess& process, std::span<const probe::Slot> records)>;
  using Warn = std::function<void(const std::string& text)>;

  /// `folder`: the run's folder, in which the probes create their rings.
  Collector(std::string folder, Take take, Warn warn);

  /// Creates missing spare rings, as large as this process's file size limit allows. They use no space until a process
  /// takes one.
  void make_spares() const;
  /// Finds rings created since the last call. processes() then returns their processes, and look() takes their
  /// records.
  void find_new();
  /// Takes the records in the known rings, once; returns their number. The ring of a process that is gone is emptied
  /// and removed. `is_over`: the program has ended, so incomplete records are left out.
  std::size_t look(bool is_over);
  /// Applies to all processes, including future ones.
  void set_limits(const Limits& limits);
  [[nodiscard]] const Limits& limits() const { return limits_; }
  /// Makes the probe of each running process search for what keeps memory, at its next allocation.
  void ask_kept();
  /// Bytes that `process` holds on `device` now, exactly.
  [[nodiscard]] std::int64_t held_bytes(std::size_t process, std::size_t device) const;
  /// The peak of `process` on `device` above the soft limit since the limit was set; 0: never above it.
  [[nodiscard]] std::int64_t above_soft_limit_bytes(std::size_t process, std::size_t device) const;
  [[nodiscard]] bool is_running(std::size_t process) const;
  /// The pids of processes with a known ring that have not ended.
  [[nodiscard]] std::vector<std::uint32_t> alive() const;
  /// Processes that have created a ring so far.
  [[nodiscard]] const std::vector<ProbedProcess>& processes() const { return processes_; }
  /// Processes that have reported so far that they could not create one.
  [[nodiscard]] const std::vector<UnrecordedProcess>& unrecorded() const { return unrecorded_; }

 private:
  struct Open {
    std::size_t index;
    RingFile ring;
  };
  void note_unrecorded(const std::string& name);
  void send_limits(const RingFile& ring) const;
  void note_above(const Open& ended);

  std::string folder_;
  Take take_;
  Warn warn_;
  Limits limits_;
  std::map<std::string, Open> open_;  ///< by file name
  std::map<std::string, bool> refused_;
  std::map<std::pair<std::size_t, std::size_t>, std::int64_t> ended_above_;  ///< by process and device
  std::vector<ProbedProcess> processes_;
  std::vector<UnrecordedProcess> unrecorded_;
  std::set<std::string> reported_unrecorded_;  ///< by file name
  std::vector<probe::Slot> records_;
};

}  // namespace vramtrack::run
