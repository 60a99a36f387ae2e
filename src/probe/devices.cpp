#include "probe/devices.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "probe/recorder.hpp"
#include "probe/self.hpp"

namespace vramtrack::probe {
namespace {

struct Device {
  char uuid[64] = {};
  char name[128] = {};
  std::uint64_t total_bytes = 0;
  bool is_known = false;
  std::atomic<bool> is_recorded{false};
};
Spin spin;
std::array<Device, kMostDevices> devices;

template <std::size_t kBytes>
void copy(char (&into)[kBytes], std::string_view text) {
  const std::size_t size = std::min(kBytes - 1, text.size());
  std::memcpy(into, text.data(), size);
  into[size] = '\0';
}

bool is_same(const Device& device, std::string_view uuid, std::string_view name, std::uint64_t total_bytes) {
  if (!device.is_known) return false;
  if (!uuid.empty()) return uuid.substr(0, sizeof device.uuid - 1) == device.uuid;
  return device.uuid[0] == '\0' && device.total_bytes == total_bytes &&
         name.substr(0, sizeof device.name - 1) == device.name;
}

}  // namespace

int number_of_device(std::string_view uuid, std::string_view name, std::uint64_t total_bytes) {
  const Locked locked(spin);
  int free = -1;
  for (int number = 0; number < static_cast<int>(kMostDevices); ++number) {
    const Device& device = devices[static_cast<std::size_t>(number)];
    if (is_same(device, uuid, name, total_bytes)) return number;
    if (!device.is_known && number >= kFirstNumbered && free < 0) free = number;
  }
  if (free < 0) return static_cast<int>(kMostDevices) - 1;  // beyond 16 devices without an ordinal, all are one
  Device& device = devices[static_cast<std::size_t>(free)];
  copy(device.uuid, uuid);
  copy(device.name, name);
  device.total_bytes = total_bytes;
  device.is_known = true;
  return free;
}

void record_numbered_device(int number) {
  if (number < kFirstNumbered || number >= static_cast<int>(kMostDevices)) return;
  Device& device = devices[static_cast<std::size_t>(number)];
  if (device.is_recorded.load(std::memory_order_relaxed) || !is_recording() || device.is_recorded.exchange(true))
    return;
  record_device(number, device.uuid, device.name, device.total_bytes);
}

void note_ordinal(int number, std::string_view uuid) {
  if (number < 0 || number >= kFirstNumbered) return;
  const Locked locked(spin);
  Device& device = devices[static_cast<std::size_t>(number)];
  copy(device.uuid, uuid);
  device.is_known = !uuid.empty();
}

void forget_recorded_devices() {
  spin.reset();
  for (Device& device : devices) device.is_recorded.store(false, std::memory_order_relaxed);
}

UuidText uuid_text(const std::uint8_t (&bytes)[16], bool is_nvidia) {
  constexpr char kDigits[] = "0123456789abcdef";
  UuidText uuid{};
  std::size_t at = 0;
  if (is_nvidia)
    for (const char c : {'G', 'P', 'U', '-'}) uuid.text[at++] = c;
  for (std::size_t i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) uuid.text[at++] = '-';
    uuid.text[at++] = kDigits[bytes[i] >> 4U];
    uuid.text[at++] = kDigits[bytes[i] & 0xfU];
  }
  return uuid;
}

}  // namespace vramtrack::probe
