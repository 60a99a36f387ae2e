// Pinned host memory is counted separately, and not against a device limit.
#include "probe/cuda/cuda.hpp"

using namespace vramtrack::probe;
using namespace vramtrack::probe::cuda;

namespace {

constexpr int kHost = -1;

std::uint64_t address_of(const void* memory) {
  return reinterpret_cast<std::uint64_t>(memory);
}

template <class CallDriver>
CUresult pin(void* memory, std::size_t bytes, CallDriver call_driver) {
  return allocate(Call::cu_mem_host_register, kHost, bytes, Life::of_context, call_driver, [&] {
    return Taken{address_of(memory), bytes};
  });
}

}  // namespace

VRAMTRACK_CUDA_EXPORT CUresult cuMemAllocHost_v2(void** into, std::size_t bytes) {
  return allocate(
      Call::cu_mem_alloc_host, kHost, bytes, Life::of_context, [&] { return REAL(cuMemAllocHost_v2)(into, bytes); },
      [&] {
        return Taken{address_of(*into), bytes};
      });
}
VRAMTRACK_CUDA_EXPORT CUresult cuMemHostAlloc(void** into, std::size_t bytes, unsigned flags) {
  return allocate(
      Call::cu_mem_host_alloc, kHost, bytes, Life::of_context, [&] { return REAL(cuMemHostAlloc)(into, bytes, flags); },
      [&] {
        return Taken{address_of(*into), bytes};
      });
}
VRAMTRACK_CUDA_EXPORT CUresult cuMemFreeHost(void* memory) {
  return release(address_of(memory), [&] { return REAL(cuMemFreeHost)(memory); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuMemHostRegister(void* memory, std::size_t bytes, unsigned flags) {
  return pin(memory, bytes, [&] { return REAL(cuMemHostRegister)(memory, bytes, flags); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuMemHostRegister_v2(void* memory, std::size_t bytes, unsigned flags) {
  return pin(memory, bytes, [&] { return REAL(cuMemHostRegister_v2)(memory, bytes, flags); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuMemHostUnregister(void* memory) {
  return release(address_of(memory), [&] { return REAL(cuMemHostUnregister)(memory); });
}
