// Units of memory by name: in logs, in the names of metrics, in tables of exporters and in --unit alike.
#pragma once

#include <cstdint>
#include <string_view>

namespace vramtrack {

/// Bytes of a unit, ignoring case. MB is 2^20 bytes, because GPU tools write it for MiB; a unit that is
/// spelled out, such as "megabytes", is the power of ten of the standard. 0: not a unit of memory. Pure; O(1).
std::uint64_t memory_unit(std::string_view word);

}  // namespace vramtrack
