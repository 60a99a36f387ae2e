// NvmlLibrary: libnvidia-ml.so.1, opened at run time, with the calls vramtrack makes, newest form first.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "source/nvml_abi.hpp"

namespace vramtrack::nvml {

/// The result of a call: the driver's return code, and the value if the code is kSuccess.
template <class T>
struct Answer {
  int code = kSuccess;
  T value{};
  explicit operator bool() const { return code == kSuccess; }
};

/// "GPU is lost (15)", for messages.
std::string describe(int code);

struct MemoryReading {
  std::uint64_t total = 0;
  std::uint64_t used = 0;
  std::optional<std::uint64_t> reserved;  ///< only from version 2; in version 1 `used` includes it
};

struct MigMode {
  bool enabled = false;
};

struct RowRemaps {
  unsigned corrected = 0;    ///< rows replaced after corrected errors
  unsigned uncorrected = 0;  ///< rows replaced after uncorrected errors
  bool pending = false;      ///< some will be replaced at the next reset
  bool failed = false;       ///< no spare row was left
};

/// The lists of processes that the driver keeps per device.
enum class ProcessList : std::uint8_t { compute, graphics, mps };

/// Signature shared by all versions of the process calls; the version determines the layout of the entries.
using ProcessCall = int (*)(Device, unsigned* count, void* entries);
/// In bytes; 0: none.
struct MemoryLimit {
  std::uint64_t hard_bytes = 0;  ///< above it, allocations fail
  std::uint64_t soft_bytes = 0;  ///< above it, the group's processes are the first to be killed to make room for others
};

/// A process call with the expected layout of its entries. `version`: 1..3, or 0 if the library has none.
struct ProcessCallChoice {
  ProcessCall call = nullptr;
  int version = 0;
};

/// Owns the open library and its initialisation. The destructor shuts NVML down and closes the library, so that
/// reopening finds a replaced driver. Not thread-safe. Every method makes one call into the driver.
class NvmlLibrary {
 public:
  /// Opens `path` (searched for by the loader if it has no slash), finds the symbols and initialises NVML. The Error
  /// says what is missing and what to do.
  static Result<std::unique_ptr<NvmlLibrary>> open(const std::string& path);
  ~NvmlLibrary();
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;

  Answer<unsigned> device_count();
  Answer<Device> device_by_index(unsigned index);
  Answer<std::string> uuid(Device device);
  Answer<std::string> name(Device device);
  Answer<std::string> pci_bus_id(Device device);
  /// Uses version 2, or version 1 if 2 is not available, and keeps to that choice.
  Answer<MemoryReading> memory(Device device);
  /// The limit on the memory of `device` for the processes of a cgroup, by the driver's own count (r615 and newer).
  /// kNotFound: no limit. kFunctionNotFound: an older driver. kNotSupported: an older driver, or MIG.
  Answer<MemoryLimit> memory_limit(Device device, const std::string& cgroup_folder);
  Answer<Utilization> utilization(Device device);

  Answer<unsigned> temperature_celsius(Device device);
  Answer<unsigned> power_milliwatts(Device device);
  Answer<unsigned> power_limit_milliwatts(Device device);
  Answer<unsigned> sm_clock_megahertz(Device device);
  Answer<unsigned> fan_percent(Device device);
  /// The GPU's receive rate over its bus. The driver counts for 20 ms, during which the caller sleeps.
  Answer<unsigned> received_kilobytes_per_s(Device device);
  /// Replaces `out` with the samples the driver has taken since `since_us` (the time_us of an earlier sample; 0: all).
  /// kNotFound: there are none. Makes a second call if `out` was too small; `out` keeps its capacity.
  int process_utilization(Device device, std::uint64_t since_us, std::vector<ProcessUtilization>& out);
  /// The mask of kReason... bits.
  Answer<std::uint64_t> clock_reasons(Device device);
  Answer<bool> ecc_enabled(Device device);
  Answer<std::uint64_t> ecc_errors(Device device, EccKind kind, EccCounter counter);
  /// GPUs since Ampere replace rows of memory; earlier ones retire pages.
  Answer<RowRemaps> row_remaps(Device device);
  Answer<bool> page_retirement_pending(Device device);

  /// kNotSupported or kFunctionNotFound if the device or the driver does not have MIG.
  Answer<MigMode> mig_mode(Device device);
  Answer<unsigned> max_mig_devices(Device device);
  Answer<Device> mig_device(Device device, unsigned index);
  Answer<std::uint32_t> gpu_instance_id(Device mig);
  Answer<std::uint32_t> compute_instance_id(Device mig);

  /// The newest process call for this list that has not been ruled out.
  [[nodiscard]] ProcessCallChoice process_call(ProcessList list) const;
  /// Rules out the newest call for good: the library has it but the driver does not (kFunctionNotFound,
  /// kArgumentVersionMismatch). Returns false if none is left.
  bool strike_process_call(ProcessList list);

  /// Listens for the events of `types` that `device` supports; returns the types now received (0: none).
  std::uint64_t listen(Device device, std::uint64_t types);
  /// The next event that has already happened, or nullopt; never waits.
  std::optional<EventData> next_event();

 private:
  struct Symbols;
  NvmlLibrary(void* handle, std::unique_ptr<Symbols> symbols);

  void* handle_;
  std::unique_ptr<Symbols> symbols_;
  EventSet events_ = nullptr;
  bool initialised_ = false;
};

}  // namespace vramtrack::nvml
