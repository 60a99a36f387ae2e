// A CUDA driver that costs next to nothing: memory is the heap's. bench/probe_peers.py compiles it as libcuda.so.1,
// since the double that the tests use maps and unmaps memory, which takes longer than any recorder.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

using Address = unsigned long long;

namespace {
int context = 0;
}

extern "C" {
int cuInit(unsigned) {
  return 0;
}
int cuDriverGetVersion(int* version) {
  *version = 12040;
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}
int cuDeviceGet(int* device, int) {
  *device = 0;
  return 0;
}
int cuDeviceGetUuid_v2(void* uuid, int) {
  std::memset(uuid, 7, 16);
  return 0;
}
int cuDeviceGetUuid(void* uuid, int device) {
  return cuDeviceGetUuid_v2(uuid, device);
}
int cuDeviceGetName(char* name, int size, int) {
  std::strncpy(name, "bench", static_cast<std::size_t>(size));
  return 0;
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = std::size_t{80} << 30U;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** into, int) {
  *into = &context;
  return 0;
}
int cuCtxSetCurrent(void*) {
  return 0;
}
int cuCtxGetCurrent(void** into) {
  *into = &context;
  return 0;
}
int cuCtxGetDevice(int* device) {
  *device = 0;
  return 0;
}
int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  *free = *total = std::size_t{80} << 30U;
  return 0;
}
int cuMemAlloc_v2(Address* at, std::size_t size) {
  *at = reinterpret_cast<Address>(std::malloc(size));
  return 0;
}
int cuMemFree_v2(Address at) {
  std::free(reinterpret_cast<void*>(at));
  return 0;
}
}
