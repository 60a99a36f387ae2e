// A solver that loads forty layers of weights at its start, one after the other, works for a short while, and ends
// without freeing them: the driver does.
#include <vector>

#include "cuda_setup.h"

namespace {

CUdeviceptr load_layer(size_t bytes) {
  CUdeviceptr weights = 0;
  CHECK(cuMemAlloc(&weights, bytes));
  CHECK(cuMemsetD8(weights, 0, 4096));
  return weights;
}

}  // namespace

int main() {
  use_device(0);
  std::vector<CUdeviceptr> layers;
  for (int layer = 0; layer < 40; ++layer) layers.push_back(load_layer((layer % 4 + 1) * MIB));
  for (int request = 0; request < 200; ++request)
    for (size_t layer = 0; layer < layers.size(); ++layer) {
      CUdeviceptr activation = 0;
      CHECK(cuMemAlloc(&activation, MIB));
      CHECK(cuMemFree(activation));
    }
}
