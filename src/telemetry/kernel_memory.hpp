// KernelMemory: the memory that the kernel's GPU drivers give to programs, below every library. It reads the drivers'
// tracepoints, DRM's figures for open files and, as an experiment, the ioctls of NVIDIA's kernel module. Memory that no
// traced library was asked for is "below the libraries".
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

/// A tracepoint of a driver, described by the field names of its record.
struct KernelEvent {
  std::string group, name;
  bool is_end = false;  ///< the object `handle` ends; otherwise it is created
  std::string handle;   ///< empty: objects have no handle, so their end is not reported
  std::string bytes;
  std::uint32_t unit = 1;  ///< bytes
  std::string kind;        ///< empty: all memory is counted, whatever its kind
  std::uint32_t kinds = 0;
};

/// The events of amdgpu, i915 and xe.
const std::vector<KernelEvent>& driver_events();

/// The positions of the fields, from the text of a tracepoint's `format` file; nullopt if a field is missing or has an
/// unsupported width. Pure.
std::optional<kernel_event> event_of(const KernelEvent& event, std::string_view format);

/// The number of a tracepoint, from the same text.
std::optional<std::uint64_t> id_of(std::string_view format);

struct KernelHeld {
  std::int64_t bytes = 0;  ///< the change since counting began; may be negative
  std::string by;          ///< the origin of the figure: "DRM fdinfo", "i915", "NVIDIA's ioctls"
};

/// Not thread-safe. Objects that existed before open() are not counted.
class KernelMemory {
 public:
  struct Options {
    bool nvidia_ioctls = false;  ///< adds some ten ns to each system call on the machine
    std::vector<KernelEvent> events = driver_events();
    std::string tracing;  ///< the folder of the kernel's tracepoints; empty: the usual places
    std::string proc = "/proc", dev = "/dev";
  };
  /// Errors: the kernel does not permit it, or `nvidia_ioctls` is set on a machine without the driver. A kernel without
  /// tracepoints is not an error.
  static Result<KernelMemory> open(Options options);
  KernelMemory(KernelMemory&&) noexcept;
  KernelMemory& operator=(KernelMemory&&) noexcept;
  ~KernelMemory();

  /// The bytes the process has been given since open(), or since the first call if only DRM reports them, less those
  /// released; nullopt if nothing reports them. Cost: reads the fdinfo of each open file of the process.
  std::optional<KernelHeld> held(std::uint32_t pid);
  /// Everything the process has been given since open(), including by drivers whose tracepoints do not report an end.
  /// All zeros if none of the counted drivers gave it any.
  [[nodiscard]] kernel_given given(std::uint32_t pid) const;
  /// The drivers whose tracepoints are counted.
  [[nodiscard]] const std::vector<std::string>& groups() const;

 private:
  struct State;
  explicit KernelMemory(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// The bytes the kernel reports for a process beyond those requested from the libraries.
std::int64_t below_the_libraries(const KernelHeld& held, std::int64_t seen_bytes);

}  // namespace vramtrack::telemetry
