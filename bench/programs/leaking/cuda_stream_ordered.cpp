// A pipeline on stream-ordered memory. The intermediate result is freed, the gradient that was added later is not.
#include "cuda_setup.h"

namespace {

struct Pipeline {
  CUstream stream = nullptr;

  CUdeviceptr temporary(size_t bytes) const {
    CUdeviceptr memory = 0;
    CHECK(cuMemAllocAsync(&memory, bytes, stream));
    return memory;
  }
};

void step(const Pipeline& pipeline) {
  const CUdeviceptr hidden = pipeline.temporary(2 * MIB);
  CUdeviceptr gradient = 0;
  CHECK(cuMemAllocAsync(&gradient, MIB, pipeline.stream));  // LEAK HERE
  CHECK(cuMemFreeAsync(hidden, pipeline.stream));
}

}  // namespace

int main() {
  use_device(0);
  Pipeline pipeline;
  CHECK(cuStreamCreate(&pipeline.stream, CU_STREAM_NON_BLOCKING));
  for (int i = 0; i < 200; ++i) {
    step(pipeline);
    CHECK(cuStreamSynchronize(pipeline.stream));
  }
  CHECK(cuStreamDestroy(pipeline.stream));
}
