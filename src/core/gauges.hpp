// Gauges: what a driver and the kernel report about a device and a process besides memory. For people; no detector
// reads them. The maximum of each minute is recorded per device.
#pragma once

#include <cstdint>
#include <optional>

namespace vramtrack {

/// One device, as of its last reading. A value that the driver does not report is nullopt: unknown, never zero.
struct DeviceGauges {
  std::optional<double> memory_utilisation_ratio;  ///< 0..1, share of time memory was read or written
  std::optional<double> temperature_celsius;
  std::optional<double> power_watts;
  std::optional<double> power_limit_watts;  ///< the limit that is currently enforced
  std::optional<double> fan_ratio;          ///< share of the fan's full speed; absent without a fan
  std::optional<double> sm_clock_hertz;     ///< current clock of the multiprocessors
  friend bool operator==(const DeviceGauges&, const DeviceGauges&) = default;
};

/// One process and its load on one device.
struct ProcessLoad {
  std::optional<double> gpu_ratio;          ///< 0..1, share of time its kernels ran on the device
  std::optional<double> cpu_ratio;          ///< 1: it keeps one core busy
  std::optional<std::uint64_t> host_bytes;  ///< resident in the host's memory
  friend bool operator==(const ProcessLoad&, const ProcessLoad&) = default;
};

}  // namespace vramtrack
