// Calls of stubbed libraries that must answer more than a code. What is not here is a generated stub
// (link_libraries.py).
#include <cstddef>
#include <cstdint>
#include <cstring>

#define EXPORT extern "C" __attribute__((visibility("default")))

/// In the generated stubs: what PyTorch accepts differs from one wheel to the next.
extern "C" const std::size_t fake_gpu_cudnn_version;

namespace {

char object[4096];  ///< what every handle points to

int give_handle(void** handle) {
  *handle = object;
  return 0;
}
int give(int* out, int value) {
  *out = value;
  return 0;
}

}  // namespace

EXPORT std::size_t cudnnGetVersion() {
  return fake_gpu_cudnn_version;
}
EXPORT const char* cudnnGetErrorString(int code) {
  return "fake cuDNN: not supported";
}
EXPORT int cudnnGetProperty(int which, int* value) {
  const int version = static_cast<int>(fake_gpu_cudnn_version);
  const int step = version > 9000 ? 10000 : 1000;
  if (which == 0) return give(value, version / step);
  if (which == 1) return give(value, version % step / 100);
  return give(value, version % 100);
}
EXPORT int cudnnCreate(void** handle) {
  return give_handle(handle);
}
EXPORT int cudnnSetStream(void* handle, void* stream) {
  return 0;
}
EXPORT int cudnnDestroy(void* handle) {
  return 0;
}

EXPORT int cublasGetVersion_v2(void* handle, int* version) {
  return give(version, 120400);
}
EXPORT int cublasGetMathMode(void* handle, int* mode) {
  return give(mode, 0);
}
EXPORT int cublasGetPointerMode_v2(void* handle, int* mode) {
  return give(mode, 0);
}
EXPORT const char* cublasGetStatusString(int code) {
  return "fake cuBLAS: not supported";
}
EXPORT std::size_t cublasLtGetVersion() {
  return 120400;
}
EXPORT const char* cublasLtGetStatusString(int code) {
  return "fake cuBLASLt: not supported";
}
/// One algorithm, which needs no workspace. A stub that leaves the sizes unset makes PyTorch ask for 128 TiB.
EXPORT int cublasLtMatmulAlgoGetHeuristic(void* lt, void* operation, void* a, void* b, void* c, void* d,
                                          void* preference, int wanted, char* results, int* found) {
  constexpr std::size_t kResultBytes = 96;
  std::memset(results, 0, kResultBytes);
  return give(found, 1);
}

EXPORT int ncclGetVersion(int* version) {
  return give(version, 22700);
}
EXPORT const char* ncclGetErrorString(int code) {
  return "fake NCCL: not supported";
}
EXPORT const char* ncclGetLastError(void* communicator) {
  return "fake NCCL: not supported";
}

EXPORT int nvrtcVersion(int* major, int* minor) {
  *major = 12;
  return give(minor, 4);
}
EXPORT const char* nvrtcGetErrorString(int code) {
  return "fake NVRTC: not supported";
}

EXPORT int cusparseGetVersion(void* handle, int* version) {
  return give(version, 12400);
}
EXPORT const char* cusparseGetErrorString(int code) {
  return "fake cuSPARSE: not supported";
}

EXPORT int cuptiGetVersion(std::uint32_t* version) {
  *version = 24;
  return 0;
}
EXPORT int cuptiGetResultString(int code, const char** text) {
  *text = "fake CUPTI: not supported";
  return 0;
}

EXPORT int cufftCreate(int* plan) {
  return give(plan, 1);
}
EXPORT int cufftGetVersion(int* version) {
  return give(version, 11200);
}
EXPORT int cufftXtMakePlanMany(int plan, int rank, void* sizes, void* in_embed, long long in_stride,
                               long long in_distance, int in_type, void* out_embed, long long out_stride,
                               long long out_distance, int out_type, long long batch, std::size_t* workspace_bytes,
                               int execution_type) {
  *workspace_bytes = 0;
  return 0;
}

EXPORT int cusolverDnCreate(void** handle) {
  return give_handle(handle);
}
EXPORT int cusolverDnDestroy(void* handle) {
  return 0;
}
EXPORT int cusolverDnSetStream(void* handle, void* stream) {
  return 0;
}
EXPORT int cusolverDnGetVersion(int* version) {
  return give(version, 11600);
}
EXPORT int cusolverGetVersion(int* version) {
  return give(version, 11600);
}
