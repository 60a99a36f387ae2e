/* A double of libamdhip64.so: two devices of 1 GiB whose memory is the heap's; VRAM runs out as on a real one. Its
   symbols have the versions of ROCm's. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define TOTAL ((size_t)1 << 30)

static size_t held[2];
static _Thread_local int device;
typedef struct {
  size_t bytes;
  int device; /* -1: the host's */
  int references;
} Head;

static void* take(size_t bytes, int on) {
  if (on >= 0 && (bytes > TOTAL || held[on] + bytes > TOTAL)) return NULL;
  Head* head = malloc(64);
  *head = (Head){bytes, on, 1};
  if (on >= 0) held[on] += bytes;
  return head;
}
static int give(void* memory) {
  Head* head = memory;
  if (memory == NULL) return 0;
  if (head->references != 1) return 1;
  if (head->device >= 0) held[head->device] -= head->bytes;
  free(memory);
  return 0;
}
static int take_into(void** into, size_t bytes, int on) {
  *into = take(bytes, on);
  return *into == NULL ? 2 : 0;
}

EXPORT int hipSetDevice(int to) {
  device = to;
  return to < 0 || to > 1 ? 101 : 0;
}
EXPORT int hipGetDevice(int* into) {
  *into = device;
  return 0;
}
EXPORT int hipDeviceGetName(char* into, int size, int of) {
  (void)of;
  strncpy(into, "Fake MI300X", (size_t)size);
  return 0;
}
EXPORT int hipDeviceTotalMem(size_t* into, int of) {
  (void)of;
  *into = TOTAL;
  return 0;
}
EXPORT int hipDeviceGetUuid(char* into, int of) {
  memset(into, 0xa0 + of, 16);
  return 0;
}
EXPORT int hipMemGetInfo(size_t* free_bytes, size_t* total) {
  *free_bytes = TOTAL - held[device];
  *total = TOTAL;
  return 0;
}
EXPORT int hipMalloc(void** into, size_t bytes) {
  return take_into(into, bytes, device);
}
EXPORT int hipExtMallocWithFlags(void** into, size_t bytes, unsigned flags) {
  (void)flags;
  return hipMalloc(into, bytes); /* as ROCm's may: a hooked call within a hooked call */
}
EXPORT int hipMallocManaged(void** into, size_t bytes, unsigned flags) {
  (void)flags;
  return take_into(into, bytes, device);
}
EXPORT int hipMallocAsync(void** into, size_t bytes, void* stream) {
  (void)stream;
  return take_into(into, bytes, device);
}
EXPORT int hipMallocFromPoolAsync(void** into, size_t bytes, void* pool, void* stream) {
  (void)pool;
  (void)stream;
  return take_into(into, bytes, device);
}
EXPORT int hipMallocPitch(void** into, size_t* pitch, size_t width, size_t height) {
  *pitch = (width + 255) / 256 * 256;
  return take_into(into, *pitch * height, device);
}
typedef struct {
  void* pointer;
  size_t pitch, width, height;
} Pitched;
typedef struct {
  size_t width, height, depth;
} Extent;
typedef struct {
  int x, y, z, w, kind;
} Format;
EXPORT int hipMalloc3D(Pitched* into, Extent extent) {
  into->pitch = (extent.width + 255) / 256 * 256;
  return take_into(&into->pointer, into->pitch * extent.height * extent.depth, device);
}
EXPORT int hipMallocArray(void** into, const Format* format, size_t width, size_t height, unsigned flags) {
  (void)flags;
  return take_into(into, width * (height ? height : 1) * (size_t)(format->x + format->y + format->z + format->w) / 8,
                   device);
}
EXPORT int hipMalloc3DArray(void** into, const Format* format, Extent extent, unsigned flags) {
  return hipMallocArray(into, format, extent.width * extent.depth, extent.height, flags);
}
EXPORT int hipFreeArray(void* array) {
  return give(array);
}
EXPORT int hipFree(void* memory) {
  return give(memory);
}
EXPORT int hipFreeAsync(void* memory, void* stream) {
  (void)stream;
  return give(memory);
}
EXPORT int hipHostMalloc(void** into, size_t bytes, unsigned flags) {
  (void)flags;
  return take_into(into, bytes, -1);
}
EXPORT int hipMallocHost(void** into, size_t bytes) {
  return take_into(into, bytes, -1);
}
EXPORT int hipHostFree(void* memory) {
  return give(memory);
}
EXPORT int hipFreeHost(void* memory) {
  return give(memory);
}
EXPORT int hipMemCreate(void** into, size_t bytes, const int* properties, unsigned long long flags) {
  (void)flags;
  return take_into(into, bytes, properties[3]);
}
EXPORT int hipMemMap(void* at, size_t bytes, size_t offset, void* handle, unsigned long long flags) {
  (void)bytes;
  (void)offset;
  (void)flags;
  (void)at;
  (void)handle;
  return 0;
}
EXPORT int hipMemUnmap(void* at, size_t bytes) {
  (void)at;
  (void)bytes;
  return 0;
}
EXPORT int hipMemRelease(void* handle) {
  return give(handle);
}
EXPORT int hipDeviceReset(void) {
  held[device] = 0;
  return 0;
}
EXPORT int hipGetProcAddress(const char* symbol, void** into, int version, uint64_t flags, int* status) {
  (void)version;
  (void)flags;
  *into = strcmp(symbol, "hipMalloc") == 0      ? (void*)(uintptr_t)&hipMalloc
          : strcmp(symbol, "hipSetDevice") == 0 ? (void*)(uintptr_t)&hipSetDevice
                                                : NULL;
  if (status != NULL) *status = *into == NULL;
  return *into == NULL ? 500 : 0;
}
