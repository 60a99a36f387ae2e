// Follower: the running programs whose allocations are seen: found as they appear, followed through fork, exec and
// their end. What becomes of the events is the listener's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/result.hpp"
#include "telemetry/context_blocks.hpp"
#include "telemetry/mapped_memory.hpp"
#include "telemetry/python_code.hpp"
#include "telemetry/tracer.hpp"
#include "telemetry/unwinder.hpp"
#include "trace/probe_file.hpp"

namespace vramtrack::telemetry {

/// A program that is followed, from when it was found, or from its fork or exec, to its exec or end.
struct FollowedProcess {
  std::uint64_t number = 0;  ///< no other one ever has it
  trace::ProbeProcess known;
  std::uint64_t begin_ns = 0;  ///< CLOCK_MONOTONIC
  std::shared_ptr<Unwinder> unwinder;
  std::optional<PythonCode> python;
  ContextBlocks contexts;
  MappedMemory physical;
  bool is_copy = false;  ///< a child whose own files have not been looked at yet: it unwinds as its parent does

  /// Since it began.
  [[nodiscard]] std::uint64_t time_us(const telemetry_event& event) const {
    return event.time_ns > begin_ns ? (event.time_ns - begin_ns) / 1000 : 0;
  }
};

/// For an allocation, innermost first. Valid in the call.
struct FollowedStack {
  const std::vector<std::uint64_t>& native;  ///< return addresses; empty where only Python's frames were taken
  const telemetry_frame* python = nullptr;
  std::size_t python_count = 0;
};

/// Not thread-safe. Memory: some 100 KiB a living process, and what its unwinding tables and ContextBlocks take.
class Follower {
 public:
  /// Whether a process that appears is to be followed; nothing: it has ended, and cannot be looked at any more.
  using Select = std::function<std::optional<bool>(std::uint32_t pid)>;
  struct Listener {
    std::function<void(FollowedProcess&, const telemetry_event&, const FollowedStack&)> allocated;
    std::function<void(FollowedProcess&, const telemetry_event&)> freed;  ///< never of address 0; with its context, too
    /// Physical memory, whose address is its key when it is allocated and freed, is mapped, or is not any more.
    std::function<void(FollowedProcess&, const telemetry_event&, const MappedMemory::Change&)> moved;
    std::function<void(FollowedProcess&, const telemetry_event&)> failed;  ///< an allocation
    std::function<void(FollowedProcess&, const telemetry_event&)> ended;   ///< or is replaced by exec
  };

  /// `blocks_per_s` and errors: those of Tracer::open().
  static Result<std::unique_ptr<Follower>> open(Select select, Listener listener, std::uint64_t blocks_per_s = 0);
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  /// Looks for processes and libraries that are new: at all processes once, and every kScanEvery_s at those that may
  /// have changed unseen. The kernel reports those of the others. Call it every second.
  Status find_targets();
  static constexpr double kScanEvery_s = 60;
  /// Hands on what happens in up to `timeout_ms`, and looks at processes that started or loaded libraries.
  Status poll(int timeout_ms);

  /// Waits up to `timeout_ms` until poll() has something to do. Thread-safe.
  void wait(int timeout_ms) const { tracer_->wait(timeout_ms); }

  /// Whether a process that was selected uses a library that can be traced.
  [[nodiscard]] bool has_target() const { return has_target_; }
  /// By pid.
  [[nodiscard]] const std::map<std::uint32_t, std::unique_ptr<FollowedProcess>>& running() const { return running_; }
  /// Events that found no room, so far.
  [[nodiscard]] std::uint64_t lost() const { return tracer_->lost(); }
  /// Allocations and frees of processes that had ended before they could be looked at.
  [[nodiscard]] std::uint64_t unknown() const { return unknown_; }
  /// What could not be traced, once each; taken with the call.
  std::vector<std::string> take_warnings();

 private:
  Follower(Select select, Listener listener) : select_(std::move(select)), listener_(std::move(listener)) {}
  void freed(FollowedProcess& process, const telemetry_event& event, std::uint64_t address);
  void change_physical(FollowedProcess& process, const telemetry_event& event);
  void take(const telemetry_event& event, std::size_t bytes);
  FollowedProcess* add(std::uint32_t pid);
  FollowedProcess& keep(std::unique_ptr<FollowedProcess> process, const trace::ProbeProcess& known);
  void add_child(const telemetry_event& fork);
  bool look_at(std::uint32_t pid);
  bool probe(std::uint32_t pid, const MappedFile& file);
  void look_if_selected(std::uint32_t pid);
  FollowedProcess* process_of(const telemetry_event& event);
  void probe_found(const telemetry_event& event);
  void check(const Status& status);

  Select select_;
  Listener listener_;
  std::optional<Tracer> tracer_;
  std::map<std::uint32_t, std::unique_ptr<FollowedProcess>> running_;
  std::uint64_t next_number_ = 0;
  bool has_target_ = false;
  std::map<std::pair<std::uint64_t, std::uint64_t>, bool> libraries_;  ///< device and inode of those that are probed
  std::set<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>> found_;  ///< device, inode, and where in the file
  std::set<std::uint32_t> loaders_;             ///< pids whose loader reports when they load libraries
  std::map<std::uint32_t, std::uint64_t> due_;  ///< pids to look at, and when (CLOCK_MONOTONIC, ns)
  std::uint64_t probed_ticks_ = 0;              ///< when a library was last probed, since the machine started
  std::uint64_t scan_ns_ = 0;                   ///< of the next look at all processes
  std::uint64_t unknown_ = 0;
  std::vector<std::string> warnings_;
  Status failed_;
};

/// CLOCK_MONOTONIC.
std::uint64_t monotonic_ns();

/// Microseconds since 1970, UTC.
std::int64_t realtime_us();

}  // namespace vramtrack::telemetry
