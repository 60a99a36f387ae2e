// Memory of another process or API that is mapped here: not owned, so it counts neither as held nor against a limit. It
// keeps its owner's memory alive until it is closed here.
#include "probe/cuda/imports.hpp"

#include "probe/cuda/cuda.hpp"
#include "probe/table.hpp"

using namespace vramtrack::probe;
using namespace vramtrack::probe::cuda;

struct CUipcMemHandle {
  char reserved[64];
};
/// CUDA_EXTERNAL_MEMORY_HANDLE_DESC.
struct ExternalMemory {
  int kind;
  void* handle[2];
  unsigned long long bytes;
  unsigned flags;
};
static_assert(offsetof(ExternalMemory, bytes) == 24);

VRAMTRACK_CUDA_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr* begin, std::size_t* bytes, CUdeviceptr address);

namespace {

/// How often each handle is open, by its address: opening it again returns the same memory.
Table<int> opened;

/// False if it was already open.
bool opened_first(std::uint64_t address) {
  if (opened.update({0, address}, [](int& times) { ++times; })) return false;
  opened.put({0, address}, 1);
  return true;
}

/// False if it is still open.
bool closed_last(std::uint64_t address) {
  int left = 0;
  if (!opened.take({0, address}, left) || --left == 0) return true;
  opened.put({0, address}, left);
  return false;
}

template <class CallDriver>
CUresult open_handle(CUdeviceptr* into, CallDriver call_driver) {
  return allocate(Call::cu_ipc_open_mem_handle, current_device(), 0, Life::of_context, call_driver, [&] {
    if (!opened_first(*into)) return Taken{};
    CUdeviceptr begin = 0;
    std::size_t bytes = 0;
    return REAL(cuMemGetAddressRange_v2)(&begin, &bytes, *into) == kSuccess ? Taken{*into, bytes} : Taken{};
  });
}

}  // namespace

namespace vramtrack::probe::cuda {

void forget_imports() {
  opened.reset();
}

}  // namespace vramtrack::probe::cuda

VRAMTRACK_CUDA_EXPORT CUresult cuIpcOpenMemHandle(CUdeviceptr* into, CUipcMemHandle handle, unsigned flags) {
  return open_handle(into, [&] { return REAL(cuIpcOpenMemHandle)(into, handle, flags); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* into, CUipcMemHandle handle, unsigned flags) {
  return open_handle(into, [&] { return REAL(cuIpcOpenMemHandle_v2)(into, handle, flags); });
}
VRAMTRACK_CUDA_EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  const auto call_driver = [&] { return REAL(cuIpcCloseMemHandle)(address); };
  return closed_last(address) ? release(address, call_driver) : call_driver();
}
VRAMTRACK_CUDA_EXPORT CUresult cuImportExternalMemory(void** into, const ExternalMemory* memory) {
  return allocate(
      Call::cu_import_external_memory, current_device(), 0, Life::of_context,
      [&] { return REAL(cuImportExternalMemory)(into, memory); },
      [&] {
        return Taken{key_of(*into), memory->bytes};
      });
}
VRAMTRACK_CUDA_EXPORT CUresult cuDestroyExternalMemory(void* memory) {
  return release(key_of(memory), [&] { return REAL(cuDestroyExternalMemory)(memory); });
}
