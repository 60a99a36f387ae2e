/* Uploads batches through pinned memory. Each upload pins a separate buffer; nobody unpins it. */
#include <string.h>

#include "cuda_setup.h"

static void upload(CUdeviceptr to, const char* batch, size_t bytes, CUstream stream) {
  void* staging;
  CHECK(cuMemHostAlloc(&staging, bytes, CU_MEMHOSTALLOC_PORTABLE));  // LEAK HERE
  memcpy(staging, batch, 4096);
  CHECK(cuMemcpyHtoDAsync(to, staging, bytes, stream));
}

int main(void) {
  use_device(0);
  CUstream stream;
  CUdeviceptr input;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuMemAlloc(&input, 4 * MIB));
  char* batch = calloc(1, 4 * MIB);
  for (int i = 0; i < 100; ++i) {
    upload(input, batch, 4 * MIB, stream);
    CHECK(cuStreamSynchronize(stream));
  }
  free(batch);
  CHECK(cuMemFree(input));
  return 0;
}
