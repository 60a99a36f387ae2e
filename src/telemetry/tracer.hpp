// Tracer: probes on the allocating functions of GPU libraries, in the kernel (eBPF, uprobes). Nothing is written to the
// programs, and none is stopped; with this object, or with this process however it ends, all probes are gone.
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

/// Whether a file of this name (without folders) has functions that are probed.
bool is_traced_library(std::string_view name);
/// Whether it is a program loader, whose function for debuggers is probed: it reports when libraries were loaded.
bool is_loader(std::string_view name);

/// Not thread-safe.
class Tracer {
 public:
  /// `event`: its head; what follows it depends on `bytes`, the size of the whole event (events.h). Valid in the call.
  using Take = std::function<void(const telemetry_event& event, std::size_t bytes)>;

  /// `blocks_per_s`: of an allocator that hands out blocks (PyTorch's), by process; where there are more, they are
  /// sampled by their bytes (telemetry_event::threshold). All that is released is reported. 0: each block is.
  /// Errors: the right that is missing and how to grant it, or what the kernel lacks (5.15 or newer, BTF).
  static Result<Tracer> open(Take take, std::uint64_t blocks_per_s = 0);
  Tracer(Tracer&&) noexcept;
  Tracer& operator=(Tracer&&) noexcept;
  ~Tracer();

  /// Probes the functions of one library's file; how many there are. The probes lie on the file: they are hit by every
  /// process that maps it, and those that are left out lose about a microsecond a call. `name`: which library it is;
  /// `path`: how this process reaches the file.
  Result<std::size_t> attach(std::string_view name, const std::string& path);
  /// Probes a function that a program looked up (TELEMETRY_EVENT_FOUND), which the file has no name for.
  Status attach_found(std::uint64_t function, const std::string& path, std::uint64_t offset);
  /// Events of any process are reported, and those of its children: how to walk the Python frames of this one.
  Status add_target(std::uint32_t pid, const telemetry_python& python);
  /// Nothing of this process is reported any more, until it execs.
  void leave_out(std::uint32_t pid);
  /// Hands over what has happened, after waiting up to `timeout_ms` for it. A new stack ends the wait at once, other
  /// events end it when there are several. Call it at least twice a second. An interrupted wait is not an error.
  Status poll(int timeout_ms);
  /// Waits as poll() does, and leaves what has happened for it. Thread-safe.
  void wait(int timeout_ms) const;
  /// Events that found no room, and frees beyond what is followed of one call, so far.
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

/// The message about `events` that were lost.
std::string lost_words(std::uint64_t events);

}  // namespace vramtrack::telemetry
