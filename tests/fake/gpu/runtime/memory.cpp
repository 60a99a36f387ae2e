// Memory: everything goes to the driver.
#include <cstring>

#include "runtime.hpp"

using namespace fake_runtime;

namespace {

Address address_of(const void* pointer) {
  return reinterpret_cast<Address>(pointer);
}
Address* address_into(void** pointer) {
  return reinterpret_cast<Address*>(pointer);
}

}  // namespace

EXPORT cudaError cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  return in_context([&] { return driver.cuMemGetInfo(free_bytes, total_bytes); });
}
EXPORT cudaError cudaMalloc(void** out, std::size_t bytes) {
  *out = nullptr;
  if (bytes == 0) return entered();
  return in_context([&] { return driver.cuMemAlloc(address_into(out), bytes); });
}
EXPORT cudaError cudaMallocPitch(void** out, std::size_t* pitch, std::size_t width, std::size_t height) {
  return in_context([&] { return driver.cuMemAllocPitch(address_into(out), pitch, width, height, 4); });
}
EXPORT cudaError cudaMallocManaged(void** out, std::size_t bytes, unsigned flags) {
  return in_context([&] { return driver.cuMemAllocManaged(address_into(out), bytes, flags); });
}
EXPORT cudaError cudaFree(void* pointer) {
  return in_context([&] { return driver.cuMemFree(address_of(pointer)); });
}
EXPORT cudaError cudaMallocAsync(void** out, std::size_t bytes, void* stream) {
  return in_context([&] { return driver.cuMemAllocAsync(address_into(out), bytes, stream); });
}
EXPORT cudaError cudaFreeAsync(void* pointer, void* stream) {
  return in_context([&] { return driver.cuMemFreeAsync(address_of(pointer), stream); });
}
EXPORT cudaError cudaMallocFromPoolAsync(void** out, std::size_t bytes, void* pool, void* stream) {
  return in_context([&] { return driver.cuMemAllocFromPoolAsync(address_into(out), bytes, pool, stream); });
}
EXPORT cudaError cudaDeviceGetDefaultMemPool(void** pool, int device) {
  return without_context([&] { return driver.cuDeviceGetDefaultMemPool(pool, device); });
}
EXPORT cudaError cudaDeviceGetMemPool(void** pool, int device) {
  return without_context([&] { return driver.cuDeviceGetMemPool(pool, device); });
}
EXPORT cudaError cudaDeviceSetMemPool(int device, void* pool) {
  return without_context([&] { return driver.cuDeviceSetMemPool(device, pool); });
}
EXPORT cudaError cudaMemPoolCreate(void** pool, const void* properties) {
  return in_context([&] { return driver.cuMemPoolCreate(pool, properties); });
}
EXPORT cudaError cudaMemPoolDestroy(void* pool) {
  return in_context([&] { return driver.cuMemPoolDestroy(pool); });
}
EXPORT cudaError cudaMemPoolTrimTo(void* pool, std::size_t keep) {
  return in_context([&] { return driver.cuMemPoolTrimTo(pool, keep); });
}
EXPORT cudaError cudaMemPoolSetAttribute(void* pool, int attribute, void* value) {
  return without_context([&] { return driver.cuMemPoolSetAttribute(pool, attribute, value); });
}
EXPORT cudaError cudaMemPoolGetAttribute(void* pool, int attribute, void* value) {
  return without_context([&] { return driver.cuMemPoolGetAttribute(pool, attribute, value); });
}
EXPORT cudaError cudaMemPoolSetAccess(void* pool, const void* access, std::size_t count) {
  return without_context([&] { return driver.cuMemPoolSetAccess(pool, access, count); });
}
EXPORT cudaError cudaDeviceGetGraphMemAttribute(int device, int attribute, void* value) {
  return without_context([&] { return driver.cuDeviceGetGraphMemAttribute(device, attribute, value); });
}
EXPORT cudaError cudaDeviceSetGraphMemAttribute(int device, int attribute, void* value) {
  return without_context([&] { return driver.cuDeviceSetGraphMemAttribute(device, attribute, value); });
}
EXPORT cudaError cudaDeviceGraphMemTrim(int device) {
  return without_context([&] { return driver.cuDeviceGraphMemTrim(device); });
}
EXPORT cudaError cudaHostAlloc(void** out, std::size_t bytes, unsigned flags) {
  return in_context([&] { return driver.cuMemHostAlloc(out, bytes, flags); });
}
EXPORT cudaError cudaMallocHost(void** out, std::size_t bytes) {
  return in_context([&] { return driver.cuMemHostAlloc(out, bytes, 0); });
}
EXPORT cudaError cudaFreeHost(void* pointer) {
  return in_context([&] { return driver.cuMemFreeHost(pointer); });
}
EXPORT cudaError cudaHostRegister(void* pointer, std::size_t bytes, unsigned flags) {
  return in_context([&] { return driver.cuMemHostRegister(pointer, bytes, flags); });
}
EXPORT cudaError cudaHostUnregister(void* pointer) {
  return in_context([&] { return driver.cuMemHostUnregister(pointer); });
}
EXPORT cudaError cudaHostGetDevicePointer(void** out, void* pointer, unsigned flags) {
  return in_context([&] { return driver.cuMemHostGetDevicePointer(address_into(out), pointer, flags); });
}
EXPORT cudaError cudaMemcpy(void* to, const void* from, std::size_t bytes, int kind) {
  return in_context([&] { return driver.cuMemcpy(address_of(to), address_of(from), bytes); });
}
EXPORT cudaError cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int kind, void* stream) {
  return in_context([&] { return driver.cuMemcpyAsync(address_of(to), address_of(from), bytes, stream); });
}
EXPORT cudaError cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, std::size_t bytes) {
  return in_context([&] { return driver.cuMemcpy(address_of(to), address_of(from), bytes); });
}
EXPORT cudaError cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                                     void* stream) {
  return in_context([&] { return driver.cuMemcpyAsync(address_of(to), address_of(from), bytes, stream); });
}
EXPORT cudaError cudaMemset(void* to, int value, std::size_t bytes) {
  return in_context([&] { return driver.cuMemsetD8(address_of(to), static_cast<unsigned char>(value), bytes); });
}
EXPORT cudaError cudaMemsetAsync(void* to, int value, std::size_t bytes, void* stream) {
  return in_context(
      [&] { return driver.cuMemsetD8Async(address_of(to), static_cast<unsigned char>(value), bytes, stream); });
}
EXPORT cudaError cudaIpcGetMemHandle(void* handle, void* pointer) {
  return in_context([&] { return driver.cuIpcGetMemHandle(handle, address_of(pointer)); });
}
EXPORT cudaError cudaIpcOpenMemHandle(void** out, IpcHandle handle, unsigned flags) {
  return in_context([&] { return driver.cuIpcOpenMemHandle(address_into(out), handle, flags); });
}
EXPORT cudaError cudaIpcCloseMemHandle(void* pointer) {
  return in_context([&] { return driver.cuIpcCloseMemHandle(address_of(pointer)); });
}
EXPORT cudaError cudaIpcGetEventHandle(void* handle, void* event) {
  return in_context([&] { return driver.cuIpcGetEventHandle(handle, event); });
}
EXPORT cudaError cudaIpcOpenEventHandle(void** event, IpcHandle handle) {
  return in_context([&] { return driver.cuIpcOpenEventHandle(event, handle); });
}
/// Rectangles and constants of kernels are not copied: nothing reads them.
EXPORT cudaError cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                   std::size_t width, std::size_t height, int kind, void* stream) {
  return kOk;
}
EXPORT cudaError cudaMemcpyToSymbol(const void* symbol, const void* from, std::size_t bytes, std::size_t offset,
                                    int kind) {
  return kOk;
}
EXPORT cudaError cudaGetSymbolAddress(void** out, void* symbol) {
  *out = symbol;
  return kOk;
}

struct PointerAttributes {
  int type, device;
  void *on_device, *on_host;
};
EXPORT cudaError cudaPointerGetAttributes(PointerAttributes* out, void* pointer) {
  // CUpointer_attribute and cudaMemoryType
  enum { kMemoryType = 2, kIsManaged = 8, kDeviceOrdinal = 9 };
  enum { kUnregistered = 0, kHost = 1, kManaged = 3 };
  if (const cudaError code = entered(); code != kOk) return code;
  *out = {kUnregistered, -1, nullptr, pointer};
  int type = 0;
  if (driver.cuPointerGetAttribute(&type, kMemoryType, address_of(pointer)) != kOk) return kOk;
  int managed = 0;
  driver.cuPointerGetAttribute(&managed, kIsManaged, address_of(pointer));
  driver.cuPointerGetAttribute(&out->device, kDeviceOrdinal, address_of(pointer));
  out->type = managed != 0 ? kManaged : type;
  out->on_device = pointer;
  out->on_host = type == kHost ? pointer : nullptr;
  return kOk;
}
