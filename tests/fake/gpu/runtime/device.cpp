// Loading the driver, devices, and the errors' words.
#include <dlfcn.h>

#include <cstring>
#include <mutex>

#include "runtime.hpp"

using namespace fake_runtime;

fake_runtime::Driver fake_runtime::driver{};

namespace {

int device_total = 0;
cudaError start_code = kOk;
std::once_flag start_once;
thread_local int current_device = 0;
thread_local cudaError last_error = kOk;

template <class Function>
void assign(Function*& target, void* symbol) {
  target = reinterpret_cast<Function*>(symbol);
}
template <class Function>
void look_up(Function*& target, const char* name, int version) {
  void* symbol = nullptr;
  int status = 0;
  driver.cuGetProcAddress_v2(name, &symbol, version, 0, &status);
  assign(target, symbol);
}

void load_driver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library != nullptr) assign(driver.cuGetProcAddress_v2, dlsym(library, "cuGetProcAddress_v2"));
  if (driver.cuGetProcAddress_v2 == nullptr) {
    start_code = kDriverTooOld;
    return;
  }
#define LOOK_UP(name, version, arguments) look_up(driver.name, #name, version);
  FAKE_RUNTIME_DRIVER_CALLS(LOOK_UP)
#undef LOOK_UP
  start_code = driver.cuInit(0);
  if (start_code == kOk) start_code = driver.cuDeviceGetCount(&device_total);
}

}  // namespace

cudaError fake_runtime::remember(cudaError code) {
  if (code != kOk) last_error = code;
  return code;
}
cudaError fake_runtime::started() {
  std::call_once(start_once, load_driver);
  return start_code;
}
bool fake_runtime::known_device(int device) {
  return device >= 0 && device < device_total;
}
cudaError fake_runtime::entered() {
  static std::mutex mutex;
  static std::array<void*, 64> contexts{};
  thread_local int entered_device = -1;
  if (const cudaError code = started(); code != kOk) return remember(code);
  if (entered_device == current_device) return kOk;
  void*& context = contexts.at(static_cast<std::size_t>(current_device));
  {
    const std::lock_guard<std::mutex> held(mutex);
    const cudaError code = context != nullptr ? kOk : driver.cuDevicePrimaryCtxRetain(&context, current_device);
    if (code != kOk) return remember(code);
  }
  entered_device = current_device;
  return driver.cuCtxSetCurrent(context);
}

EXPORT cudaError cudaGetDeviceCount(int* count) {
  const cudaError code = started();
  *count = code == kOk ? device_total : 0;
  return remember(code);
}
EXPORT cudaError cudaGetDevice(int* device) {
  *device = current_device;
  return kOk;
}
EXPORT cudaError cudaSetDevice(int device) {
  if (const cudaError code = started(); code != kOk) return remember(code);
  if (!known_device(device)) return remember(kInvalidDevice);
  current_device = device;
  return entered();
}
EXPORT cudaError cudaDriverGetVersion(int* version) {
  *version = 0;
  return started() == kDriverTooOld ? cudaError{kOk} : driver.cuDriverGetVersion(version);
}
EXPORT cudaError cudaRuntimeGetVersion(int* version) {
  *version = CUDART_MAJOR == 12 ? 12040 : 13000;
  return kOk;
}
EXPORT cudaError cudaDeviceGetAttribute(int* value, int attribute, int device) {
  return without_context([&] { return driver.cuDeviceGetAttribute(value, attribute, device); });
}
EXPORT cudaError cudaDeviceGetPCIBusId(char* id, int length, int device) {
  return without_context([&] { return driver.cuDeviceGetPCIBusId(id, length, device); });
}
EXPORT cudaError cudaDeviceGetByPCIBusId(int* device, const char* id) {
  return without_context([&] { return driver.cuDeviceGetByPCIBusId(device, id); });
}
EXPORT cudaError cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return without_context([&] { return driver.cuDeviceCanAccessPeer(can, device, peer); });
}
EXPORT cudaError cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return kOk;
}
EXPORT cudaError cudaDeviceSynchronize() {
  return in_context([] { return driver.cuCtxSynchronize(); });
}
EXPORT cudaError cudaDeviceReset() {
  return kOk;
}
EXPORT cudaError cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return in_context([&] { return driver.cuCtxGetStreamPriorityRange(least, greatest); });
}
EXPORT cudaError cudaDeviceSetLimit(int limit, std::size_t value) {
  return kOk;
}
EXPORT cudaError cudaDeviceGetLimit(std::size_t* value, int limit) {
  *value = 1024;
  return kOk;
}
EXPORT cudaError cudaProfilerStart() {
  return kOk;
}
EXPORT cudaError cudaProfilerStop() {
  return kOk;
}

namespace {

/// Where cudaDeviceProp has what PyTorch reads: name, uuid and sizes lie the same in CUDA 12 and 13, the rest moved.
/// The numbers are those that offsetof gives with the published headers.
struct Member {
  std::size_t offset_12, offset_13;
  int attribute;
};
constexpr std::size_t kStructBytes = CUDART_MAJOR == 12 ? 1032 : 1008;
constexpr std::size_t kUuidOffset = 256;
constexpr std::size_t kTotalOffset = 288;
constexpr std::array kInts = {
    Member{304, 304, 12},   // registers per block
    Member{308, 308, 10},   // warp
    Member{320, 320, 1},    // threads per block
    Member{324, 324, 2},    // block dimensions
    Member{328, 328, 3},    //
    Member{332, 332, 4},    //
    Member{336, 336, 5},    // grid dimensions
    Member{340, 340, 6},    //
    Member{344, 344, 7},    //
    Member{360, 360, 75},   // compute capability
    Member{364, 364, 76},   //
    Member{388, 384, 16},   // multiprocessors
    Member{396, 388, 18},   // integrated
    Member{400, 392, 19},   // maps host memory
    Member{576, 560, 31},   // concurrent kernels
    Member{584, 568, 33},   // PCI bus
    Member{604, 588, 41},   // unified addresses
    Member{616, 596, 38},   // L2 cache
    Member{624, 604, 39},   // threads per multiprocessor
    Member{648, 632, 82},   // registers per multiprocessor
    Member{712, 688, 106},  // blocks per multiprocessor
    Member{744, 720, 115}   // memory pools
};
constexpr std::array kSizes = {
    Member{296, 296, 8},   // shared memory per block
    Member{352, 352, 9},   // constant memory
    Member{368, 368, 14},  // alignment of textures
    Member{640, 624, 81},  // shared memory per multiprocessor
    Member{696, 672, 97}   // shared memory per block, by request
};

template <class T>
void put(char* properties, std::size_t offset, T value) {
  std::memcpy(properties + offset, &value, sizeof value);
}
std::size_t offset_of(const Member& member) {
  return CUDART_MAJOR == 12 ? member.offset_12 : member.offset_13;
}

}  // namespace

EXPORT cudaError cudaGetDeviceProperties(char* properties, int device) {
  if (const cudaError code = started(); code != kOk) return remember(code);
  if (!known_device(device)) return remember(kInvalidDevice);
  std::memset(properties, 0, kStructBytes);
  driver.cuDeviceGetName(properties, kUuidOffset, device);
  driver.cuDeviceGetUuid(reinterpret_cast<unsigned char*>(properties) + kUuidOffset, device);
  std::size_t total_bytes = 0;
  driver.cuDeviceTotalMem(&total_bytes, device);
  put(properties, kTotalOffset, total_bytes);
  int value = 0;
  for (const Member& member : kInts) {
    driver.cuDeviceGetAttribute(&value, member.attribute, device);
    put(properties, offset_of(member), value);
  }
  for (const Member& member : kSizes) {
    driver.cuDeviceGetAttribute(&value, member.attribute, device);
    put(properties, offset_of(member), static_cast<std::size_t>(value));
  }
  return kOk;
}
#if CUDART_MAJOR == 12
EXPORT cudaError cudaGetDeviceProperties_v2(char* properties, int device) {
  return cudaGetDeviceProperties(properties, device);
}
#endif

EXPORT cudaError cudaGetLastError() {
  const cudaError code = last_error;
  last_error = kOk;
  return code;
}
EXPORT cudaError cudaPeekAtLastError() {
  return last_error;
}
EXPORT const char* cudaGetErrorString(cudaError code) {
  switch (code) {
    case kOk:
      return "no error";
    case kInvalid:
      return "invalid argument";
    case kOutOfMemory:
      return "out of memory";
    case kDriverTooOld:
      return "CUDA driver version is insufficient for CUDA runtime version";
    case kNoDevice:
      return "no CUDA-capable device is detected";
    case kInvalidDevice:
      return "invalid device ordinal";
    case kNotSupported:
      return "operation not supported";
    default:
      return "an error of the fake CUDA";
  }
}
EXPORT const char* cudaGetErrorName(cudaError code) {
  switch (code) {
    case kOk:
      return "cudaSuccess";
    case kOutOfMemory:
      return "cudaErrorMemoryAllocation";
    case kNotSupported:
      return "cudaErrorNotSupported";
    default:
      return "cudaErrorOfTheFake";
  }
}

/// What a program asks of the driver itself.
EXPORT cudaError cudaGetDriverEntryPointByVersion(const char* name, void** out, unsigned version, std::uint64_t flags,
                                                  int* result) {
  if (const cudaError code = started(); code != kOk) return remember(code);
  int status = 1;
  driver.cuGetProcAddress_v2(name, out, static_cast<int>(version), flags, &status);
  if (result != nullptr) *result = status;
  return *out != nullptr ? cudaError{kOk} : remember(kNotFound);
}
EXPORT cudaError cudaGetDriverEntryPoint(const char* name, void** out, std::uint64_t flags, int* result) {
  return cudaGetDriverEntryPointByVersion(name, out, CUDART_MAJOR == 12 ? 12040 : 13000, flags, result);
}
EXPORT cudaError cudaGetDriverEntryPoint_ptsz(const char* name, void** out, std::uint64_t flags, int* result) {
  constexpr std::uint64_t kPerThreadStream = 2;
  return cudaGetDriverEntryPoint(name, out, flags | kPerThreadStream, result);
}
