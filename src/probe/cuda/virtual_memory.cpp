#include "probe/cuda/virtual_memory.hpp"

#include "probe/cuda/cuda.hpp"
#include "probe/cuda/physical.hpp"

using namespace vramtrack::probe;
using namespace vramtrack::probe::cuda;
using Handle = CUmemGenericAllocationHandle;

/// CUmulticastObjectProp
struct MulticastProperties {
  unsigned devices;
  std::size_t bytes;
  unsigned long long handle_kinds, flags;
};

VRAMTRACK_CUDA_EXPORT CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* into, Handle handle);

namespace {

PhysicalMemory physical_memory;

void follow(const Move& move) {
  if (move.bytes != 0 && move.from == 0) {
    introduce(move.device);
    took_block(move.call, move.device, move.to, move.bytes);
  } else if (move.from != 0 && move.to == 0) {
    gave_back(Level::driver, move.from);
  } else if (move.from != move.to) {
    renamed(Level::driver, move.from, move.to);
  }
}

/// Memory bound to a multicast object is released with the object.
void follow_bindings() {
  for (Move move; physical_memory.unbind_from_gone(move);) follow(move);
}

}  // namespace

namespace vramtrack::probe::cuda {

void forget_virtual_memory() {
  physical_memory.reset();
}

}  // namespace vramtrack::probe::cuda

VRAMTRACK_CUDA_EXPORT CUresult cuMemCreate(Handle* into, std::size_t bytes, const CUmemAllocationProp* properties,
                                           unsigned long long flags) {
  const auto call_driver = [&] { return REAL(cuMemCreate)(into, bytes, properties, flags); };
  if (properties == nullptr) return call_driver();
  const bool is_on_device = properties->location.type == kOnDevice;
  const int device = is_on_device ? properties->location.id : -1;
  const Call call = is_on_device ? Call::cu_mem_create : Call::cu_mem_create_host;
  return allocate(call, device, bytes, Life::of_device, call_driver, [&] {
    return Taken{physical_memory.create(*into, bytes, call, device), bytes};
  });
}

/// Another process's memory: its size becomes known when it is mapped.
VRAMTRACK_CUDA_EXPORT CUresult cuMemImportFromShareableHandle(Handle* into, void* shared, int kind) {
  const CUresult code = REAL(cuMemImportFromShareableHandle)(into, shared, kind);
  if (code != kSuccess || !is_recording()) return code;
  CUmemAllocationProp properties{};
  const bool has_device = REAL(cuMemGetAllocationPropertiesFromHandle)(&properties, *into) == kSuccess &&
                          properties.location.type == kOnDevice;
  physical_memory.create(*into, 0, Call::cu_mem_import, has_device ? properties.location.id : -1);
  return code;
}

/// A multicast object owns no memory: it binds that of several devices.
VRAMTRACK_CUDA_EXPORT CUresult cuMulticastCreate(Handle* into, const MulticastProperties* properties) {
  const int device = current_device();
  return allocate(
      Call::cu_multicast_create, device, 0, Life::of_device, [&] { return REAL(cuMulticastCreate)(into, properties); },
      [&] {
        const std::uint64_t bytes = properties->bytes;
        return Taken{physical_memory.create(*into, bytes, Call::cu_multicast_create, device), bytes};
      });
}

/// Bound memory outlives its handle and mapping, until it is unbound or the multicast object is destroyed.
VRAMTRACK_CUDA_EXPORT CUresult cuMulticastBindMem(Handle group, std::size_t offset, Handle memory, std::size_t from,
                                                  std::size_t bytes, unsigned long long flags) {
  const CUresult code = REAL(cuMulticastBindMem)(group, offset, memory, from, bytes, flags);
  if (code == kSuccess) physical_memory.bind(group, offset, memory);
  return code;
}
VRAMTRACK_CUDA_EXPORT CUresult cuMulticastBindAddr(Handle group, std::size_t offset, CUdeviceptr address,
                                                   std::size_t bytes, unsigned long long flags) {
  const CUresult code = REAL(cuMulticastBindAddr)(group, offset, address, bytes, flags);
  if (code == kSuccess) physical_memory.bind_address(group, offset, address);
  return code;
}
VRAMTRACK_CUDA_EXPORT CUresult cuMulticastUnbind(Handle group, CUdevice device, std::size_t offset, std::size_t bytes) {
  const CUresult code = REAL(cuMulticastUnbind)(group, device, offset, bytes);
  if (code != kSuccess) return code;
  for (Move move; physical_memory.unbind(group, device, offset, bytes, move);) follow(move);
  return code;
}

VRAMTRACK_CUDA_EXPORT CUresult cuMemRetainAllocationHandle(Handle* into, void* address) {
  const CUresult code = REAL(cuMemRetainAllocationHandle)(into, address);
  if (code == kSuccess) physical_memory.retain(*into, reinterpret_cast<std::uint64_t>(address));
  return code;
}

/// Recorded after the call: this program has reserved the addresses, so nobody else can get them.
VRAMTRACK_CUDA_EXPORT CUresult cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t offset, Handle handle,
                                        unsigned long long flags) {
  const CUresult code = REAL(cuMemMap)(address, bytes, offset, handle, flags);
  if (code == kSuccess) follow(physical_memory.map(handle, address, bytes));
  return code;
}
VRAMTRACK_CUDA_EXPORT CUresult cuMemUnmap(CUdeviceptr address, std::size_t bytes) {
  const CUresult code = REAL(cuMemUnmap)(address, bytes);
  if (code != kSuccess) return code;
  Move move;
  for (std::uint64_t at = address; physical_memory.unmap(at, address + bytes, move);) follow(move);
  follow_bindings();
  return code;
}

VRAMTRACK_CUDA_EXPORT CUresult cuMemRelease(Handle handle) {
  const PhysicalMemory::Released released = physical_memory.release(handle);
  const Holding held = gave_back(Level::driver, released.move.from);
  const CUresult code = REAL(cuMemRelease)(handle);
  if (code == kSuccess) {
    follow_bindings();
    return code;
  }
  physical_memory.undo(released);
  holds_still(held);
  return code;
}
