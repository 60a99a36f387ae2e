// The device that a call concerns, and its name.
#include <pthread.h>

#include <atomic>
#include <cstring>

#include "probe/cuda/cuda.hpp"
#include "probe/cuda/graphs.hpp"
#include "probe/cuda/imports.hpp"
#include "probe/cuda/pools.hpp"
#include "probe/cuda/virtual_memory.hpp"
#include "probe/self.hpp"

struct CUuuid {
  unsigned char bytes[16];
};
VRAMTRACK_CUDA_EXPORT CUresult cuInit(unsigned flags);
VRAMTRACK_CUDA_EXPORT CUresult cuCtxGetDevice(CUdevice* device);
VRAMTRACK_CUDA_EXPORT CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device);
VRAMTRACK_CUDA_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device);
VRAMTRACK_CUDA_EXPORT CUresult cuDeviceGetName(char* name, int length, CUdevice device);
VRAMTRACK_CUDA_EXPORT CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device);
VRAMTRACK_CUDA_EXPORT CUresult cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes);

namespace vramtrack::probe::cuda {
namespace {

/// Devices that have a record in the ring; bit i is device i.
std::atomic<std::uint32_t> introduced{0};

/// Writes the UUID as NVML does: "GPU-01234567-89ab-...".
void write_uuid(Line<64>& line, const CUuuid& uuid, const char* prefix) {
  constexpr char kDigits[] = "0123456789abcdef";
  line.add(prefix);
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) line.add("-");
    const char pair[2] = {kDigits[uuid.bytes[i] >> 4U], kDigits[uuid.bytes[i] & 0xfU]};
    line.add(std::string_view(pair, 2));
  }
}

/// The newer call returns a MIG instance's own UUID, the older one that of its parent device.
Line<64> uuid_of(int device) {
  Line<64> line;
  CUuuid uuid{}, whole{};
  const bool has_whole = REAL(cuDeviceGetUuid)(&whole, device) == kSuccess;
  if (REAL(cuDeviceGetUuid_v2)(&uuid, device) == kSuccess)
    write_uuid(line, uuid, has_whole && std::memcmp(&uuid, &whole, sizeof uuid) != 0 ? "MIG-" : "GPU-");
  else if (has_whole)
    write_uuid(line, whole, "GPU-");
  return line;
}

void after_fork() {
  introduced.store(0, std::memory_order_relaxed);
  forget_owners();
  forget_imports();
  forget_pools();
  forget_virtual_memory();
  forget_graphs();
}

}  // namespace

int current_device() {
  if (!is_recording()) return -1;  // not needed
  CUdevice device = -1;
  return REAL(cuCtxGetDevice)(&device) == kSuccess ? device : -1;
}

std::uint64_t free_bytes() {
  std::size_t free = 0, total = 0;
  return REAL(cuMemGetInfo_v2)(&free, &total) == kSuccess ? free : 0;
}

void introduce(int device) {
  if (device < 0 || static_cast<std::size_t>(device) >= kMostDevices) return;
  const std::uint32_t bit = 1U << static_cast<unsigned>(device);
  if ((introduced.load(std::memory_order_relaxed) & bit) != 0) return;
  if ((introduced.fetch_or(bit, std::memory_order_relaxed) & bit) != 0) return;
  char name[256] = {};
  std::size_t total = 0;
  if (REAL(cuDeviceGetName)(name, sizeof name - 1, device) != kSuccess) name[0] = '\0';
  if (REAL(cuDeviceTotalMem_v2)(&total, device) != kSuccess) total = 0;
  record_device(device, uuid_of(device).view(), name, total);
}

}  // namespace vramtrack::probe::cuda

using namespace vramtrack::probe::cuda;

/// Opens nothing, because many programs check whether there is a GPU and then do not use it.
VRAMTRACK_CUDA_EXPORT CUresult cuInit(unsigned flags) {
  static std::atomic<bool> is_registered{false};
  if (!is_registered.exchange(true)) pthread_atfork(nullptr, nullptr, after_fork);
  return REAL(cuInit)(flags);
}
