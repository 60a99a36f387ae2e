// An arena on virtual memory that grows to the largest job and stays there; between jobs it gives the top half back.
#include <vector>

#include "cuda_setup.h"

namespace {

constexpr size_t kPiece = 2 * MIB;

class Arena {
 public:
  Arena() { CHECK(cuMemAddressReserve(&base_, 64 * kPiece, 0, 0, 0)); }

  void grow_to(size_t pieces) {
    while (pieces_ < pieces) {
      CUmemAllocationProp how{};
      how.type = 1;
      how.location = {1, 0};
      CUmemGenericAllocationHandle handle = 0;
      CHECK(cuMemCreate(&handle, kPiece, &how, 0));
      CHECK(cuMemMap(base_ + pieces_ * kPiece, kPiece, 0, handle, 0));
      CHECK(cuMemRelease(handle));  // the mapping holds it
      ++pieces_;
    }
  }
  void shrink_to(size_t pieces) {
    for (; pieces_ > pieces; --pieces_) CHECK(cuMemUnmap(base_ + (pieces_ - 1) * kPiece, kPiece));
  }
  size_t pieces() const { return pieces_; }

 private:
  CUdeviceptr base_ = 0;
  size_t pieces_ = 0;
};

}  // namespace

int main() {
  use_device(0);
  Arena arena;
  for (size_t job = 0; job < 60; ++job) {
    arena.grow_to(job < 12 ? 4 + job : 16);
    arena.shrink_to(arena.pieces() / 2);
  }
}
