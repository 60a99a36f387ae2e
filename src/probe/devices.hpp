// Numbers of devices, for APIs that have handles instead (OpenCL, Vulkan, Level Zero).
#pragma once

#include <cstdint>
#include <string_view>

#include "probe/wire.hpp"

namespace vramtrack::probe {

/// The number of the device with `uuid`: the ordinal if CUDA or HIP reported it, else one from kFirstNumbered on, the
/// same for all APIs. With an empty `uuid`, the device is identified only by name and size.
int number_of_device(std::string_view uuid, std::string_view name, std::uint64_t total_bytes);
/// Call before a number is used. Records the device (recorder.hpp), once per ring.
void record_numbered_device(int device);

/// For record_device(): notes that another API numbers this device.
void note_ordinal(int device, std::string_view uuid);
/// Call in a child after a fork, because it has another ring.
void forget_recorded_devices();

/// A UUID as NVML writes it: 16 bytes as 36 characters; NVIDIA's begin with "GPU-". Ends with a zero.
struct UuidText {
  char text[41];
};
UuidText uuid_text(const std::uint8_t (&bytes)[16], bool is_nvidia);

}  // namespace vramtrack::probe
