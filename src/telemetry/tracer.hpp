// Tracer: probes on the allocating functions of GPU libraries, in the kernel (eBPF, uprobes). It neither writes to the
// programs nor stops them. All probes disappear with this object, or when this process ends in any way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "telemetry/events.h"

namespace vramtrack::telemetry {

/// Whether a file with this name (without folders) has functions to probe.
bool is_traced_library(std::string_view name);
/// Whether it is a dynamic loader, whose debugger hook is probed: it reports when libraries were loaded.
bool is_loader(std::string_view name);

/// Not thread-safe.
class Tracer {
 public:
  /// `event`: its head; the rest depends on `bytes`, the size of the whole event (events.h). Valid during the call.
  using Take = std::function<void(const telemetry_event& event, std::size_t bytes)>;

  /// `blocks_per_s`: how many blocks of an allocator (PyTorch's) are reported per process; beyond that, they are
  /// sampled by size (telemetry_event::threshold). 0: all are. Every release is reported. Errors: the missing right and
  /// how to grant it, or what the kernel lacks (5.15 or newer, BTF).
  static Result<Tracer> open(Take take, std::uint64_t blocks_per_s = 0);
  Tracer(Tracer&&) noexcept;
  Tracer& operator=(Tracer&&) noexcept;
  ~Tracer();

  /// Probes the functions of one library file and returns their number. The probes are set on the file: every process
  /// that maps it hits them, and processes that are left out lose about a microsecond per call. `name`: which library
  /// it is; `path`: the path by which this process reaches the file.
  Result<std::size_t> attach(std::string_view name, const std::string& path);
  /// Probes a function that a program looked up (TELEMETRY_EVENT_FOUND) and that has no name in the file.
  Status attach_found(std::uint64_t function, const std::string& path, std::uint64_t offset);
  /// Sets how to walk this process's Python frames. Events are reported for any process, including its children.
  Status add_target(std::uint32_t pid, const telemetry_python& python);
  /// Reports nothing more about this process until it execs.
  void leave_out(std::uint32_t pid);
  /// Passes on the events so far, after waiting up to `timeout_ms` for one. A new stack ends the wait at once; other
  /// events end it when there are several. Call it at least twice a second. An interrupted wait is not an error.
  Status poll(int timeout_ms);
  /// Waits like poll(), but leaves the events for it. Thread-safe.
  void wait(int timeout_ms) const;
  /// Events so far that did not fit into the ring, and frees beyond those that are tracked per call.
  [[nodiscard]] std::uint64_t lost() const;

 private:
  struct State;
  explicit Tracer(std::unique_ptr<State> state);
  struct Place {
    std::uint32_t function;
    std::uint64_t offset;
  };
  Status probe(const std::string& path, const std::vector<Place>& places);
  std::unique_ptr<State> state_;
};

/// The message about `events` lost events.
std::string lost_words(std::uint64_t events);

}  // namespace vramtrack::telemetry
