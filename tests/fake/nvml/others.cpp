// What other programs ask of NVML and vramtrack does not, so that they can be run beside it (bench/agent.py peers).
#include <cstring>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {
constexpr int kSuccess = 0;
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
EXPORT int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 300000;
  return kSuccess;
}
EXPORT int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* milliwatts) {
  *milliwatts = 700000;
  return kSuccess;
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
