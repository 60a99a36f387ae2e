// Keeps a buffer a step at its own line, beside healthy lines. "healthy": releases it.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <cstring>
#include <vector>

namespace {

std::vector<cl_mem> kept;

__attribute__((noinline)) void keep(cl_context context) {
  kept.push_back(clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, nullptr, nullptr));
}

__attribute__((noinline)) void scratch(cl_context context) {
  clReleaseMemObject(clCreateBuffer(context, CL_MEM_READ_WRITE, 65536, nullptr, nullptr));
}

}  // namespace

int main(int argc, char** argv) {
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  if (clGetPlatformIDs(1, &platform, nullptr) != CL_SUCCESS ||
      clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr) != CL_SUCCESS)
    return 77;
  const cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
  const cl_mem weights = clCreateBuffer(context, CL_MEM_READ_WRITE, 1 << 20, nullptr, nullptr);
  for (int step = 0; step < 300; ++step) {
    scratch(context);
    keep(context);
    if (argc < 2 || std::strcmp(argv[1], "healthy") != 0) continue;
    clReleaseMemObject(kept.back());
    kept.pop_back();
  }
  return weights == nullptr ? 1 : 0;
}
