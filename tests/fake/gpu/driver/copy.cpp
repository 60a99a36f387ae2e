// Copies and fills are real up to VRAMTRACK_FAKE_GPU_COPY_KIB, so that values pass and the test machine's memory stays
// small.
#include <algorithm>
#include <cstring>

#include "driver.hpp"

using namespace fake_gpu;

namespace {

std::size_t really(std::size_t bytes) {
  return std::min<std::size_t>(bytes, setting("VRAMTRACK_FAKE_GPU_COPY_KIB", 4096) << 10U);
}
CUresult copy(void* to, const void* from, std::size_t bytes) {
  std::memmove(to, from, really(bytes));
  return kOk;
}
void* at(CUdeviceptr address) {
  return reinterpret_cast<void*>(address);
}

}  // namespace

EXPORT CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return copy(at(to), at(from), bytes);
}
EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, void* stream) {
  return copy(at(to), at(from), bytes);
}
EXPORT CUresult cuMemcpyAsync_ptsz(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, void* stream) {
  return copy(at(to), at(from), bytes);
}
EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t bytes) {
  return copy(at(to), from, bytes);
}
EXPORT CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t bytes) {
  return copy(to, at(from), bytes);
}
EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return copy(at(to), at(from), bytes);
}
EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes, void* stream) {
  return copy(at(to), from, bytes);
}
EXPORT CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, void* stream) {
  return copy(to, at(from), bytes);
}
EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, void* stream) {
  return copy(at(to), at(from), bytes);
}
EXPORT CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, std::size_t bytes) {
  std::memset(at(to), value, really(bytes));
  return kOk;
}
EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t bytes, void* stream) {
  return cuMemsetD8_v2(to, value, bytes);
}
EXPORT CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, std::size_t count) {
  std::fill_n(static_cast<unsigned*>(at(to)), really(count * sizeof value) / sizeof value, value);
  return kOk;
}
EXPORT CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, std::size_t count, void* stream) {
  return cuMemsetD32_v2(to, value, count);
}
