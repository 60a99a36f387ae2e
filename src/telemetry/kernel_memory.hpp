// KernelMemory: what the kernel's GPU drivers give to programs, below every library: their tracepoints, what DRM tells
// of open files, and, as an experiment, the ioctls of NVIDIA's kernel module. What no library that is traced was asked
// for lies below the libraries.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "telemetry/kernel.h"

namespace vramtrack::telemetry {

/// A tracepoint of a driver, by the names of the fields of its record.
struct KernelEvent {
  std::string group, name;
  bool is_end = false;  ///< of the object `handle`; else it is made
  std::string handle;   ///< empty: objects have none, so that their end is not reported
  std::string bytes;
  std::uint32_t unit = 1;  ///< bytes
  std::string kind;        ///< empty: all of its memory is counted
  std::uint32_t kinds = 0;
};

/// amdgpu's, i915's and xe's.
const std::vector<KernelEvent>& driver_events();

/// Where the fields are, by the text of a tracepoint's file `format`; nullopt: one is missing, or of a width that is
/// not read. Pure.
std::optional<kernel_event> event_of(const KernelEvent& event, std::string_view format);

/// The number of a tracepoint, by the same text.
std::optional<std::uint64_t> id_of(std::string_view format);

struct KernelHeld {
  std::int64_t bytes = 0;  ///< more, or less, than before
  std::string by;          ///< who reports it: "DRM fdinfo", "i915", "NVIDIA's ioctls"
};

/// Not thread-safe. What began to exist before open() is not counted.
class KernelMemory {
 public:
  struct Options {
    bool nvidia_ioctls = false;  ///< costs each system call of the machine some ten ns
    std::vector<KernelEvent> events = driver_events();
    std::string tracing;  ///< where the kernel's tracepoints are; empty: the usual places
    std::string proc = "/proc", dev = "/dev";
  };
  /// Errors: the kernel does not let it, or `nvidia_ioctls` on a machine without the driver. That it has no tracepoints
  /// is none.
  static Result<KernelMemory> open(Options options);
  KernelMemory(KernelMemory&&) noexcept;
  KernelMemory& operator=(KernelMemory&&) noexcept;
  ~KernelMemory();

  /// What the process has been given since open(), or since it was first asked for where only DRM reports it, less what
  /// it released; nullopt: nothing reports it. Cost: a read of each of its open files' fdinfo.
  std::optional<KernelHeld> held(std::uint32_t pid);
  /// All that the process was given since open(), also by drivers whose tracepoints do not report an end; zeros: by
  /// none of those that are counted.
  [[nodiscard]] kernel_given given(std::uint32_t pid) const;
  /// The drivers whose tracepoints are counted.
  [[nodiscard]] const std::vector<std::string>& groups() const;

 private:
  struct State;
  explicit KernelMemory(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// The bytes that the kernel reports for a process and that no library was asked for.
std::int64_t below_the_libraries(const KernelHeld& held, std::int64_t seen_bytes);

}  // namespace vramtrack::telemetry
