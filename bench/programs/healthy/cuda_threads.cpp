// A pool of four threads for all jobs. Each has a scratch buffer from its first job on.
#include <atomic>
#include <thread>
#include <vector>

#include "cuda_setup.h"

namespace {

std::atomic<int> jobs_left{400};

void work(CUcontext context) {
  CHECK(cuCtxSetCurrent(context));
  CUdeviceptr scratch = 0;
  while (jobs_left.fetch_sub(1) > 0) {
    CUdeviceptr input = 0;
    if (scratch == 0) CHECK(cuMemAlloc(&scratch, 3 * MIB));
    CHECK(cuMemAlloc(&input, MIB));
    CHECK(cuMemsetD8(scratch, 0, 4096));
    CHECK(cuMemFree(input));
  }
}

}  // namespace

int main() {
  CUcontext context = use_device(0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work, context);
  for (std::thread& thread : threads) thread.join();
}
