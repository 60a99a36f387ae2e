// Gauges: what a driver and the kernel tell of a device and of a process beside memory. For people; no detector reads
// them, and nothing records them but the utilisation of a device.
#pragma once

#include <cstdint>
#include <optional>

namespace vramtrack {

/// One device, as of its last reading. What the driver does not tell is nullopt: not known, never zero.
struct DeviceGauges {
  std::optional<double> memory_utilisation_ratio;  ///< 0..1, share of time memory was read or written
  std::optional<double> temperature_celsius;
  std::optional<double> power_watts;
  std::optional<double> power_limit_watts;  ///< enforced now
  std::optional<double> fan_ratio;          ///< of the fan's full speed; absent without a fan
  friend bool operator==(const DeviceGauges&, const DeviceGauges&) = default;
};

/// One process, and what it does on one device.
struct ProcessLoad {
  std::optional<double> gpu_ratio;          ///< 0..1, share of time its kernels ran on the device
  std::optional<double> cpu_ratio;          ///< 1: one core is busy with it
  std::optional<std::uint64_t> host_bytes;  ///< resident in the host's memory
  friend bool operator==(const ProcessLoad&, const ProcessLoad&) = default;
};

}  // namespace vramtrack
