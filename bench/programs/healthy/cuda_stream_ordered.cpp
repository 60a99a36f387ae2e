// A pipeline on stream-ordered memory with two steps in flight: what one step takes is freed two steps later.
#include <array>

#include "cuda_setup.h"

namespace {

struct Pipeline {
  CUstream stream = nullptr;
  std::array<CUdeviceptr, 2> in_flight{};

  void step(int number) {
    CUdeviceptr& mine = in_flight[number % 2];
    if (mine != 0) CHECK(cuMemFreeAsync(mine, stream));
    CHECK(cuMemAllocAsync(&mine, 3 * MIB, stream));
  }
};

}  // namespace

int main() {
  use_device(0);
  Pipeline pipeline;
  CHECK(cuStreamCreate(&pipeline.stream, CU_STREAM_NON_BLOCKING));
  for (int i = 0; i < 3000; ++i) pipeline.step(i);
  for (const CUdeviceptr memory : pipeline.in_flight) CHECK(cuMemFreeAsync(memory, pipeline.stream));
  CHECK(cuStreamSynchronize(pipeline.stream));
}
