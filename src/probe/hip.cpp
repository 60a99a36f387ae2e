// Defines HIP's functions by name, loaded before libamdhip64's: linear memory, pinned host memory, arrays.
#include "probe/hip.hpp"

#include <algorithm>
#include <cstring>

namespace vramtrack::probe::hip {

namespace {

void replace(const char* symbol, void** into) {
  if (symbol == nullptr || into == nullptr || *into == nullptr || std::strncmp(symbol, "hip", 3) != 0) return;
  if (void* own = find_own_function(symbol)) *into = own;
}

}  // namespace

// clang-format off: one call, one paragraph

VRAMTRACK_HIP(hipMalloc, (void** into, std::size_t bytes),
              return take(Call::hip_malloc, current_device(), bytes, into, [&] { return real(into, bytes); });)

VRAMTRACK_HIP(hipExtMallocWithFlags, (void** into, std::size_t bytes, unsigned flags),
              return take(Call::hip_malloc, current_device(), bytes, into, [&] { return real(into, bytes, flags); });)

VRAMTRACK_HIP(hipMallocManaged, (void** into, std::size_t bytes, unsigned flags),
              return take(Call::hip_malloc_managed, current_device(), bytes, into,
                          [&] { return real(into, bytes, flags); });)

VRAMTRACK_HIP(hipMallocAsync, (void** into, std::size_t bytes, Stream stream),
              return take(Call::hip_malloc_async, current_device(), bytes, into,
                          [&] { return real(into, bytes, stream); });)

VRAMTRACK_HIP(hipMallocFromPoolAsync, (void** into, std::size_t bytes, Pool pool, Stream stream),
              return take(Call::hip_malloc_async, current_device(), bytes, into,
                          [&] { return real(into, bytes, pool, stream); });)

// The pitch is known only afterwards, so the limit is checked with the width.
VRAMTRACK_HIP(hipMallocPitch, (void** into, std::size_t* pitch, std::size_t width, std::size_t height),
              return take(
                  Call::hip_malloc, current_device(), std::uint64_t{width} * height, into, 0,
                  [&] { return std::uint64_t{*pitch} * height; }, [&] { return real(into, pitch, width, height); });)

VRAMTRACK_HIP(hipMemAllocPitch,
              (DevicePointer * into, std::size_t* pitch, std::size_t width, std::size_t height, unsigned element),
              return take(
                  Call::hip_malloc, current_device(), std::uint64_t{width} * height, into, 0,
                  [&] { return std::uint64_t{*pitch} * height; },
                  [&] { return real(into, pitch, width, height, element); });)

VRAMTRACK_HIP(hipMalloc3D, (PitchedPointer * into, Extent extent),
              const std::uint64_t rows = std::uint64_t{extent.height} * std::max<std::size_t>(extent.depth, 1);
              return take(
                  Call::hip_malloc, current_device(), extent.width* rows, into == nullptr ? nullptr : &into->pointer, 0,
                  [&] { return into->pitch * rows; }, [&] { return real(into, extent); });)

VRAMTRACK_HIP(hipFree, (void* memory), return give(memory, [&] { return real(memory); });)

VRAMTRACK_HIP(hipFreeAsync, (void* memory, Stream stream), return give(memory, [&] { return real(memory, stream); });)

// Pinned host memory: counted separately, without a limit.

VRAMTRACK_HIP(hipHostMalloc, (void** into, std::size_t bytes, unsigned flags),
              return take(Call::hip_host_malloc, -1, bytes, into, [&] { return real(into, bytes, flags); });)

VRAMTRACK_HIP(hipHostAlloc, (void** into, std::size_t bytes, unsigned flags),
              return take(Call::hip_host_malloc, -1, bytes, into, [&] { return real(into, bytes, flags); });)

VRAMTRACK_HIP(hipMallocHost, (void** into, std::size_t bytes),
              return take(Call::hip_host_malloc, -1, bytes, into, [&] { return real(into, bytes); });)

VRAMTRACK_HIP(hipMemAllocHost, (void** into, std::size_t bytes),
              return take(Call::hip_host_malloc, -1, bytes, into, [&] { return real(into, bytes); });)

VRAMTRACK_HIP(hipHostFree, (void* memory), return give(memory, [&] { return real(memory); });)

VRAMTRACK_HIP(hipFreeHost, (void* memory), return give(memory, [&] { return real(memory); });)

VRAMTRACK_HIP(hipHostRegister, (void* memory, std::size_t bytes, unsigned flags),
              return take(Call::hip_host_register, -1, bytes, &memory, [&] { return real(memory, bytes, flags); });)

VRAMTRACK_HIP(hipHostUnregister, (void* memory), return give(memory, [&] { return real(memory); });)

// Another process's memory: mapped, not owned.

VRAMTRACK_HIP(hipIpcOpenMemHandle, (void** into, IpcHandle handle, unsigned flags),
              return take(Call::hip_ipc_open_mem_handle, current_device(), 0, into,
                          [&] { return real(into, handle, flags); });)

VRAMTRACK_HIP(hipIpcCloseMemHandle, (void* memory), return give(memory, [&] { return real(memory); });)

// With a limit, a program that queries the memory size gets at most the limit.

VRAMTRACK_HIP(hipMemGetInfo, (std::size_t * free_bytes, std::size_t* total_bytes),
              const Error result = real(free_bytes, total_bytes);
              const std::uint64_t limit = limit_bytes(); if (result != kSuccess || limit == 0) return result;
              const std::uint64_t held = held_bytes(current_device());
              if (total_bytes != nullptr) * total_bytes = std::min<std::size_t>(*total_bytes, limit);
              if (free_bytes != nullptr) * free_bytes = std::min<std::size_t>(*free_bytes,
                                                                              limit > held ? limit - held : 0);
              return result;)

VRAMTRACK_HIP(hipDeviceReset, (), const int device = current_device(); const Error result = real();
              if (result == kSuccess) gave_back_all([device](const Holding& holding) {
                return holding.device == device && holding.call >= Call::hip_malloc &&
                       holding.call <= Call::hip_ipc_open_mem_handle;
              });
              return result;)

// A lookup of a function by name returns the one that takes precedence.

VRAMTRACK_HIP(hipGetProcAddress, (const char* symbol, void** into, int version, std::uint64_t flags, int* status),
              const Error result = real(symbol, into, version, flags, status);
              if (result == kSuccess) replace(symbol, into); return result;)

VRAMTRACK_HIP(hipGetProcAddress_spt, (const char* symbol, void** into, int version, std::uint64_t flags, int* status),
              const Error result = real(symbol, into, version, flags, status);
              if (result == kSuccess) replace(symbol, into); return result;)

VRAMTRACK_HIP(hipGetDriverEntryPoint, (const char* symbol, void** into, unsigned long long flags, int* status),
              const Error result = real(symbol, into, flags, status);
              if (result == kSuccess) replace(symbol, into); return result;)

// clang-format on

}  // namespace vramtrack::probe::hip
