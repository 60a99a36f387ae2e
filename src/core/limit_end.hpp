// Where memory ends because of a limit that several may share: one rule for the engine, live commands and every chart.
#pragma once

#include <string_view>

namespace vramtrack {

/// In place of the name of who set a limit: the host has no more.
inline constexpr std::string_view kMachineMemory = "the machine's memory";

/// Where memory of a process that holds `process_bytes` ends because of a limit of `limit_bytes`, assuming that the
/// others that share the limit keep what they hold. `used_bytes` includes the process.
constexpr double end_by_limit(double process_bytes, double limit_bytes, double used_bytes) {
  return process_bytes + (limit_bytes > used_bytes ? limit_bytes - used_bytes : 0);
}

}  // namespace vramtrack
