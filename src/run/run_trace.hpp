// The trace file of a run. A write error ends the recording, but never the program.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "host/child_program.hpp"
#include "live/sources.hpp"
#include "run/collector.hpp"
#include "run/process_facts.hpp"
#include "trace/probe_file.hpp"

namespace vramtrack::run {

/// The file is created with the first ring, so a program that uses no GPU leaves no file. Not thread-safe.
class RunTrace {
 public:
  /// An empty `output` means vramtrack.PROGRAM.%p.trace; %p is this process's pid.
  RunTrace(std::string output, std::vector<std::string> program, Warn warn);

  void take(const ProbedProcess& process, std::span<const probe::Slot> records, ProcessFacts& facts);
  /// Records the limits that apply to the process from now on.
  void limits(const ProbedProcess& process, const Limits& limits);
  /// Names this moment of the process.
  void mark(const ProbedProcess& process, const std::string& name);
  void reading(const ProbedProcess& process, const trace::ProbeReading& reading);
  void holder(const trace::ProbeHolder& holder);
  /// Call at least once a second, which limits the loss if this process is killed. Records that others refer to
  /// (stacks, texts, modules) are written immediately.
  void flush();
  void finish(const ProgramEnd& end);

  /// Checks before the program starts whether its trace can be written at all.
  [[nodiscard]] Status can_be_written() const;
  [[nodiscard]] const std::string& path() const { return path_; }  ///< empty: there is no file
  /// Whether the recording ended before the program, or never began; the caller was warned.
  [[nodiscard]] bool has_failed() const { return has_failed_; }
  [[nodiscard]] std::uint64_t records() const { return records_; }

 private:
  [[nodiscard]] bool is_known(const ProbedProcess& process) const;
  void begin(const ProbedProcess& process);
  void open();
  void check(const Status& status);
  std::string build_id_of_module(const ProbedProcess& process, const std::string& module);

  std::string output_;
  bool is_named_;  ///< the user named it, so it may replace a file
  std::vector<std::string> program_;
  Warn warn_;
  std::string path_;
  std::optional<trace::ProbeFileWriter> file_;
  std::vector<std::uint32_t> indices_;                     ///< index in the file, by process
  std::set<std::pair<std::size_t, std::string>> modules_;  ///< modules in the file, by process
  std::map<std::size_t, std::string> roots_;               ///< roots by process, once looked up; empty: it had ended
  std::uint64_t records_ = 0;
  std::uint32_t texts_ = 0;
  bool has_failed_ = false;
};

/// Microseconds since 1970, UTC.
std::int64_t realtime_us();

}  // namespace vramtrack::run
