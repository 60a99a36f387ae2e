// An arena on virtual memory. It shrinks by unmapping, but keeps the handle: the physical memory is never given back.
#include <vector>

#include "cuda_setup.h"

namespace {

constexpr size_t kPiece = 2 * MIB;

class Arena {
 public:
  Arena() { CHECK(cuMemAddressReserve(&base_, 64 * kPiece, 0, 0, 0)); }

  void grow() {
    CUmemAllocationProp how{};
    how.type = 1;
    how.location = {1, 0};
    CUmemGenericAllocationHandle handle = 0;
    CHECK(cuMemCreate(&handle, kPiece, &how, 0));  // LEAK HERE
    CHECK(cuMemMap(base_ + pieces_ * kPiece, kPiece, 0, handle, 0));
    ++pieces_;
  }
  void shrink() {
    --pieces_;
    CHECK(cuMemUnmap(base_ + pieces_ * kPiece, kPiece));
  }

 private:
  CUdeviceptr base_ = 0;
  size_t pieces_ = 0;
};

}  // namespace

int main() {
  use_device(0);
  Arena arena;
  for (int job = 0; job < 40; ++job) {
    const int pieces = job % 4 + 1;
    for (int i = 0; i < pieces; ++i) arena.grow();
    for (int i = 0; i < pieces; ++i) arena.shrink();
  }
}
