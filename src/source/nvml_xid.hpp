// What NVIDIA's XID error numbers mean, in a few words.
#pragma once

#include <cstdint>
#include <string>

namespace vramtrack::nvml {

/// "XID 79: the GPU has fallen off the bus"; a number without a known meaning refers to NVIDIA's list.
std::string describe_xid(std::uint64_t code);

}  // namespace vramtrack::nvml
