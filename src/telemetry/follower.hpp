// Follower: finds the running programs whose allocations are traced and follows them through fork, exec and exit. Its
// listener decides what to do with the events.
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

/// A program that is followed, from when it is found, forks or execs until it execs or exits.
struct FollowedProcess {
  std::uint64_t number = 0;  ///< unique: never reused
  trace::ProbeProcess known;
  std::uint64_t begin_ns = 0;  ///< CLOCK_MONOTONIC
  std::shared_ptr<Unwinder> unwinder;
  std::optional<PythonCode> python;
  ContextBlocks contexts;
  MappedMemory physical;
  bool is_copy = false;  ///< a forked child whose own files have not been read yet: it unwinds as its parent does

  /// Microseconds since the process began.
  [[nodiscard]] std::uint64_t time_us(const telemetry_event& event) const {
    return event.time_ns > begin_ns ? (event.time_ns - begin_ns) / 1000 : 0;
  }
};

/// The stack of an allocation, innermost frame first. Valid during the call.
struct FollowedStack {
  const std::vector<std::uint64_t>& native;  ///< return addresses; empty if only Python frames were taken
  const telemetry_frame* python = nullptr;
  std::size_t python_count = 0;
};

/// Not thread-safe. Memory: about 100 KiB per living process, plus its unwinding tables and ContextBlocks.
class Follower {
 public:
  /// Whether to follow a process that appears; nullopt: it has ended and can no longer be inspected.
  using Select = std::function<std::optional<bool>(std::uint32_t pid)>;
  struct Listener {
    std::function<void(FollowedProcess&, const telemetry_event&, const FollowedStack&)> allocated;
    std::function<void(FollowedProcess&, const telemetry_event&)> freed;  ///< never address 0; also if its context ends
    /// Physical memory was mapped or unmapped. Its key serves as its address when it is allocated and freed.
    std::function<void(FollowedProcess&, const telemetry_event&, const MappedMemory::Change&)> moved;
    std::function<void(FollowedProcess&, const telemetry_event&)> failed;  ///< an allocation failed
    std::function<void(FollowedProcess&, const telemetry_event&)> ended;   ///< or was replaced by exec
  };

  /// `blocks_per_s` and errors: as for Tracer::open().
  static Result<std::unique_ptr<Follower>> open(Select select, Listener listener, std::uint64_t blocks_per_s = 0);
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  /// Looks for new processes and libraries: among all processes the first time, then every kScanEvery_s among those
  /// that may have changed unseen. The kernel reports changes of the others. Call it every second.
  Status find_targets();
  static constexpr double kScanEvery_s = 60;
  /// Passes on events for up to `timeout_ms`, and inspects processes that have started or loaded libraries.
  Status poll(int timeout_ms);

  /// Waits up to `timeout_ms` until poll() has something to do. Thread-safe.
  void wait(int timeout_ms) const { tracer_->wait(timeout_ms); }

  /// Whether a selected process uses a library that can be traced.
  [[nodiscard]] bool has_target() const { return has_target_; }
  /// By pid.
  [[nodiscard]] const std::map<std::uint32_t, std::unique_ptr<FollowedProcess>>& running() const { return running_; }
  /// Events lost so far because the ring was full.
  [[nodiscard]] std::uint64_t lost() const { return tracer_->lost(); }
  /// Allocations and frees by processes that had ended before they could be inspected.
  [[nodiscard]] std::uint64_t unknown() const { return unknown_; }
  /// Messages about what could not be traced, each once; the call clears them.
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
  std::map<std::pair<std::uint64_t, std::uint64_t>, bool> libraries_;        ///< device and inode, and whether probed
  std::set<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>> found_;  ///< device, inode, offset in the file
  std::set<std::uint32_t> loaders_;             ///< pids whose loader reports loaded libraries
  std::map<std::uint32_t, std::uint64_t> due_;  ///< pids to inspect, and when (CLOCK_MONOTONIC, ns)
  std::uint64_t probed_ticks_ = 0;              ///< when a library was last probed, since the machine started
  std::uint64_t scan_ns_ = 0;                   ///< when to scan all processes next
  std::uint64_t unknown_ = 0;
  std::vector<std::string> warnings_;
  Status failed_;
};

/// CLOCK_MONOTONIC.
std::uint64_t monotonic_ns();

/// Microseconds since 1970, UTC.
std::int64_t realtime_us();

}  // namespace vramtrack::telemetry
