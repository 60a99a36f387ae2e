// Devices and their primary contexts.
#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "../shared_state.hpp"
#include "driver.hpp"

using namespace fake_gpu;

namespace {

bool initialised = false;
std::array<Context, kMaxDevices> primary;
thread_local Context* current = nullptr;

/// CUDA cannot be used in a child of a process that used it.
void begin_child() {
  initialised = false;
  primary = {};
  current = nullptr;
}

bool known(int device) {
  return device >= 0 && device < device_count();
}

/// CUdevice_attribute of an H100; what is not listed is 0.
struct Attribute {
  int number, value;
};
constexpr int kPciBus = 33;
constexpr std::array kAttributes = {
    Attribute{1, 1024},       Attribute{2, 1024},      Attribute{3, 1024},    Attribute{4, 64},
    Attribute{5, 2147483647}, Attribute{6, 65535},     Attribute{7, 65535},   Attribute{8, 49152},
    Attribute{9, 65536},      Attribute{10, 32},       Attribute{12, 65536},  Attribute{13, 1785000},
    Attribute{14, 512},       Attribute{16, 132},      Attribute{19, 1},      Attribute{31, 1},
    Attribute{37, 5120},      Attribute{38, 50 << 20}, Attribute{39, 2048},   Attribute{40, 3},
    Attribute{41, 1},         Attribute{75, 9},        Attribute{76, 0},      Attribute{78, 1},
    Attribute{81, 233472},    Attribute{82, 65536},    Attribute{83, 1},      Attribute{89, 1},
    Attribute{91, 1},         Attribute{95, 1},        Attribute{97, 232448}, Attribute{99, 1},
    Attribute{102, 1},        Attribute{103, 1},       Attribute{106, 32},    Attribute{115, 1},
    Attribute{120, 1},        Attribute{125, 1}};

/// The caller holds driver_mutex().
void end_context(const Context& context) {
  free_memory_of(&context);
  SharedState::get().give_back(context.device, context.bytes);
}

/// At exit a process holds nothing. One that is killed is found by whoever looks next.
__attribute__((destructor)) void leave() {
  if (initialised) SharedState::get().leave();
}

}  // namespace

Context* fake_gpu::current_context() {
  return current;
}
Context* fake_gpu::primary_context(int device) {
  return &primary.at(static_cast<std::size_t>(device));
}

EXPORT CUresult cuInit(unsigned flags) {
  static const int registered = pthread_atfork(nullptr, nullptr, begin_child);
  if (registered != 0 || device_count() == 0) return kNoDevice;
  initialised = true;
  return kOk;
}
EXPORT CUresult cuDriverGetVersion(int* version) {
  *version = kCudaVersion;
  return kOk;
}
EXPORT CUresult cuDeviceGetCount(int* count) {
  *count = device_count();
  return initialised ? kOk : kNotInitialised;
}
EXPORT CUresult cuDeviceGet(int* device, int ordinal) {
  if (!initialised) return kNotInitialised;
  if (!known(ordinal)) return kInvalidDevice;
  *device = ordinal;
  return kOk;
}
EXPORT CUresult cuDeviceGetName(char* name, int length, int device) {
  std::snprintf(name, static_cast<std::size_t>(length), "Fake GPU");
  return kOk;
}
EXPORT CUresult cuDeviceTotalMem_v2(std::size_t* bytes, int device) {
  *bytes = device_bytes(device);
  return kOk;
}
EXPORT CUresult cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  std::ranges::copy(device_uuid(device), uuid);
  return kOk;
}
EXPORT CUresult cuDeviceGetUuid(unsigned char* uuid, int device) {
  return cuDeviceGetUuid_v2(uuid, device);
}
EXPORT CUresult cuDeviceGetPCIBusId(char* id, int length, int device) {
  std::snprintf(id, static_cast<std::size_t>(length), "0000:%02x:00.0", static_cast<unsigned>(kFirstBus + device));
  return kOk;
}
EXPORT CUresult cuDeviceGetByPCIBusId(int* device, const char* id) {
  unsigned bus = 0;
  if (std::sscanf(id, "%*x:%x:", &bus) != 1 || !known(static_cast<int>(bus) - kFirstBus)) return kInvalidDevice;
  *device = static_cast<int>(bus) - kFirstBus;
  return kOk;
}
EXPORT CUresult cuDeviceCanAccessPeer(int* can, int device, int peer) {
  *can = device != peer ? 1 : 0;
  return kOk;
}
EXPORT CUresult cuDeviceGetAttribute(int* value, int number, int device) {
  const auto* found = std::ranges::find(kAttributes, number, &Attribute::number);
  *value = found != kAttributes.end() ? found->value : 0;
  if (number == kPciBus) *value = kFirstBus + device;
  return kOk;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(Context** out, int device) {
  if (!initialised) return kNotInitialised;
  if (!known(device)) return kInvalidDevice;
  const std::lock_guard<std::mutex> held(driver_mutex());
  Context& context = *primary_context(device);
  if (context.retained == 0) {
    const CUresult code = SharedState::get().charge(device, context_bytes()) ? kOk : kOutOfMemory;
    trace("context", device, 0, context_bytes(), code);
    if (code != kOk) return code;
    context = {device, context_bytes(), 0};
  }
  ++context.retained;
  *out = &context;
  return kOk;
}
EXPORT CUresult cuDevicePrimaryCtxRelease_v2(int device) {
  const std::lock_guard<std::mutex> held(driver_mutex());
  Context& context = *primary_context(device);
  if (context.retained > 0 && --context.retained == 0) end_context(context);
  return kOk;
}
EXPORT CUresult cuDevicePrimaryCtxReset_v2(int device) {
  const std::lock_guard<std::mutex> held(driver_mutex());
  Context& context = *primary_context(device);
  if (context.retained > 0) end_context(context);
  context.retained = 0;
  return kOk;
}
EXPORT CUresult cuCtxCreate_v2(Context** out, unsigned flags, int device) {
  if (!initialised) return kNotInitialised;
  if (!known(device)) return kInvalidDevice;
  const std::lock_guard<std::mutex> held(driver_mutex());
  const CUresult code = SharedState::get().charge(device, context_bytes()) ? kOk : kOutOfMemory;
  trace("context", device, 0, context_bytes(), code);
  if (code == kOk) *out = current = new Context{device, context_bytes(), 1};  // never freed: it may be named later
  return code;
}
EXPORT CUresult cuCtxCreate_v4(Context** out, void* parameters, unsigned flags, int device) {
  return cuCtxCreate_v2(out, flags, device);
}
EXPORT CUresult cuCtxDestroy_v2(Context* context) {
  if (context == nullptr || context->retained == 0) return kInvalidContext;
  const std::lock_guard<std::mutex> held(driver_mutex());
  context->retained = 0;
  end_context(*context);
  if (current == context) current = nullptr;
  return kOk;
}
EXPORT CUresult cuCtxAttach(Context** out, unsigned flags) {
  if (current == nullptr) return kInvalidContext;
  ++current->retained;
  *out = current;
  return kOk;
}
EXPORT CUresult cuCtxDetach(Context* context) {
  if (context == nullptr || context->retained == 0) return kInvalidContext;
  const std::lock_guard<std::mutex> held(driver_mutex());
  if (--context->retained > 0) return kOk;
  end_context(*context);
  if (current == context) current = nullptr;
  return kOk;
}
EXPORT CUresult cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  if (flags != nullptr) *flags = 0;
  *active = primary_context(device)->retained != 0 ? 1 : 0;
  return kOk;
}
EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags) {
  return kOk;
}
EXPORT CUresult cuCtxGetCurrent(Context** context) {
  *context = current;
  return kOk;
}
EXPORT CUresult cuCtxSetCurrent(Context* context) {
  current = context;
  return kOk;
}
EXPORT CUresult cuCtxPushCurrent_v2(Context* context) {
  current = context;
  return kOk;
}
EXPORT CUresult cuCtxPopCurrent_v2(Context** context) {
  if (context != nullptr) *context = current;
  return kOk;
}
EXPORT CUresult cuCtxGetDevice(int* device) {
  if (current == nullptr) return kInvalidContext;
  *device = current->device;
  return kOk;
}
EXPORT CUresult cuCtxGetDevice_v2(int* device, Context* context) {
  if (context == nullptr) return cuCtxGetDevice(device);
  *device = context->device;
  return kOk;
}
EXPORT CUresult cuCtxSynchronize() {
  return current != nullptr ? kOk : kInvalidContext;
}
EXPORT CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return kOk;
}
EXPORT CUresult cuCtxGetApiVersion(Context* context, unsigned* version) {
  *version = 3020;
  return kOk;
}
EXPORT CUresult cuCtxEnablePeerAccess(Context* context, unsigned flags) {
  return kOk;
}
EXPORT CUresult cuCtxGetLimit(std::size_t* value, int limit) {
  *value = 1024;
  return kOk;
}
EXPORT CUresult cuCtxSetLimit(int limit, std::size_t value) {
  return kOk;
}
