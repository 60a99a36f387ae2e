// Numbers of devices, for APIs that have handles instead (OpenCL, Vulkan, Level Zero).
#pragma once

#include <cstdint>
#include <string_view>

#include "probe/wire.hpp"

namespace vramtrack::probe {

/// The number of the device that `uuid` names: the ordinal where CUDA or HIP told of it, else one from kFirstNumbered
/// on, the same one for all APIs. An empty `uuid`: the device is known by name and size alone.
int number_of_device(std::string_view uuid, std::string_view name, std::uint64_t total_bytes);
/// Before a number is used: tells of the device (recorder.hpp), once a ring.
void tell_number(int device);

/// For tell_device(): another API numbers this one.
void note_ordinal(int device, std::string_view uuid);
/// In a child after a fork, where the ring is another.
void forget_told_devices();

/// As NVML writes it: 16 bytes as 36 characters; those of NVIDIA begin with "GPU-". Ends with a zero.
struct UuidText {
  char text[41];
};
UuidText uuid_text(const std::uint8_t (&bytes)[16], bool is_nvidia);

}  // namespace vramtrack::probe
