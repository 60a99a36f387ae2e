// Recording: writes what the tracer sees of running programs to a trace, in a file and in memory, in the format of
// `vramtrack run`.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "telemetry/follower.hpp"
#include "trace/probe_file.hpp"
#include "trace/probe_trace.hpp"

namespace vramtrack::telemetry {

/// Not thread-safe. Memory: the live blocks and stacks since it began (trace::ProbeTrace).
class Recording {
 public:
  /// `output`: the trace file, which is replaced; `title`: the command to store in it. Errors: the file cannot be
  /// written, and those of Tracer::open().
  static Result<std::unique_ptr<Recording>> begin(const std::string& output, const std::string& title,
                                                  Follower::Select select);
  ~Recording();

  /// Looks for new processes and libraries. Call it every second.
  Status find_targets() { return follower_->find_targets(); }
  /// Records events for up to `timeout_ms`.
  Status poll(int timeout_ms);
  /// Call it at least once a second: a crash of this process may lose the events since the last call.
  Status flush();
  /// Records the bytes a process holds, according to the kernel, beyond those at the start of tracing; the trace
  /// compares them with the tracked bytes. Ignored if the process has not allocated anything yet.
  void held(std::uint32_t pid, std::int64_t bytes);
  /// Detaches and closes the file.
  Status finish();

  /// The live allocations made since it began. Valid until the next call.
  [[nodiscard]] const trace::ProbeTrace& live() const { return live_; }
  /// Whether a selected process uses a library that can be traced.
  [[nodiscard]] bool has_target() const { return follower_->has_target(); }
  /// The pids of the processes followed now.
  [[nodiscard]] std::vector<std::uint32_t> pids() const;
  [[nodiscard]] std::size_t running() const { return follower_->running().size(); }
  [[nodiscard]] std::uint64_t events() const { return events_; }
  [[nodiscard]] std::uint64_t lost() const { return follower_->lost(); }
  /// Allocations and frees by processes that had ended before they could be inspected; they are not in the trace.
  [[nodiscard]] std::uint64_t unknown() const { return follower_->unknown(); }
  /// Messages about what could not be traced, each once; the call clears them.
  std::vector<std::string> take_warnings() { return follower_->take_warnings(); }

 private:
  struct Process;
  explicit Recording(trace::ProbeFileWriter file);
  void allocated(FollowedProcess& from, const telemetry_event& event, const FollowedStack& frames);
  void moved(const FollowedProcess& from, const telemetry_event& event, const MappedMemory::Change& change);
  void change(const FollowedProcess& from, const telemetry_event& event, probe::Record record);
  void ended(const FollowedProcess& from, const telemetry_event& event);
  Process& enter(const FollowedProcess& from);
  Process& before_change(const FollowedProcess& from);
  std::uint32_t text(Process& process, std::string_view text);
  std::uint32_t stack_number(FollowedProcess& from, Process& process, const FollowedStack& stack);
  void write_files(const FollowedProcess& from, Process& process);
  void write(Process& process, const probe::Slot& slot);
  void send(Process& process);
  void check(const Status& status);

  std::optional<trace::ProbeFileWriter> file_;
  trace::ProbeTrace live_;
  std::map<std::uint64_t, std::unique_ptr<Process>> processes_;  ///< the running ones, by the follower's number
  std::uint32_t next_index_ = 0;
  std::optional<trace::ProbeProcess> ended_quietly_;  ///< the last process that ended without an event
  std::uint64_t events_ = 0, reported_lost_ = 0;
  Status failed_;
  std::unique_ptr<Follower> follower_;  ///< last, so that it is destroyed first
};

}  // namespace vramtrack::telemetry
