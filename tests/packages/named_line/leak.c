/* Keeps every fourth buffer that it takes. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

static int (*mem_alloc)(uint64_t* address, size_t bytes);
static int (*mem_free)(uint64_t address);

__attribute__((noinline)) static uint64_t decode_frame(void) {
  uint64_t surface = 0;
  if (mem_alloc(&surface, 3 << 20) != 0) return 0; /* LEAK HERE */
  return surface;
}

int main(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == NULL) {
    fprintf(stderr, "leak: %s\n", dlerror());
    return 2;
  }
  int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
  mem_alloc = (int (*)(uint64_t*, size_t))dlsym(driver, "cuMemAlloc_v2");
  mem_free = (int (*)(uint64_t))dlsym(driver, "cuMemFree_v2");
  if (init == NULL || mem_alloc == NULL || mem_free == NULL || init(0) != 0) return 2;
  for (int frame = 0; frame < 400; ++frame) {
    const uint64_t surface = decode_frame();
    if (frame % 4 != 3) mem_free(surface);
  }
  return 0;
}
