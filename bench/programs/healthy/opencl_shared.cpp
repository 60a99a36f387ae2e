// A tree of particles in shared virtual memory that deepens in the first steps, and is rebuilt now and then.
#include <vector>

#include "opencl_setup.h"

namespace {

struct Tree {
  std::vector<void*> nodes;

  void deepen() {
    void* node = clSVMAlloc(context, CL_MEM_READ_WRITE, 128 * 1024, 0);
    if (node == nullptr) std::exit(NO_DEVICE);
    nodes.push_back(node);
  }
  void clear() {
    for (void* node : nodes) clSVMFree(context, node);
    nodes.clear();
  }
};

}  // namespace

int main() {
  use_device();
  Tree tree;
  for (int step = 0; step < 400; ++step) {
    if (tree.nodes.size() < 48) tree.deepen();
    if (step % 100 == 99) tree.clear();
  }
}
