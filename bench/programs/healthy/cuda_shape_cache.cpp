// A convolution's workspaces, cached by shape rounded up to a bucket: sixteen at most, which come one after the other.
#include <map>
#include <memory>

#include "cuda_setup.h"

namespace {

class Workspace {
 public:
  explicit Workspace(size_t bytes) { CHECK(cuMemAlloc(&memory_, bytes)); }
  ~Workspace() { cuMemFree(memory_); }

 private:
  CUdeviceptr memory_ = 0;
};

class Convolution {
 public:
  void forward(size_t points) {
    const Workspace columns(points * 64);
    const size_t bucket = (points + 511) / 512 * 512;
    auto& cached = workspaces_[bucket];
    if (!cached) cached = std::make_unique<Workspace>(bucket * 256);
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
    convolution.forward(random % 8000 + 1);
  }
}
