// Units of memory by their names: in logs, in the names of metrics, in tables of exporters and in --unit alike.
#pragma once

#include <cstdint>
#include <string_view>

namespace vramtrack {

/// Bytes of a unit, whatever the case of its letters. MB is 2^20 bytes, since the tools of GPUs write it for MiB; a
/// unit that is spelled out, as "megabytes", is the power of ten of the standard. 0: no unit of memory. Pure; O(1).
std::uint64_t memory_unit(std::string_view word);

}  // namespace vramtrack
