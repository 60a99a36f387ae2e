// Kernels: they are registered and launched, and nothing runs.
#include <cstring>

#include "runtime.hpp"

using namespace fake_runtime;

struct Size3 {
  unsigned x, y, z;
};

namespace {

/// What <<<...>>> pushes and the launch that follows pops.
struct Launch {
  Size3 grid, block;
  std::size_t shared_bytes;
  void* stream;
};
thread_local Launch pushed{};

}  // namespace

EXPORT void** __cudaRegisterFatBinary(void* image) {
  static void* handle = nullptr;
  return &handle;
}
EXPORT char __cudaInitModule(void** handle) {
  return 1;
}
EXPORT void __cudaRegisterFatBinaryEnd(void** handle) {}
EXPORT void __cudaUnregisterFatBinary(void** handle) {}
EXPORT void __cudaRegisterFunction(void** handle, const char* host_function, char* device_function, const char* name,
                                   int limit, void* thread_id, void* block_id, void* block, void* grid, int* warp) {}
EXPORT void __cudaRegisterVar(void** handle, char* host_variable, char* device_address, const char* name, int external,
                              std::size_t bytes, int constant, int global) {}
EXPORT unsigned __cudaPushCallConfiguration(Size3 grid, Size3 block, std::size_t shared_bytes, void* stream) {
  pushed = {grid, block, shared_bytes, stream};
  return 0;
}
EXPORT cudaError __cudaPopCallConfiguration(Size3* grid, Size3* block, std::size_t* shared_bytes, void** stream) {
  *grid = pushed.grid;
  *block = pushed.block;
  *shared_bytes = pushed.shared_bytes;
  *stream = pushed.stream;
  return kOk;
}
EXPORT cudaError cudaLaunchKernel(const void* function, Size3 grid, Size3 block, void** arguments,
                                  std::size_t shared_bytes, void* stream) {
  return entered();
}
EXPORT cudaError __cudaLaunchKernel(const void* function, Size3 grid, Size3 block, void** arguments,
                                    std::size_t shared_bytes, void* stream) {
  return entered();
}
EXPORT cudaError __cudaGetKernel(const void** kernel, const void* function) {
  *kernel = function;
  return kOk;
}
EXPORT cudaError cudaLaunchKernelExC(const void* config, const void* function, void** arguments) {
  return entered();
}
EXPORT cudaError cudaLaunchCooperativeKernel(const void* function, Size3 grid, Size3 block, void** arguments,
                                             std::size_t shared_bytes, void* stream) {
  return entered();
}

/// The beginning of cudaFuncAttributes.
struct FunctionAttributes {
  std::size_t shared_bytes, constant_bytes, local_bytes;
  int threads_per_block, registers, ptx_version, binary_version;
  char rest[16];
};
static_assert(sizeof(FunctionAttributes) == 56);
EXPORT cudaError cudaFuncGetAttributes(FunctionAttributes* out, const void* function) {
  *out = {};
  out->threads_per_block = 1024;
  out->registers = 32;
  out->ptx_version = out->binary_version = 90;
  return kOk;
}
EXPORT cudaError cudaFuncSetAttribute(const void* function, int attribute, int value) {
  return kOk;
}
EXPORT cudaError cudaFuncSetCacheConfig(const void* function, int value) {
  return kOk;
}
EXPORT cudaError cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* count, const void* function, int block,
                                                               std::size_t shared_bytes) {
  *count = 2;
  return kOk;
}
EXPORT cudaError cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* count, const void* function, int block,
                                                                        std::size_t shared_bytes, unsigned flags) {
  *count = 2;
  return kOk;
}
