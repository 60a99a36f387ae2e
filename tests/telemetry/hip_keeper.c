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

static void reset(int device) {
  hipSetDevice(device);
  hipDeviceReset();
}

static void obey(char command, int number) {
  if (command == 'a') kinds();
  if (command == 'm') more_kinds();
  if (command == 'r') reset(number), number = 0;
  for (int i = 0; i < number; ++i) {
    if (command == 'k') memory(MIB);
    if (command == 'u') hipFree(memory(4 * MIB));
  }
}
