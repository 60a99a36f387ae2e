// Reads a GPU's lists of processes, in whichever layout the driver writes, and merges them into one entry per process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "source/nvml_library.hpp"

namespace vramtrack::nvml {

/// One process on one GPU, or on one MIG instance of it.
struct GpuProcess {
  std::uint32_t pid = 0;
  std::uint32_t gpu_instance_id = kNoInstance;
  std::uint32_t compute_instance_id = kNoInstance;
  std::optional<std::uint64_t> bytes;  ///< nullopt if the driver does not report it
  unsigned lists = 0;                  ///< bit mask of 1 << ProcessList

  /// "C", "G", "C+G" or "MPS", as nvidia-smi names them.
  [[nodiscard]] std::string_view kind() const;
};

/// Returns whether a pid is visible in /proc.
using PidVisible = std::function<bool(std::uint32_t)>;

/// The stride with which a process call of version 2 or 3 wrote its `count` entries: 24, or the 32 of early R535
/// drivers, which do not announce it. `buffer` held count x 32 bytes of kPoison before the call. Chooses the stride
/// with more visible pids, else the one with more plausible pids, else judges by how far the driver wrote.
struct Stride {
  std::size_t bytes = sizeof(ProcessV2);
  bool certain = false;  ///< decided by visible pids, so it need not be checked again for this driver
};
inline constexpr std::byte kPoison{0xA5};
Stride infer_stride(std::span<const std::byte> buffer, std::size_t count, const PidVisible& visible);

/// Merges lists into one entry per process (and MIG instance). The value is the largest in any list, never their sum,
/// because each list that contains a process reports all of its memory. Sorts by pid.
void merge(std::vector<GpuProcess>& processes);

/// Reads the lists through one library; remembers the layout and the call that were found to work. Not thread-safe.
class ProcessReader {
 public:
  ProcessReader(NvmlLibrary& library, PidVisible visible) : library_(library), visible_(std::move(visible)) {}

  /// Replaces `out` with the merged processes of `device` (a GPU or a MIG instance). kSuccess if all lists that this
  /// driver has were read; else the first failure's code, and `out` holds what could be read. kNotSupported: the device
  /// has no list at all. Cost: one driver call per list; no allocation in the steady state.
  int read(Device device, std::vector<GpuProcess>& out);

 private:
  int read_list(Device device, ProcessList list, std::vector<GpuProcess>& out);
  void take(std::size_t count, int version, ProcessList list, std::vector<GpuProcess>& out);

  NvmlLibrary& library_;
  PidVisible visible_;
  std::vector<std::byte> buffer_;
  std::size_t capacity_ = 64;  ///< entries requested per call
  std::optional<std::size_t> stride_;
};

}  // namespace vramtrack::nvml
