// A double of the CUDA driver's allocating functions, for programs that are traced while they run.
#include <stddef.h>
#include <stdlib.h>

int cuMemAlloc_v2(unsigned long long* out, size_t bytes) {
  if (bytes > (size_t)1 << 40) return 2;  // CUDA_ERROR_OUT_OF_MEMORY
  *out = (unsigned long long)malloc(64);
  return 0;
}

int cuMemFree_v2(unsigned long long address) {
  free((void*)address);
  return 0;
}

// Calls another traced function: the memory is counted once.
int cuMemAllocPitch_v2(unsigned long long* out, size_t* pitch, size_t width, size_t rows, unsigned element) {
  (void)element;
  *pitch = (width + 511) / 512 * 512;
  return cuMemAlloc_v2(out, *pitch * rows);
}
