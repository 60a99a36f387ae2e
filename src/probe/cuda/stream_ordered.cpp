// Memory whose allocation and free are ordered by a stream. Counts allocations, not the reserve of a pool. While a
// stream is captured, nothing is allocated or freed: the calls become nodes of a graph; graphs.cpp counts its memory.
#include "probe/cuda/cuda.hpp"
#include "probe/cuda/graphs.hpp"
#include "probe/cuda/pools.hpp"
#include "probe/table.hpp"
#include "probe/totals.hpp"

using namespace vramtrack::probe;
using namespace vramtrack::probe::cuda;

VRAMTRACK_CUDA_EXPORT CUresult cuStreamIsCapturing(CUstream stream, int* status);
VRAMTRACK_CUDA_EXPORT CUresult cuStreamIsCapturing_ptsz(CUstream stream, int* status);
VRAMTRACK_CUDA_EXPORT CUresult cuDeviceGetCount(int* count);
VRAMTRACK_CUDA_EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device);
VRAMTRACK_CUDA_EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device);
VRAMTRACK_CUDA_EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void* value);
VRAMTRACK_CUDA_EXPORT CUresult cuPointerGetAttribute(void* value, int attribute, CUdeviceptr address);

namespace {

/// The device of each pool; -1: the host.
Table<int> pools;

Key key_of_pool(CUmemoryPool pool) {
  return {0, reinterpret_cast<std::uint64_t>(pool)};
}

/// A pool with no recorded creation belongs to a device.
int device_of(CUmemoryPool pool) {
  int device = -1;
  if (!is_recording() || pools.find(key_of_pool(pool), device)) return device;
  int devices = 0;
  if (REAL(cuDeviceGetCount)(&devices) != kSuccess) devices = 0;
  for (device = 0; device < devices; ++device) {
    CUmemoryPool of_device = nullptr;
    if (REAL(cuDeviceGetDefaultMemPool)(&of_device, device) != kSuccess || of_device != pool) continue;
    pools.put(key_of_pool(pool), device);
    return device;
  }
  return current_device();
}

bool is_capturing(CUstream stream, bool is_per_thread) {
  constexpr int kActive = 1;
  if (!is_recording()) return false;
  int status = 0;
  const CUresult code =
      is_per_thread ? REAL(cuStreamIsCapturing_ptsz)(stream, &status) : REAL(cuStreamIsCapturing)(stream, &status);
  return code == kSuccess && status == kActive;
}

/// Records the use and reserve of the pool, occasionally or `at_once`. `pool` nullptr: the device's current one.
void record_pool(Call call, int device, CUmemoryPool pool, bool at_once = false) {
  constexpr int kReservedNow = 5, kUsedNow = 7;
  if (!is_recording() || !pool_totals_are_due(device, at_once)) return;
  if (pool == nullptr && REAL(cuDeviceGetMemPool)(&pool, device) != kSuccess) return;
  std::uint64_t reserved = 0, used = 0;
  if (REAL(cuMemPoolGetAttribute)(pool, kReservedNow, &reserved) == kSuccess &&
      REAL(cuMemPoolGetAttribute)(pool, kUsedNow, &used) == kSuccess)
    record_totals(call, device, used, reserved);
}

template <class CallDriver>
CUresult take(Call call, int device, CUdeviceptr* into, std::size_t bytes, CUmemoryPool pool, CUstream stream,
              bool is_per_thread, CallDriver call_driver) {
  if (is_capturing(stream, is_per_thread)) {
    const CUresult code = call_driver();
    if (code == kSuccess) graph_allocates(device);
    return code;
  }
  const CUresult code = allocate(call, device, bytes, Life::of_device, call_driver, [&] {
    return Taken{*into, bytes};
  });
  if (code == kSuccess) record_pool(call, device, pool);
  return code;
}

template <class CallDriver>
CUresult give(CUdeviceptr address, CUstream stream, bool is_per_thread, CallDriver call_driver) {
  if (is_capturing(stream, is_per_thread)) return call_driver();
  return release(address, call_driver);
}

Call call_of_pool(int device) {
  return device < 0 ? Call::cu_mem_alloc_from_pool_host : Call::cu_mem_alloc_from_pool_async;
}

}  // namespace

namespace vramtrack::probe::cuda {

void forget_pools() {
  pools.reset();
}

}  // namespace vramtrack::probe::cuda

VRAMTRACK_CUDA_EXPORT CUresult cuMemAllocAsync(CUdeviceptr* into, std::size_t bytes, CUstream stream) {
  return take(Call::cu_mem_alloc_async, current_device(), into, bytes, nullptr, stream, false,
              [&] { return REAL(cuMemAllocAsync)(into, bytes, stream); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuMemAllocAsync_ptsz(CUdeviceptr* into, std::size_t bytes, CUstream stream) {
  return take(Call::cu_mem_alloc_async, current_device(), into, bytes, nullptr, stream, true,
              [&] { return REAL(cuMemAllocAsync_ptsz)(into, bytes, stream); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr* into, std::size_t bytes, CUmemoryPool pool,
                                                       CUstream stream) {
  const int device = device_of(pool);
  return take(call_of_pool(device), device, into, bytes, pool, stream, false,
              [&] { return REAL(cuMemAllocFromPoolAsync)(into, bytes, pool, stream); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* into, std::size_t bytes, CUmemoryPool pool,
                                                            CUstream stream) {
  const int device = device_of(pool);
  return take(call_of_pool(device), device, into, bytes, pool, stream, true,
              [&] { return REAL(cuMemAllocFromPoolAsync_ptsz)(into, bytes, pool, stream); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return give(address, stream, false, [&] { return REAL(cuMemFreeAsync)(address, stream); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
  return give(address, stream, true, [&] { return REAL(cuMemFreeAsync_ptsz)(address, stream); });
}

VRAMTRACK_CUDA_EXPORT CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemAllocationProp* properties) {
  const CUresult code = REAL(cuMemPoolCreate)(pool, properties);
  if (code == kSuccess && properties != nullptr)
    pools.put(key_of_pool(*pool), properties->location.type == kOnDevice ? properties->location.id : -1);
  return code;
}
/// A pool's memory outlives it: allocations from it stay until they are freed.
VRAMTRACK_CUDA_EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  int device = -1;
  const bool is_known = pools.take(key_of_pool(pool), device);
  const CUresult code = REAL(cuMemPoolDestroy)(pool);
  if (code != kSuccess && is_known) pools.put(key_of_pool(pool), device);
  return code;
}
/// Releases the unused reserve of the pool: allocations stay, the reserve changes.
VRAMTRACK_CUDA_EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, std::size_t keep) {
  const CUresult code = REAL(cuMemPoolTrimTo)(pool, keep);
  if (code != kSuccess) return code;
  const int device = device_of(pool);
  record_pool(call_of_pool(device), device, pool, true);
  return code;
}
/// Imports memory of another process's pool; cuMemFreeAsync frees it like our own.
VRAMTRACK_CUDA_EXPORT CUresult cuMemPoolImportPointer(CUdeviceptr* into, CUmemoryPool pool, void* shared) {
  constexpr int kRangeSize = 12;
  return allocate(
      Call::cu_mem_pool_import_pointer, current_device(), 0, Life::of_device,
      [&] { return REAL(cuMemPoolImportPointer)(into, pool, shared); },
      [&] {
        std::size_t bytes = 0;
        return REAL(cuPointerGetAttribute)(&bytes, kRangeSize, *into) == kSuccess ? Taken{*into, bytes} : Taken{};
      });
}
