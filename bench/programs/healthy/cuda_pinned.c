/* Uploads batches through two pinned buffers in turn. Both are pinned at the first batch of their turn and stay. */
#include <string.h>

#include "cuda_setup.h"

static void* staging[2];
static size_t staging_bytes[2];

/* A batch that is larger than any before it gets a larger buffer. */
static void* staging_of(int turn, size_t bytes) {
  if (staging_bytes[turn] < bytes) {
    if (staging[turn] != NULL) CHECK(cuMemFreeHost(staging[turn]));
    CHECK(cuMemHostAlloc(&staging[turn], bytes, CU_MEMHOSTALLOC_PORTABLE));
    staging_bytes[turn] = bytes;
  }
  return staging[turn];
}

int main(void) {
  use_device(0);
  CUstream stream;
  CUdeviceptr input;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuMemAlloc(&input, 4 * MIB));
  for (int i = 0; i < 1000; ++i) {
    const size_t bytes = (size_t)(i < 200 ? i / 4 + 1 : 50) * 65536;
    void* batch = staging_of(i % 2, bytes);
    memset(batch, i, 4096);
    CHECK(cuMemcpyHtoDAsync(input, batch, bytes, stream));
    CHECK(cuStreamSynchronize(stream));
  }
  return 0;
}
