/* Sorts batches on the device. A batch that is already sorted takes a short cut, past the free of its second buffer. */
#include <hip/hip_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

static void* take(size_t bytes) {
  void* memory = NULL;
  if (hipMalloc(&memory, bytes) != hipSuccess) exit(1);
  return memory;
}

static void sort_batch(int number) {
  void* spare = NULL;
  void* keys = take((size_t)1 << 20);
  if (hipMalloc(&spare, (size_t)2 << 20) != hipSuccess) exit(1);  // LEAK HERE
  const int is_sorted = number % 3 == 0;
  if (!is_sorted) hipFree(spare);
  hipFree(keys);
}

int main(void) {
  hipSetDevice(0);
  void* table = take((size_t)8 << 20);
  for (int number = 0; number < 120; ++number) sort_batch(number);
  hipFree(table);
  return 0;
}
