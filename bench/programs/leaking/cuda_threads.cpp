// A thread for each job. Each makes itself a scratch buffer that is thread_local, and a plain pointer: nobody frees it.
#include <thread>
#include <vector>

#include "cuda_setup.h"

namespace {

thread_local CUdeviceptr scratch = 0;

CUdeviceptr scratch_memory() {
  if (scratch == 0) CHECK(cuMemAlloc(&scratch, 3 * MIB));  // LEAK HERE
  return scratch;
}

void job(CUcontext context) {
  CHECK(cuCtxSetCurrent(context));
  for (int i = 0; i < 10; ++i) {
    CUdeviceptr input = 0;
    CHECK(cuMemAlloc(&input, MIB));
    CHECK(cuMemsetD8(scratch_memory(), 0, 4096));
    CHECK(cuMemFree(input));
  }
}

}  // namespace

int main() {
  CUcontext context = use_device(0);
  for (int round = 0; round < 25; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back(job, context);
    for (std::thread& thread : threads) thread.join();
  }
}
