// A simulation that refines its mesh: the new mesh is made, and the pointer to the old one overwritten.
#include <utility>

#include "cuda_setup.h"

extern "C" void vramtrack_probe_mark(const char* name) __attribute__((weak));

namespace {

struct Mesh {
  CUdeviceptr cells = 0;
  size_t bytes = 0;
};

Mesh make_mesh(size_t bytes) {
  Mesh mesh;
  mesh.bytes = bytes;
  CHECK(cuMemAlloc(&mesh.cells, bytes));  // LEAK HERE
  return mesh;
}

void advance(const Mesh& mesh) {
  CUdeviceptr flux = 0;
  CHECK(cuMemAlloc(&flux, mesh.bytes / 2));
  CHECK(cuMemFree(flux));
}

}  // namespace

int main() {
  use_device(0);
  Mesh mesh = make_mesh(8 * MIB);
  for (int step = 0; step < 300; ++step) {
    advance(mesh);
    if (step % 10 == 9) mesh = make_mesh(8 * MIB + static_cast<size_t>(step % 7) * 65536);
    if (vramtrack_probe_mark != nullptr) vramtrack_probe_mark("step");
  }
  CHECK(cuMemFree(mesh.cells));
}
