// Recording: what the tracer sees of running programs becomes a trace, in a file and in memory, as `vramtrack run`
// writes it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "telemetry/tracer.hpp"
#include "trace/probe_file.hpp"
#include "trace/probe_trace.hpp"

namespace vramtrack::telemetry {

/// Not thread-safe. Memory: the live blocks and stacks since it began (trace::ProbeTrace).
class Recording {
 public:
  /// Whether a process that appears is to be traced.
  using Select = std::function<bool(std::uint32_t pid)>;

  /// `output`: the trace file, which is replaced; `title`: the command that the file names. Errors: the file cannot be
  /// written; those of Tracer::open().
  static Result<std::unique_ptr<Recording>> begin(const std::string& output, const std::string& title, Select select);
  ~Recording();

  /// Looks for processes and libraries that are new. Call it every second.
  Status find_targets();
  /// Records what happens in up to `timeout_ms`.
  Status poll(int timeout_ms);
  /// At least once a second: what a crash of this process may lose.
  Status flush();
  /// Detaches and closes the file.
  Status finish();

  /// What is held of what was allocated since it began. Valid until the next call.
  [[nodiscard]] const trace::ProbeTrace& live() const { return live_; }
  /// Whether a process that was selected uses a library that can be traced.
  [[nodiscard]] bool has_target() const { return has_target_; }
  [[nodiscard]] std::size_t running() const;
  [[nodiscard]] std::uint64_t events() const { return events_; }
  [[nodiscard]] std::uint64_t lost() const { return tracer_->lost(); }
  /// What could not be traced, once each; taken with the call.
  std::vector<std::string> take_warnings();

 private:
  struct Process;
  Recording(trace::ProbeFileWriter file, Select select);
  void take(const telemetry_event& event, std::size_t bytes);
  void take_allocation(Process& process, const telemetry_event& event, std::size_t bytes);
  Process* add(std::uint32_t pid);
  void add_child(const telemetry_event& fork);
  void enter(Process& process);
  Process& keep(std::unique_ptr<Process> process, const trace::ProbeProcess& known);
  void look_at(std::uint32_t pid, std::uint64_t now_ns);
  std::uint32_t text(Process& process, std::string_view text);
  std::uint32_t stack_number(Process& process, const std::vector<std::uint64_t>& native, const telemetry_frame* python,
                             std::size_t count);
  void write_files(Process& process);
  void write(Process& process, const probe::Slot& slot);
  void send(Process& process);
  void check(const Status& status);

  Select select_;
  std::optional<Tracer> tracer_;
  std::optional<trace::ProbeFileWriter> file_;
  trace::ProbeTrace live_;
  std::map<std::uint32_t, std::unique_ptr<Process>> running_;  ///< by pid
  std::vector<std::unique_ptr<Process>> processes_;            ///< ended; in no order
  std::uint32_t next_index_ = 0;
  bool has_target_ = false;
  std::map<std::pair<std::uint64_t, std::uint64_t>, bool> libraries_;  ///< device and inode of those that are probed
  std::map<std::uint32_t, std::uint64_t> looked_ns_;  ///< when a process that is no target was looked at
  std::vector<std::string> warnings_;
  std::uint64_t events_ = 0, told_lost_ = 0;
  Status failed_;
};

}  // namespace vramtrack::telemetry
