// What the fake driver, the fake runtime and the fake NVML read from the environment: see README.md.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace fake_gpu {

constexpr int kMaxDevices = 16;
constexpr std::uint64_t kMib = std::uint64_t{1} << 20U;
/// CUDA 13.2: the newest that a tested PyTorch was built for.
constexpr int kCudaVersion = 13020;
/// The PCI bus of device 0; the others follow.
constexpr int kFirstBus = 0x1d;

/// The number in an environment variable, else `otherwise`.
std::uint64_t setting(const char* variable, std::uint64_t otherwise);

int device_count();
/// The memory of one device.
std::uint64_t device_bytes(int device);
/// What the context of a process takes on a device that it uses.
std::uint64_t context_bytes();
/// What a module of code, and a graph that is made ready, take of the device.
std::uint64_t module_bytes();
std::uint64_t graph_bytes();
std::array<unsigned char, 16> device_uuid(int device);
/// The same as NVML writes it: GPU-a0a1a2a3-...
std::string device_uuid_text(int device);

}  // namespace fake_gpu
