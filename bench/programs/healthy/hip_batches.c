/* Sorts batches on the device. The scratch buffer grows with the largest batch so far, until the largest has come. */
#include <hip/hip_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

static void* scratch;
static size_t scratch_bytes;

static void* scratch_of(size_t bytes) {
  if (bytes > scratch_bytes) {
    hipFree(scratch);
    if (hipMalloc(&scratch, bytes) != hipSuccess) exit(1);
    scratch_bytes = bytes;
  }
  return scratch;
}

static void sort_batch(int number) {
  void* keys = NULL;
  const size_t bytes = (size_t)(number < 40 ? number + 1 : 1 + number * 7 % 40) << 16;
  if (hipMalloc(&keys, bytes) != hipSuccess || scratch_of(2 * bytes) == NULL) exit(1);
  hipFree(keys);
}

int main(void) {
  hipSetDevice(0);
  for (int number = 0; number < 1000; ++number) sort_batch(number);
  return 0;
}
