// Collector: finds the rings of a run's processes, empties them, and hands the records on.
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

/// A process that made a ring, in the order in which they were found.
struct ProbedProcess {
  std::size_t index = 0;
  std::uint32_t pid = 0;  ///< as the process knows itself
  std::uint64_t start_ticks = 0;
  std::int64_t begin_realtime_us = 0;  ///< what its records' times count from
};

/// A process that could make no ring.
struct UnrecordedProcess {
  std::uint32_t pid = 0;  ///< as the process knows itself
  std::uint64_t start_ticks = 0;
  std::string command;  ///< untrusted
  std::string why;
  std::uint64_t limit_bytes = 0;  ///< that it obeys all the same, from its start on; 0: none
};

struct Limits {
  std::uint64_t limit_bytes = 0;  ///< of each device and process; 0: none
  std::uint64_t soft_limit_bytes = 0;
};

/// Not thread-safe.
class Collector {
 public:
  using Take = std::function<void(const ProbedProcess& process, std::span<const probe::Slot> records)>;
  using Warn = std::function<void(const std::string& text)>;

  /// `folder`: the run's, where the probes make their rings.
  Collector(std::string folder, Take take, Warn warn);

  /// Makes the spare rings that are missing, as large as this process may make a file. They take no room until a
  /// process takes one.
  void make_spares() const;
  /// Looks for rings that were made since the last time: processes() has their processes, and look() takes their
  /// records.
  void find_new();
  /// Takes what is in the rings that were found, once; how many records. A ring whose process is gone is emptied and
  /// removed. `is_over`: the program has ended; what was begun and not finished is left out.
  std::size_t look(bool is_over);
  /// Of all processes, those of the future as well.
  void set_limits(const Limits& limits);
  [[nodiscard]] const Limits& limits() const { return limits_; }
  /// The probe of each process that runs looks what keeps memory, at its next allocation.
  void ask_kept();
  /// Bytes that `process` holds of `device` now, in exact figures.
  [[nodiscard]] std::int64_t held_bytes(std::size_t process, std::size_t device) const;
  /// The most that `process` held of `device` above the soft limit since that was set; 0: never more than it.
  [[nodiscard]] std::int64_t above_soft_limit_bytes(std::size_t process, std::size_t device) const;
  [[nodiscard]] bool is_running(std::size_t process) const;
  /// Those whose ring was found and that have not ended, by pid.
  [[nodiscard]] std::vector<std::uint32_t> alive() const;
  /// Those that have made a ring so far.
  [[nodiscard]] const std::vector<ProbedProcess>& processes() const { return processes_; }
  /// Those that said so far that they could make none.
  [[nodiscard]] const std::vector<UnrecordedProcess>& unrecorded() const { return unrecorded_; }

 private:
  struct Open {
    std::size_t index;
    RingFile ring;
  };
  void note_unrecorded(const std::string& name);
  void tell_limits(const RingFile& ring) const;
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
  std::set<std::string> told_unrecorded_;  ///< by file name
  std::vector<probe::Slot> records_;
};

}  // namespace vramtrack::run
