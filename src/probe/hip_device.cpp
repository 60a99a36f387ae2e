#include <algorithm>
#include <atomic>
#include <cstring>

#include "probe/devices.hpp"
#include "probe/hip.hpp"

namespace vramtrack::probe::hip {
namespace {

constinit Real<Error(int*)> get_device(kLibrary, "hipGetDevice");
constinit Real<Error(char*, int, int)> get_name(kLibrary, "hipDeviceGetName");
constinit Real<Error(std::size_t*, int)> get_total(kLibrary, "hipDeviceTotalMem");
constinit Real<Error(Uuid*, int)> get_uuid(kLibrary, "hipDeviceGetUuid");

/// One bit per ordinal.
std::atomic<std::uint32_t> recorded_devices{0};

void record_device_details(int device) {
  char name[128] = {};
  std::size_t total_bytes = 0;
  Uuid uuid{};
  if (auto* const ask = get_name.get()) ask(name, sizeof name - 1, device);
  if (auto* const ask = get_total.get()) ask(&total_bytes, device);
  std::uint8_t bytes[16] = {};
  bool has_uuid = false;
  if (auto* const ask = get_uuid.get()) has_uuid = ask(&uuid, device) == kSuccess;
  std::memcpy(bytes, uuid.bytes, sizeof bytes);
  record_device(device, has_uuid ? uuid_text(bytes, false).text : "", name, total_bytes);
}

}  // namespace

int device_or_current(int device) {
  if (device < 0)
    if (auto* const ask = get_device.get(); ask == nullptr || ask(&device) != kSuccess) return -1;
  if (device < 0 || device >= kFirstNumbered || !is_recording()) return device;
  const std::uint32_t bit = 1U << static_cast<unsigned>(device);
  if ((recorded_devices.load(std::memory_order_relaxed) & bit) == 0 && (recorded_devices.fetch_or(bit) & bit) == 0)
    record_device_details(device);
  return device;
}

int current_device() {
  return device_or_current(-1);
}

bool is_out_of_memory(Error error) {
  return error == kOutOfMemory;
}

}  // namespace vramtrack::probe::hip
