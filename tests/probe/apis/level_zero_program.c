/* Takes and releases Level Zero memory as its argument says; prints what the API answered. On the double of
   tests/fake/level_zero. */
#include <stdio.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

int zeMemAllocDevice(void*, const void*, size_t, size_t, void*, void**);
int zeMemAllocShared(void*, const void*, const void*, size_t, size_t, void*, void**);
int zeMemAllocHost(void*, const void*, size_t, size_t, void**);
int zeMemFree(void*, void*);
int zeMemFreeExt(void*, const void*, void*);

static int a_context, a_device;

static void* memory(size_t bytes) {
  void* made = NULL;
  const int error = zeMemAllocDevice(&a_context, NULL, bytes, 64, &a_device, &made);
  if (error != 0) printf("refused %zu: %x\n", bytes, (unsigned)error);
  return made;
}

static void kinds(void) {
  void* made;
  memory(MIB);
  zeMemAllocShared(&a_context, NULL, NULL, 2 * MIB, 64, &a_device, &made);
  zeMemAllocShared(&a_context, NULL, NULL, 3 * MIB, 64, NULL, &made);
  zeMemAllocHost(&a_context, NULL, 4 * MIB, 64, &made);
  zeMemFreeExt(&a_context, NULL, memory(5 * MIB));
  printf("%x\n", (unsigned)zeMemFree(&a_context, NULL));
  memory((size_t)2 << 30);
}

static void limit(void) {
  void* a = memory(6 * MIB);
  memory(6 * MIB);
  zeMemFree(&a_context, a);
  printf("again %d\n", memory(6 * MIB) != NULL);
}

int main(int count, char** arguments) {
  const char* what = count > 1 ? arguments[1] : "healthy";
  const int is_leaking = strcmp(what, "leak") == 0;
  if (strcmp(what, "healthy") == 0 || is_leaking)
    for (int i = 0; i < 20; ++i) {
      void* made = memory(MIB);
      if (!is_leaking || i % 2 == 0) zeMemFree(&a_context, made);
    }
  if (strcmp(what, "kinds") == 0) kinds();
  if (strcmp(what, "limit") == 0) limit();
  return 0;
}
