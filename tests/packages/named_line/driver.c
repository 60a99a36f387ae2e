/* A CUDA driver with one device of 8 GiB, for tests of packages: memory is counted, and there is none. Linked as
 * libcuda.so.1. */
#include <stdint.h>
#include <string.h>

static uint64_t next_address = 0x700000000000;
static const uint64_t total_bytes = UINT64_C(8) << 30;

int cuInit(unsigned flags) {
  (void)flags;
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}
int cuCtxGetDevice(int* device) {
  *device = 0;
  return 0;
}
int cuDeviceGetName(char* name, int length, int device) {
  (void)device;
  strncpy(name, "Test GPU", (size_t)length);
  return 0;
}
int cuDeviceGetUuid_v2(char uuid[16], int device) {
  memset(uuid, device + 1, 16);
  return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  (void)device;
  *bytes = total_bytes;
  return 0;
}
int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  *address = __atomic_fetch_add(&next_address, (bytes + 0xfffff) & ~(uint64_t)0xfffff, __ATOMIC_RELAXED);
  return 0;
}
int cuMemFree_v2(uint64_t address) {
  (void)address;
  return 0;
}
