// What NVIDIA's XID error numbers mean, whose fault they usually are, and what to do. The table is xid.def.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace vramtrack {

/// Whose fault an XID usually is.
enum class XidCause : std::uint8_t { application, driver, hardware, power };
inline constexpr std::array<std::string_view, 4> kXidCauseNames = {"application", "driver", "hardware", "power"};

/// `info`: says nothing about the GPU's health; `warning`: worth a look; `critical`: work was or will be lost on it.
enum class XidSeverity : std::uint8_t { info, warning, critical };

struct XidInfo {
  std::uint64_t code = 0;
  XidCause cause = XidCause::application;
  XidSeverity severity = XidSeverity::info;
  std::string_view meaning;  ///< "the GPU has fallen off the bus"
  std::string_view advice;   ///< what to do, one sentence without a full stop
};

/// Every known XID, by number. Any thread.
std::span<const XidInfo> known_xids();

/// Null: nothing is known about this number. Pure; O(log n).
const XidInfo* find_xid(std::uint64_t code);

/// "XID 79: the GPU has fallen off the bus"; a number without a known meaning refers to NVIDIA's list. Pure.
std::string describe_xid(std::uint64_t code);

}  // namespace vramtrack
