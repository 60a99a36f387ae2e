// Memory of another API, imported: nothing of it is charged here.
#include "driver.hpp"

using namespace fake_gpu;

/// CUDA_EXTERNAL_MEMORY_HANDLE_DESC
struct ExternalMemory {
  int kind;
  void* handle[2];
  unsigned long long bytes;
};

EXPORT CUresult cuImportExternalMemory(std::uint64_t* out, const ExternalMemory* memory) {
  *out = next_handle();
  trace("cuImportExternalMemory", -1, *out, memory->bytes, kOk);
  return kOk;
}
EXPORT CUresult cuDestroyExternalMemory(std::uint64_t memory) {
  trace("cuDestroyExternalMemory", -1, memory, 0, kOk);
  return kOk;
}
