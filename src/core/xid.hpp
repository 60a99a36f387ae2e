// What NVIDIA's XID error numbers mean, what usually causes them, and what to do. The table is xid.def.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace vramtrack {

/// What usually causes an XID.
enum class XidCause : std::uint8_t { application, driver, hardware, power };
inline constexpr std::array<std::string_view, 4> kXidCauseNames = {"application", "driver", "hardware", "power"};

/// `info`: no sign of a problem with the GPU; `warning`: worth a look; `critical`: work was or will be lost on it.
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

/// Null if nothing is known about this number. Pure; O(log n).
const XidInfo* find_xid(std::uint64_t code);

/// The severity of an XID from the table; a warning if it is not in the table. `line`, the driver's own message
/// if available, may mark an error as fatal, as in "145, RLW_SRC_TRACK Fatal XC1 i0 Link 03 (...)": then it
/// is critical, unless the number is one that programs cause: those lines quote names that programs choose. Pure;
/// O(length).
XidSeverity xid_severity(std::uint64_t code, std::string_view line = {});

/// What to do about it; for a number that is not in the table, where to look it up. Pure.
std::string_view xid_advice(std::uint64_t code);

/// "XID 79: the GPU has fallen off the bus"; a number without a known meaning refers to NVIDIA's list. Pure.
std::string describe_xid(std::uint64_t code);

}  // namespace vramtrack
