// Stream-ordered memory: a pool reserves memory in steps and keeps what is free up to its threshold.
#include <sys/mman.h>

#include <algorithm>

#include "../shared_state.hpp"
#include "driver.hpp"

using namespace fake_gpu;

namespace fake_gpu {

struct Pool {
  int device = 0;
  std::uint64_t used = 0, used_high = 0, reserved = 0, reserved_high = 0, threshold = 0;
};

}  // namespace fake_gpu

namespace {

std::array<Pool, kMaxDevices> default_pools;
std::array<Pool*, kMaxDevices> chosen_pools;

std::uint64_t whole_steps(std::uint64_t bytes) {
  constexpr std::uint64_t kStep = 32 * kMib;
  return (bytes + kStep - 1) / kStep * kStep;
}

void trim(Pool& pool, std::uint64_t keep) {
  const std::uint64_t wanted = whole_steps(std::max(pool.used, keep));
  if (wanted >= pool.reserved) return;
  SharedState::get().give_back(pool.device, pool.reserved - wanted);
  pool.reserved = wanted;
}

CUresult allocate(const char* call, CUdeviceptr* out, std::size_t asked, Pool& pool) {
  *out = 0;
  if (asked == 0) return kOk;
  const std::uint64_t bytes = (asked + 511) / 512 * 512;
  const std::lock_guard<std::mutex> held(driver_mutex());
  const std::uint64_t needed = whole_steps(pool.used + bytes);
  CUresult code = scripted_failure() ? kOutOfMemory : kOk;
  if (code == kOk && needed > pool.reserved) {
    if (SharedState::get().charge(pool.device, needed - pool.reserved))
      pool.reserved = needed;
    else
      code = kOutOfMemory;
  }
  std::uint64_t address = 0;
  if (code == kOk) {
    address = map_addresses(bytes, bytes < kMib ? kHostPage : kPage, PROT_READ | PROT_WRITE);
    if (address == 0) code = kOutOfMemory;
  }
  if (code == kOk) {
    pool.used += bytes;
    pool.used_high = std::max(pool.used_high, pool.used);
    pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
    add_range(address, bytes, Kind::pooled, pool.device).pool = &pool;
    *out = address;
  }
  trace(call, pool.device, address, asked, code);
  return code;
}

Pool& default_pool(int device) {
  Pool& pool = default_pools.at(static_cast<std::size_t>(device));
  pool.device = device;
  return pool;
}
Pool& pool_of(int device) {
  Pool* chosen = chosen_pools.at(static_cast<std::size_t>(device));
  return chosen != nullptr ? *chosen : default_pool(device);
}

}  // namespace

CUresult fake_gpu::free_pooled(const Range& range) {
  Pool& pool = *range.pool;
  pool.used -= range.bytes();
  unmap_addresses(range.begin, range.bytes());
  erase_range(range);
  trim(pool, pool.threshold);
  return kOk;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr address);

EXPORT CUresult cuMemAllocAsync(CUdeviceptr* out, std::size_t bytes, void* stream) {
  if (current_context() == nullptr) return kInvalidContext;
  return allocate("cuMemAllocAsync", out, bytes, pool_of(current_context()->device));
}
EXPORT CUresult cuMemAllocAsync_ptsz(CUdeviceptr* out, std::size_t bytes, void* stream) {
  return cuMemAllocAsync(out, bytes, stream);
}
EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr* out, std::size_t bytes, Pool* pool, void* stream) {
  return allocate("cuMemAllocFromPoolAsync", out, bytes, *pool);
}
EXPORT CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* out, std::size_t bytes, Pool* pool, void* stream) {
  return cuMemAllocFromPoolAsync(out, bytes, pool, stream);
}
EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, void* stream) {
  return cuMemFree_v2(address);
}
EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, void* stream) {
  return cuMemFree_v2(address);
}
EXPORT CUresult cuDeviceGetDefaultMemPool(Pool** out, int device) {
  *out = &default_pool(device);
  return kOk;
}
EXPORT CUresult cuDeviceGetMemPool(Pool** out, int device) {
  *out = &pool_of(device);
  return kOk;
}
EXPORT CUresult cuDeviceSetMemPool(int device, Pool* pool) {
  chosen_pools.at(static_cast<std::size_t>(device)) = pool;
  return kOk;
}
EXPORT CUresult cuMemPoolCreate(Pool** out, const AllocationProperties* properties) {
  *out = new Pool;  // never freed: the program may ask for its attributes later
  (*out)->device = properties->location.id;
  return kOk;
}
EXPORT CUresult cuMemPoolDestroy(Pool* pool) {
  const std::lock_guard<std::mutex> held(driver_mutex());
  SharedState::get().give_back(pool->device, pool->reserved);
  pool->reserved = 0;
  return kOk;
}
/// Memory of another process's pool: an address of its own here, whose bytes are charged there.
EXPORT CUresult cuMemPoolImportPointer(CUdeviceptr* out, Pool* pool, const void* shared) {
  constexpr std::uint64_t kBytes = 4 * kMib;
  const std::lock_guard<std::mutex> held(driver_mutex());
  *out = map_addresses(kBytes, kPage, PROT_READ | PROT_WRITE);
  if (*out == 0) return kOutOfMemory;
  pool->used += kBytes;
  add_range(*out, kBytes, Kind::pooled, pool->device).pool = pool;
  trace("cuMemPoolImportPointer", pool->device, *out, kBytes, kOk);
  return kOk;
}
EXPORT CUresult cuMemPoolTrimTo(Pool* pool, std::size_t keep) {
  const std::lock_guard<std::mutex> held(driver_mutex());
  trim(*pool, keep);
  return kOk;
}

/// CUmemPool_attribute
enum { kThreshold = 4, kReserved = 5, kReservedHigh = 6, kUsed = 7, kUsedHigh = 8 };

EXPORT CUresult cuMemPoolSetAttribute(Pool* pool, int attribute, void* value) {
  if (attribute == kThreshold) pool->threshold = *static_cast<std::uint64_t*>(value);
  if (attribute == kReservedHigh) pool->reserved_high = pool->reserved;
  if (attribute == kUsedHigh) pool->used_high = pool->used;
  return kOk;
}
EXPORT CUresult cuMemPoolGetAttribute(Pool* pool, int attribute, void* value) {
  if (attribute < kThreshold) {
    *static_cast<int*>(value) = 1;
    return kOk;
  }
  const std::array values = {pool->threshold, pool->reserved, pool->reserved_high, pool->used, pool->used_high};
  if (attribute > kUsedHigh) return kNotSupported;
  *static_cast<std::uint64_t*>(value) = values.at(static_cast<std::size_t>(attribute - kThreshold));
  return kOk;
}
EXPORT CUresult cuMemPoolSetAccess(Pool* pool, const void* access, std::size_t count) {
  return kOk;
}
EXPORT CUresult cuMemPoolGetAccess(int* flags, Pool* pool, const Location* location) {
  constexpr int kReadAndWrite = 3;
  *flags = kReadAndWrite;
  return kOk;
}
