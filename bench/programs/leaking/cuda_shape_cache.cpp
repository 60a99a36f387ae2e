// A convolution's workspaces, cached by shape. The shape has the batch's exact number of points, so that each is new.
#include <map>
#include <memory>

#include "cuda_setup.h"

namespace {

class Workspace {
 public:
  explicit Workspace(size_t bytes) {
    CHECK(cuMemAlloc(&memory_, bytes));  // LEAK HERE
  }
  ~Workspace() { cuMemFree(memory_); }

 private:
  CUdeviceptr memory_ = 0;
};

class Convolution {
 public:
  void forward(size_t points) {
    const Workspace columns(points * 64);
    auto& cached = workspaces_[points];
    if (!cached) cached = std::make_unique<Workspace>(points * 256);
  }

 private:
  std::map<size_t, std::unique_ptr<Workspace>> workspaces_;
};

}  // namespace

int main() {
  use_device(0);
  Convolution convolution;
  unsigned random = 1;
  for (int step = 0; step < 300; ++step) {
    random = random * 1664525U + 1013904223U;
    convolution.forward(4000 + random % 4000);
  }
}
