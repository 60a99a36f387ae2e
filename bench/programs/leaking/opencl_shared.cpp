// A tree of particles in shared virtual memory. Rebuilding it frees the nodes of the left half only.
#include <array>

#include "opencl_setup.h"

namespace {

struct Tree {
  std::array<void*, 8> nodes{};

  void build() {
    for (void*& node : nodes) {
      node = clSVMAlloc(context, CL_MEM_READ_WRITE, 128 * 1024, 0);  // LEAK HERE
      if (node == nullptr) std::exit(NO_DEVICE);
    }
  }
  void clear() {
    for (size_t i = 0; i < nodes.size() / 2; ++i) clSVMFree(context, nodes[i]);
  }
};

}  // namespace

int main() {
  use_device();
  Tree tree;
  for (int step = 0; step < 100; ++step) {
    tree.build();
    check(clFinish(queue), "clFinish");
    tree.clear();
  }
}
