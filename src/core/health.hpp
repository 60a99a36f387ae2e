// DeviceHealth: what the driver reports about a GPU's own state besides its memory. For people; no detector reads it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/time.hpp"

namespace vramtrack {

/// Why the clocks are not higher than they are. Several reasons may apply at once.
enum class Throttle : std::uint8_t {
  idle,               ///< nothing runs
  clocks_setting,     ///< somebody set the clocks
  power_cap,          ///< at the power limit: usual under full load
  power_brake,        ///< the board's power supply requests less
  thermal_software,   ///< too warm: the driver lowers the clocks
  thermal_hardware,   ///< too hot: the hardware cuts them
  hardware_slowdown,  ///< the hardware cuts them, for heat or power
  other,              ///< synchronised with other GPUs, the display's clocks, or a reason without a name here
};
inline constexpr std::array<std::string_view, 8> kThrottleNames = {
    "idle", "clocks_setting", "power_cap", "power_brake", "thermal_software", "thermal_hardware", "hardware_slowdown",
    "other"};

/// A set of reasons; empty: the clocks are as high as possible.
struct ThrottleSet {
  std::uint8_t bits = 0;
  void add(Throttle reason) { bits = static_cast<std::uint8_t>(bits | 1U << static_cast<unsigned>(reason)); }
  [[nodiscard]] bool has(Throttle reason) const { return (bits >> static_cast<unsigned>(reason) & 1U) != 0; }
  friend bool operator==(const ThrottleSet&, const ThrottleSet&) = default;
};

/// Memory errors, counted by the driver.
struct EccErrors {
  std::optional<std::uint64_t> corrected;    ///< harmless individually
  std::optional<std::uint64_t> uncorrected;  ///< data was lost
  friend bool operator==(const EccErrors&, const EccErrors&) = default;
};

/// One reading. A value that the driver does not report is nullopt: unknown, never zero.
struct DeviceHealth {
  Timestamp time;  ///< when it was read
  std::optional<double> temperature_celsius;
  std::optional<bool> ecc_enabled;
  EccErrors ecc_since_load;                    ///< since the driver was loaded
  EccErrors ecc_lifetime;                      ///< over the life of the board
  std::optional<std::uint64_t> remapped_rows;  ///< rows of memory replaced by spare ones
  std::optional<bool> repair_pending;          ///< a row or page will be replaced at the next reset of the GPU
  std::optional<bool> repair_failed;           ///< no spare row was left
  std::optional<ThrottleSet> throttle;
  std::optional<bool> hears_xids;  ///< whether XID errors of this GPU are reported as they happen
  friend bool operator==(const DeviceHealth&, const DeviceHealth&) = default;
};

/// The last XID error of a device.
struct LastXid {
  Timestamp time;  ///< the time of the poll that received it
  std::uint64_t code = 0;
  std::string text;  ///< "XID 79: the GPU has fallen off the bus"
  friend bool operator==(const LastXid&, const LastXid&) = default;
};

}  // namespace vramtrack
