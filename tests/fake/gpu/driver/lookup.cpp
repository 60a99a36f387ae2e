// Code that is loaded and never run, the words of errors, and finding a function by its name and version.
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "driver.hpp"

using namespace fake_gpu;

EXPORT CUresult cuInit(unsigned flags);

EXPORT CUresult cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                               unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream,
                               void** parameters, void** extra) {
  return kOk;
}
EXPORT CUresult cuLaunchKernelEx(const void* config, void* function, void** parameters, void** extra) {
  return kOk;
}
EXPORT CUresult cuModuleLoadData(std::uint64_t* module, const void* image) {
  return take_beside(module, module_bytes());
}
EXPORT CUresult cuModuleLoadDataEx(std::uint64_t* module, const void* image, unsigned count, void* options,
                                   void* values) {
  return cuModuleLoadData(module, image);
}
EXPORT CUresult cuModuleUnload(std::uint64_t module) {
  give_back_beside(module);
  return kOk;
}
EXPORT CUresult cuModuleGetFunction(std::uint64_t* function, std::uint64_t module, const char* name) {
  *function = next_handle();
  return kOk;
}
EXPORT CUresult cuModuleGetLoadingMode(int* mode) {
  constexpr int kLazy = 2;
  *mode = kLazy;
  return kOk;
}
EXPORT CUresult cuFuncGetAttribute(int* value, int attribute, void* function) {
  switch (attribute) {
    case 0:  // threads per block
      *value = 1024;
      break;
    case 4:  // registers
      *value = 32;
      break;
    case 5:  // versions of PTX and of the binary
    case 6:
      *value = 90;
      break;
    default:
      *value = 0;
  }
  return kOk;
}
EXPORT CUresult cuFuncSetAttribute(void* function, int attribute, int value) {
  return kOk;
}
EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* count, void* function, int block,
                                                            std::size_t shared_bytes) {
  *count = 2;
  return kOk;
}

namespace {

struct ErrorWords {
  int code;
  const char *name, *text;
};
constexpr std::array kErrors = {ErrorWords{kOk, "CUDA_SUCCESS", "no error"},
                                ErrorWords{kInvalid, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
                                ErrorWords{kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
                                ErrorWords{kNotInitialised, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
                                ErrorWords{kNoDevice, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
                                ErrorWords{kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
                                ErrorWords{kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
                                ErrorWords{kNotFound, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
                                ErrorWords{kNotSupported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"}};

CUresult words_of(int code, const char** out, const char* ErrorWords::*member) {
  const auto* found = std::ranges::find(kErrors, code, &ErrorWords::code);
  *out = found != kErrors.end() ? found->*member : nullptr;
  return found != kErrors.end() ? kOk : kInvalid;
}

}  // namespace

EXPORT CUresult cuGetErrorName(int code, const char** out) {
  return words_of(code, out, &ErrorWords::name);
}
EXPORT CUresult cuGetErrorString(int code, const char** out) {
  return words_of(code, out, &ErrorWords::text);
}

/// The names that only a generated stub has, sorted; both are missing where the driver is linked without stubs.
extern "C" {
__attribute__((weak)) extern const char* const fake_gpu_stubs[];
__attribute__((weak)) extern const int fake_gpu_stub_count;
}

namespace {

bool is_stub(const std::string& symbol) {
  if (&fake_gpu_stub_count == nullptr) return false;
  return std::binary_search(fake_gpu_stubs, fake_gpu_stubs + fake_gpu_stub_count, symbol.c_str(),
                            [](const char* a, const char* b) { return std::strcmp(a, b) < 0; });
}

void* symbol_of_this_library(const std::string& symbol) {
  static void* library = [] {
    Dl_info here{};
    const bool found = dladdr(reinterpret_cast<void*>(&cuInit), &here) != 0;
    return found ? dlopen(here.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  }();
  return library != nullptr ? dlsym(library, symbol.c_str()) : nullptr;
}

/// A name that has another binary interface for a caller of an older CUDA.
struct OlderForm {
  const char* name;
  int before;
  const char* symbol;
};
constexpr std::array kOlderForms = {OlderForm{"cuCtxGetDevice", 13000, "cuCtxGetDevice"},
                                    OlderForm{"cuCtxCreate", 11040, "cuCtxCreate_v2"},
                                    OlderForm{"cuStreamGetCaptureInfo", 12030, "cuStreamGetCaptureInfo_v2"},
                                    OlderForm{"cuGetProcAddress", 12000, "cuGetProcAddress"}};

/// The newest form of a name; one with a body before a stub, because CUDA 13's cuCtxSynchronize_v2 is a stub here.
void* find_function(const std::string& name, int version, bool per_thread) {
  for (const OlderForm& older : kOlderForms)
    if (name == older.name && version < older.before) return symbol_of_this_library(older.symbol);
  for (const bool stubs : {false, true})
    for (const char* thread_suffix : {"_ptsz", ""}) {
      if (*thread_suffix != '\0' && !per_thread) continue;
      for (const char* suffix : {"_v4", "_v3", "_v2", ""}) {
        const std::string symbol = name + suffix + thread_suffix;
        if (is_stub(symbol) != stubs) continue;
        if (void* found = symbol_of_this_library(symbol); found != nullptr) return found;
      }
    }
  return nullptr;
}

}  // namespace

EXPORT CUresult cuGetProcAddress_v2(const char* name, void** out, int version, std::uint64_t flags, int* status) {
  constexpr std::uint64_t kPerThreadStream = 2;
  *out = *name != '\0' ? find_function(name, version, (flags & kPerThreadStream) != 0) : nullptr;
  if (status != nullptr) *status = *out != nullptr ? 0 : 1;
  return *out != nullptr || *name == '\0' ? kOk : kNotFound;
}
EXPORT CUresult cuGetProcAddress(const char* name, void** out, int version, std::uint64_t flags) {
  return cuGetProcAddress_v2(name, out, version, flags, nullptr);
}
/// Private tables of NVIDIA's own libraries; none of them runs on this driver.
EXPORT CUresult cuGetExportTable(const void** table, const void* id) {
  *table = nullptr;
  return kNotFound;
}
