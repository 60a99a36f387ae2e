// PyTorch's blocks: c10 reports each block that an allocator hands out or takes back to a profiler, with a function
// that its libraries call through the symbol table, so that ours is called instead. It is called under the lock of the
// device's allocator, so nothing here waits, takes the GIL or calls CUDA. c10's function of the same name is called
// afterwards, so that torch.profiler still works.
//
//   signature                       releases (as found in wheels and Debian's packages)
//   (void*, long, Device)           1.6 to 1.9
//   (void*, long, long, long, ...)  1.10 to 1.13
//   (void*, long, size_t, size_t..) 2.0 and newer
#include <atomic>
#include <cstdint>

#include "probe/real.hpp"
#include "probe/recorder.hpp"
#include "probe/totals.hpp"

namespace vramtrack::probe {

/// c10::Device: two bytes, in a register.
struct TorchDevice {
  std::int8_t type;
  std::int8_t index;
};

namespace {

/// Whether the c10::DeviceType has its memory on a GPU. ROCm's builds report CUDA.
bool is_gpu(TorchDevice device) {
  constexpr std::int8_t kCuda = 1, kHip = 6, kXpu = 12;
  return device.type == kCuda || device.type == kHip || device.type == kXpu;
}

void report(void* block, std::int64_t bytes, TorchDevice device) {
  if (!is_gpu(device)) return;
  const auto address = reinterpret_cast<std::uint64_t>(block);
  if (bytes > 0)
    took_block(Call::torch_block, device.index, address, static_cast<std::uint64_t>(bytes));
  else if (bytes < 0)
    gave_back(Level::block, address);
}

void report(void* block, std::int64_t bytes, std::uint64_t allocated_bytes, std::uint64_t reserved_bytes,
            TorchDevice device) {
  report(block, bytes, device);
  if (is_gpu(device)) record_torch_totals(device.index, allocated_bytes, reserved_bytes);
}

void lacked(std::int64_t bytes, TorchDevice device) {
  if (is_gpu(device) && bytes > 0) lacked_block(Call::torch_block, device.index, static_cast<std::uint64_t>(bytes));
}

/// c10's own function, looked up once. Calls nothing if no other library defines it.
class Next {
 public:
  constexpr explicit Next(const char* name) : name_(name) {}
  template <class... Arguments>
  void call(Arguments... arguments) {
    void* function = function_.load(std::memory_order_acquire);
    if (function == nullptr) {
      function = find_function("libc10", name_);
      if (function == nullptr) function = kNone;
      function_.store(function, std::memory_order_release);
    }
    if (function != kNone) reinterpret_cast<void (*)(Arguments...)>(function)(arguments...);
  }

 private:
  inline static char none;
  static constexpr void* kNone = &none;
  const char* name_;
  std::atomic<void*> function_{nullptr};
};

}  // namespace
}  // namespace vramtrack::probe

using vramtrack::probe::TorchDevice;

// The names are those that a C++ compiler gives to c10's declarations.
#define VRAMTRACK_TORCH(name, symbol, ...)                                                  \
  extern "C" __attribute__((visibility("default"))) void name(__VA_ARGS__) __asm__(symbol); \
  static vramtrack::probe::Next next_##name{symbol};                                        \
  void name(__VA_ARGS__)

using vramtrack::probe::lacked;
using vramtrack::probe::report;

VRAMTRACK_TORCH(report_block, "_ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE", void* block, long bytes,
                TorchDevice device) {
  report(block, bytes, device);
  next_report_block.call(block, bytes, device);
}
VRAMTRACK_TORCH(report_block_signed, "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE", void* block, long bytes,
                long allocated_bytes, long reserved_bytes, TorchDevice device) {
  report(block, bytes, static_cast<unsigned long>(allocated_bytes), static_cast<unsigned long>(reserved_bytes), device);
  next_report_block_signed.call(block, bytes, allocated_bytes, reserved_bytes, device);
}
VRAMTRACK_TORCH(report_block_unsigned, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE", void* block, long bytes,
                unsigned long allocated_bytes, unsigned long reserved_bytes, TorchDevice device) {
  report(block, bytes, allocated_bytes, reserved_bytes, device);
  next_report_block_unsigned.call(block, bytes, allocated_bytes, reserved_bytes, device);
}

VRAMTRACK_TORCH(report_lack_signed, "_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE", long bytes,
                long allocated_bytes, long reserved_bytes, TorchDevice device) {
  lacked(static_cast<long>(bytes), device);
  next_report_lack_signed.call(bytes, allocated_bytes, reserved_bytes, device);
}
VRAMTRACK_TORCH(report_lack, "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE", long bytes,
                unsigned long allocated_bytes, unsigned long reserved_bytes, TorchDevice device) {
  lacked(static_cast<long>(bytes), device);
  next_report_lack.call(bytes, allocated_bytes, reserved_bytes, device);
}
VRAMTRACK_TORCH(report_lack_unsigned, "_ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE", unsigned long bytes,
                unsigned long allocated_bytes, unsigned long reserved_bytes, TorchDevice device) {
  lacked(static_cast<long>(bytes), device);
  next_report_lack_unsigned.call(bytes, allocated_bytes, reserved_bytes, device);
}
