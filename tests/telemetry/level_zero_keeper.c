/* Memory of Level Zero, as it is told; on the double of tests/fake/level_zero. */
#include "commands.h"

int zeMemAllocDevice(void*, const void*, size_t, size_t, void*, void**);
int zeMemAllocShared(void*, const void*, const void*, size_t, size_t, void*, void**);
int zeMemAllocHost(void*, const void*, size_t, size_t, void**);
int zeMemFree(void*, void*);
int zeMemFreeExt(void*, const void*, void*);

static int context, device;

__attribute__((noinline)) static void* memory(size_t bytes) {
  void* made = NULL;
  zeMemAllocDevice(&context, NULL, bytes, 64, &device, &made); /* LINE memory */
  return made;
}

static void kinds(void) {
  void* made;
  memory(MIB);
  zeMemAllocShared(&context, NULL, NULL, 2 * MIB, 64, &device, &made);
  zeMemAllocHost(&context, NULL, 4 * MIB, 64, &made);
  zeMemFreeExt(&context, NULL, memory(5 * MIB));
  memory((size_t)2 << 30); /* refused */
}

static void obey(char command, int number) {
  if (command == 'a') kinds();
  for (int i = 0; i < number; ++i) {
    if (command == 'k') memory(MIB);
    if (command == 'u') zeMemFree(&context, memory(4 * MIB));
  }
}
