/* Memory of HIP, as it is told; on the double of tests/fake/hip. */
#include "commands.h"

int hipMalloc(void** out, size_t bytes);
int hipFree(void* memory);
int hipHostMalloc(void** out, size_t bytes, unsigned flags);
int hipSetDevice(int device);
int hipDeviceReset(void);
int hipHostFree(void* memory);
int hipMallocHost(void** out, size_t bytes);
int hipMallocFromPoolAsync(void** out, size_t bytes, void* pool, void* stream);
int hipMemCreate(void** out, size_t bytes, const int* properties, unsigned long long flags);
int hipMemMap(void* at, size_t bytes, size_t offset, void* handle, unsigned long long flags);
int hipMemUnmap(void* at, size_t bytes);
int hipMemRelease(void* handle);
int hipMallocPitch(void** out, size_t* pitch, size_t width, size_t height);

__attribute__((noinline)) static void* memory(size_t bytes) {
  void* made = NULL;
  hipMalloc(&made, bytes); /* LINE memory */
  return made;
}

static void kinds(void) {
  void* made;
  hipHostMalloc(&made, 2 * MIB, 0);
  hipSetDevice(1);
  memory(3 * MIB);
}

static void more_kinds(void) {
  void* made;
  size_t pitch;
  hipSetDevice(1);
  hipMallocFromPoolAsync(&made, 2 * MIB, NULL, NULL);
  hipMallocPitch(&made, &pitch, 1000, 1024); /* rows of 1024 bytes */
  hipMallocHost(&made, 4 * MIB);
  hipMallocHost(&made, 8 * MIB);
  hipHostFree(made);
}

/* 1 MiB lives on: it is mapped. */
static void map_and_release(void) {
  const int where[5] = {1, 0, 1, 0, 0}; /* hipMemAllocationProp: device 0 */
  for (size_t i = 0; i < 2; ++i) {
    char* const at = (char*)(0x700000000000 + i * 4 * MIB);
    void* made;
    hipMemCreate(&made, (1 + i) * MIB, where, 0);
    hipMemMap(at, (1 + i) * MIB, 0, made, 0);
    hipMemRelease(made);
    if (i == 1) hipMemUnmap(at, (1 + i) * MIB);
  }
}

static void reset(int device) {
  hipSetDevice(device);
  hipDeviceReset();
}

static void obey(char command, int number) {
  if (command == 'a') kinds();
  if (command == 'm') more_kinds();
  if (command == 'p') map_and_release();
  if (command == 'r') reset(number), number = 0;
  for (int i = 0; i < number; ++i) {
    if (command == 'k') memory(MIB);
    if (command == 'u') hipFree(memory(4 * MIB));
  }
}
