// What other programs ask of NVML and vramtrack does not, so that they can be run beside it (bench/agent.py peers), or
// on the same fake driver (PyTorch).
#include <cstdio>
#include <cstring>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {
constexpr int kSuccess = 0;
constexpr int kInvalid = 2;
constexpr int kNotFound = 6;
constexpr int kTooSmall = 7;

int text(const char* what, char* out, unsigned length) {
  if (std::strlen(what) >= length) return kTooSmall;
  std::strcpy(out, what);
  return kSuccess;
}
}  // namespace

EXPORT int nvmlInit_v2();
EXPORT int nvmlDeviceGetCount_v2(unsigned* count);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** out);

EXPORT int nvmlDeviceGetUUID(void* device, char* out, unsigned length);
EXPORT int nvmlDeviceGetPciInfo_v2(void* device, void* pci);

EXPORT int nvmlInitWithFlags(unsigned) {
  return nvmlInit_v2();
}
EXPORT int nvmlSystemGetDriverVersion(char* out, unsigned length) {
  return text("fake", out, length);
}
EXPORT int nvmlSystemGetCudaDriverVersion(int* version) {
  *version = 12040;
  return kSuccess;
}
EXPORT int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return nvmlSystemGetCudaDriverVersion(version);
}
EXPORT int nvmlDeviceGetPerformanceState(void*, int* state) {
  *state = 0;
  return kSuccess;
}
EXPORT int nvmlDeviceGetIndex(void* device, unsigned* index) {
  unsigned count = 0;
  nvmlDeviceGetCount_v2(&count);
  for (*index = 0; *index < count; ++*index) {
    void* other = nullptr;
    if (nvmlDeviceGetHandleByIndex_v2(*index, &other) == kSuccess && other == device) return kSuccess;
  }
  return kNotFound;
}
EXPORT const char* nvmlErrorString(int code) {
  return code == kSuccess ? "Success" : "an error of the fake NVML";
}

namespace {

/// Calls `is_it` with each device until it says so.
template <class Predicate>
int find_device(void** out, Predicate is_it) {
  unsigned count = 0;
  nvmlDeviceGetCount_v2(&count);
  for (unsigned i = 0; i < count; ++i)
    if (nvmlDeviceGetHandleByIndex_v2(i, out) == kSuccess && is_it(*out)) return kSuccess;
  return kNotFound;
}

}  // namespace

EXPORT int nvmlDeviceGetHandleByUUID(const char* uuid, void** out) {
  return find_device(out, [uuid](void* device) {
    char text[96] = {};
    return nvmlDeviceGetUUID(device, text, sizeof text) == kSuccess && std::strcmp(text, uuid) == 0;
  });
}
/// "0000:1d:00.0" or "00000000:1D:00.0"
EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** out) {
  unsigned bus = 0;
  if (std::sscanf(id, "%*x:%x:", &bus) != 1) return kInvalid;
  return find_device(out, [bus](void* device) {
    char pci[68] = {};  // begins with the short form of the address
    unsigned its_bus = 0;
    return nvmlDeviceGetPciInfo_v2(device, pci) == kSuccess && std::sscanf(pci, "%*x:%x:", &its_bus) == 1 &&
           its_bus == bus;
  });
}
