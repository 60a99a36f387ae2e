#include "settings.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace fake_gpu {

std::uint64_t setting(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 10) : otherwise;
}

int device_count() {
  return static_cast<int>(std::min<std::uint64_t>(setting("VRAMTRACK_FAKE_GPU_DEVICES", 1), kMaxDevices));
}

std::uint64_t device_bytes(int device) {
  std::uint64_t mib = 8192;
  const char* text = std::getenv("VRAMTRACK_FAKE_GPU_MIB");
  for (int i = 0; text != nullptr && *text != '\0' && i <= device; ++i) {
    char* rest = nullptr;
    mib = std::strtoull(text, &rest, 10);
    text = *rest == ',' ? rest + 1 : nullptr;
  }
  return mib * kMib;
}

std::uint64_t context_bytes() {
  return setting("VRAMTRACK_FAKE_GPU_CONTEXT_MIB", 300) * kMib;
}

std::uint64_t module_bytes() {
  return setting("VRAMTRACK_FAKE_GPU_MODULE_MIB", 0) * kMib;
}

std::uint64_t graph_bytes() {
  return setting("VRAMTRACK_FAKE_GPU_GRAPH_MIB", 0) * kMib;
}

std::array<unsigned char, 16> device_uuid(int device) {
  std::array<unsigned char, 16> uuid{};
  for (int i = 0; i < 16; ++i)
    uuid.at(static_cast<std::size_t>(i)) = static_cast<unsigned char>(0xa0 + i + 16 * device);
  return uuid;
}

std::string device_uuid_text(int device) {
  std::string text = "GPU-";
  int written = 0;
  for (const unsigned char byte : device_uuid(device)) {
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", byte);
    text += digits.data();
    if (++written == 4 || written == 6 || written == 8 || written == 10) text += '-';
  }
  return text;
}

}  // namespace fake_gpu
