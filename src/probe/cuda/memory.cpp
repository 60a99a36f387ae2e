// Device memory that is allocated and freed immediately.
#include "probe/cuda/cuda.hpp"

using namespace vramtrack::probe;
using namespace vramtrack::probe::cuda;

VRAMTRACK_CUDA_EXPORT CUresult cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes) {
  const CUresult code = REAL(cuMemGetInfo_v2)(free_bytes, total_bytes);
  const std::uint64_t limit = limit_bytes();
  if (limit == 0 || code != kSuccess) return code;
  const std::uint64_t held = held_bytes(current_device());
  const std::uint64_t left = held < limit ? limit - held : 0;
  if (total_bytes != nullptr && *total_bytes > limit) *total_bytes = limit;
  if (free_bytes != nullptr && *free_bytes > left) *free_bytes = left;
  return code;
}

VRAMTRACK_CUDA_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* into, std::size_t bytes) {
  return allocate(
      Call::cu_mem_alloc, current_device(), bytes, Life::of_context, [&] { return REAL(cuMemAlloc_v2)(into, bytes); },
      [&] {
        return Taken{*into, bytes};
      });
}

VRAMTRACK_CUDA_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr* into, std::size_t* pitch, std::size_t width,
                                                  std::size_t height, unsigned element_bytes) {
  return allocate(
      Call::cu_mem_alloc_pitch, current_device(), width * height, Life::of_context,
      [&] { return REAL(cuMemAllocPitch_v2)(into, pitch, width, height, element_bytes); },
      [&] {
        return Taken{*into, *pitch * height};
      });
}

VRAMTRACK_CUDA_EXPORT CUresult cuMemAllocManaged(CUdeviceptr* into, std::size_t bytes, unsigned flags) {
  return allocate(
      Call::cu_mem_alloc_managed, current_device(), bytes, Life::of_context,
      [&] { return REAL(cuMemAllocManaged)(into, bytes, flags); },
      [&] {
        return Taken{*into, bytes};
      });
}

VRAMTRACK_CUDA_EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
  return release(address, [&] { return REAL(cuMemFree_v2)(address); });
}
