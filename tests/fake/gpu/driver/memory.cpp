// Plain device memory, pinned host memory, what a pointer is, and memory of other processes.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "../shared_state.hpp"
#include "driver.hpp"

using namespace fake_gpu;

namespace {

CUresult allocate(const char* call, CUdeviceptr* out, std::size_t bytes, Kind kind) {
  if (current_context() == nullptr) return kInvalidContext;
  if (bytes == 0) return kInvalid;
  const int device = current_context()->device;
  const bool small = bytes < kMib;
  const std::lock_guard<std::mutex> held(driver_mutex());
  CUresult code = take(device, bytes, small);
  std::uint64_t address = 0;
  if (code == kOk) {
    address = map_addresses(bytes, small ? kHostPage : kPage, PROT_READ | PROT_WRITE);
    if (address == 0) {
      give_back(device, bytes, small);
      code = kOutOfMemory;
    }
  }
  if (code == kOk) {
    Range& range = add_range(address, bytes, kind, device);
    range.small = small;
    range.context = current_context();
    *out = address;
  }
  trace(call, device, address, bytes, code);
  return code;
}

/// Host memory belongs to the device in use, or to the first.
int device_of_host_memory() {
  return current_context() != nullptr ? current_context()->device : 0;
}

CUresult allocate_host(const char* call, void** out, std::size_t bytes) {
  const std::lock_guard<std::mutex> held(driver_mutex());
  const std::uint64_t address = bytes != 0 ? map_addresses(bytes, kHostPage, PROT_READ | PROT_WRITE) : 0;
  if (address != 0) add_range(address, bytes, Kind::host, device_of_host_memory()).context = current_context();
  *out = reinterpret_cast<void*>(address);
  const CUresult code = address != 0 ? kOk : kOutOfMemory;
  trace(call, -1, address, bytes, code);
  return code;
}

/// Frees the range at the address if it has the kind.
CUresult drop(const char* call, std::uint64_t address, Kind kind, bool is_ours, CUresult otherwise) {
  const std::lock_guard<std::mutex> held(driver_mutex());
  const Range* range = find_range(address);
  if (range == nullptr || range->kind != kind) return otherwise;
  trace(call, kind == Kind::imported ? range->device : -1, range->begin, range->bytes(), kOk);
  if (is_ours) unmap_addresses(range->begin, range->bytes());
  erase_range(*range);
  return kOk;
}

}  // namespace

void fake_gpu::free_memory_of(const Context* context) {
  while (const Range* range = range_of(context)) {
    trace("context ends", range->device, range->begin, range->bytes(), kOk);
    if (range->kind == Kind::device || range->kind == Kind::managed)
      give_back(range->device, range->bytes(), range->small);
    if (range->kind != Kind::registered) unmap_addresses(range->begin, range->bytes());
    erase_range(*range);
  }
  free_arrays_of(context);
}

EXPORT CUresult cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes) {
  if (current_context() == nullptr) return kInvalidContext;
  const int device = current_context()->device;
  const std::uint64_t total = device_bytes(device);
  if (total_bytes != nullptr) *total_bytes = total;
  if (free_bytes != nullptr) *free_bytes = total - std::min(total, SharedState::get().used_bytes(device));
  return kOk;
}
EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* out, std::size_t bytes) {
  return allocate("cuMemAlloc", out, bytes, Kind::device);
}
EXPORT CUresult cuMemAllocManaged(CUdeviceptr* out, std::size_t bytes, unsigned flags) {
  return allocate("cuMemAllocManaged", out, bytes, Kind::managed);
}
EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr* out, std::size_t* pitch, std::size_t width, std::size_t height,
                                   unsigned element) {
  *pitch = (width + 511) / 512 * 512;
  return allocate("cuMemAllocPitch", out, *pitch * height, Kind::device);
}
EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
  if (address == 0) return kOk;
  const std::lock_guard<std::mutex> held(driver_mutex());
  const Range* range = find_range(address);
  if (range == nullptr || range->begin != address) return kInvalid;
  if (range->kind != Kind::device && range->kind != Kind::managed && range->kind != Kind::pooled) return kInvalid;
  trace("cuMemFree", range->device, address, range->bytes(), kOk);
  if (range->kind == Kind::pooled) return free_pooled(*range);
  give_back(range->device, range->bytes(), range->small);
  unmap_addresses(address, range->bytes());
  erase_range(*range);
  return kOk;
}

EXPORT CUresult cuMemHostAlloc(void** out, std::size_t bytes, unsigned flags) {
  return allocate_host("cuMemHostAlloc", out, bytes);
}
EXPORT CUresult cuMemAllocHost_v2(void** out, std::size_t bytes) {
  return allocate_host("cuMemAllocHost", out, bytes);
}
EXPORT CUresult cuMemFreeHost(void* address) {
  return drop("cuMemFreeHost", reinterpret_cast<std::uint64_t>(address), Kind::host, true, kInvalid);
}
EXPORT CUresult cuMemHostRegister_v2(void* address, std::size_t bytes, unsigned flags) {
  const auto begin = reinterpret_cast<std::uint64_t>(address);
  const std::lock_guard<std::mutex> held(driver_mutex());
  const CUresult code = find_range(begin) != nullptr ? kAlreadyRegistered : kOk;
  if (code == kOk) add_range(begin, bytes, Kind::registered, device_of_host_memory()).context = current_context();
  trace("cuMemHostRegister", -1, begin, bytes, code);
  return code;
}
EXPORT CUresult cuMemHostRegister(void* address, std::size_t bytes, unsigned flags) {
  return cuMemHostRegister_v2(address, bytes, flags);
}
EXPORT CUresult cuMemHostUnregister(void* address) {
  return drop("cuMemHostUnregister", reinterpret_cast<std::uint64_t>(address), Kind::registered, false, kNotRegistered);
}
EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* out, void* address, unsigned flags) {
  *out = reinterpret_cast<CUdeviceptr>(address);
  return kOk;
}
EXPORT CUresult cuMemHostGetFlags(unsigned* flags, void* address) {
  *flags = 0;
  return kOk;
}

namespace {

template <class T>
CUresult give(void* out, T value) {
  std::memcpy(out, &value, sizeof value);
  return kOk;
}

/// CUpointer_attribute by its number.
CUresult pointer_attribute(const Range& range, int attribute, CUdeviceptr address, void* out) {
  const bool on_host = range.kind == Kind::host || range.kind == Kind::registered;
  switch (attribute) {
    case 1:
      return give(out, primary_context(range.device));
    case 2:  // memory type: host, device
      return give(out, on_host ? 1 : 2);
    case 3:  // device pointer
      return give(out, address);
    case 4:  // host pointer
      return on_host ? give(out, address) : CUresult{kInvalid};
    case 6:   // synchronises memory operations
    case 10:  // may be shared by the legacy IPC
    case 15:  // GPUDirect
      return give(out, 0);
    case 7:  // buffer id
      return give(out, range.begin);
    case 8:
      return give(out, range.kind == Kind::managed ? 1 : 0);
    case 9:
      return give(out, range.device);
    case 11:
      return give(out, range.begin);
    case 12:
      return give(out, range.bytes());
    case 13:  // is mapped
      return give(out, 1);
    case 17:
      return give(out, range.pool);
    default:
      return kNotSupported;
  }
}

}  // namespace

EXPORT CUresult cuPointerGetAttribute(void* out, int attribute, CUdeviceptr address) {
  const std::lock_guard<std::mutex> held(driver_mutex());
  const Range* range = find_range(address);
  return range != nullptr ? pointer_attribute(*range, attribute, address, out) : CUresult{kInvalid};
}
EXPORT CUresult cuPointerGetAttributes(unsigned count, const int* attributes, void** out, CUdeviceptr address) {
  for (unsigned i = 0; i < count; ++i) {
    const bool is_int = attributes[i] == 2 || attributes[i] == 8 || attributes[i] == 9;
    if (cuPointerGetAttribute(out[i], attributes[i], address) != kOk)
      std::memset(out[i], 0, is_int ? sizeof(int) : sizeof(void*));
  }
  return kOk;
}
EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr* begin, std::size_t* bytes, CUdeviceptr address) {
  const std::lock_guard<std::mutex> held(driver_mutex());
  const Range* range = find_range(address);
  if (range == nullptr) return kNotFound;
  if (begin != nullptr) *begin = range->begin;
  if (bytes != nullptr) *bytes = range->bytes();
  return kOk;
}

/// The importer gets its own address; the bytes stay the exporter's.
struct IpcHandle {
  char magic[8];
  std::uint64_t pid, begin, bytes;
  char rest[32];
};
static_assert(sizeof(IpcHandle) == 64);
constexpr char kIpcMagic[8] = "fakegpu";

EXPORT CUresult cuIpcGetMemHandle(IpcHandle* out, CUdeviceptr address) {
  const std::lock_guard<std::mutex> held(driver_mutex());
  const Range* range = find_range(address);
  if (range == nullptr) return kInvalid;
  *out = {};
  std::memcpy(out->magic, kIpcMagic, sizeof kIpcMagic);
  out->pid = static_cast<std::uint64_t>(getpid());
  out->begin = range->begin;
  out->bytes = range->bytes();
  return kOk;
}
EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* out, IpcHandle handle, unsigned flags) {
  if (current_context() == nullptr || std::memcmp(handle.magic, kIpcMagic, sizeof kIpcMagic) != 0) return kInvalid;
  const std::lock_guard<std::mutex> held(driver_mutex());
  const std::uint64_t address = map_addresses(handle.bytes, kPage, PROT_READ | PROT_WRITE);
  if (address == 0) return kOutOfMemory;
  add_range(address, handle.bytes, Kind::imported, current_context()->device);
  trace("cuIpcOpenMemHandle", current_context()->device, address, handle.bytes, kOk);
  *out = address;
  return kOk;
}
EXPORT CUresult cuIpcOpenMemHandle(CUdeviceptr* out, IpcHandle handle, unsigned flags) {
  return cuIpcOpenMemHandle_v2(out, handle, flags);
}
EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  return drop("cuIpcCloseMemHandle", address, Kind::imported, true, kInvalid);
}
EXPORT CUresult cuIpcGetEventHandle(char* out, void* event) {
  std::memset(out, 0, sizeof(IpcHandle));
  return kOk;
}
EXPORT CUresult cuIpcOpenEventHandle(std::uint64_t* out, IpcHandle handle) {
  *out = next_handle();
  return kOk;
}
