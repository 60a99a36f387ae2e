/* Memory of HIP, as it is told; on the double of tests/fake/hip. */
#include "commands.h"

int hipMalloc(void** out, size_t bytes);
int hipFree(void* memory);
int hipHostMalloc(void** out, size_t bytes, unsigned flags);
int hipSetDevice(int device);

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

static void obey(char command, int number) {
  if (command == 'a') kinds();
  for (int i = 0; i < number; ++i) {
    if (command == 'k') memory(MIB);
    if (command == 'u') hipFree(memory(4 * MIB));
  }
}
