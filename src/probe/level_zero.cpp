// Defines Level Zero's functions for unified shared memory by name, loaded before libze_loader's. The prototypes are
// those of version 1 of the interface, which later versions keep, so building requires no headers.
#include <algorithm>
#include <cstdint>

#include "probe/devices.hpp"
#include "probe/real.hpp"
#include "probe/recorder.hpp"
#include "probe/table.hpp"

namespace vramtrack::probe::level_zero {
namespace {

using Result = int;
constexpr Result kSuccess = 0;
constexpr Result kOutOfHostMemory = 0x70000002;
constexpr Result kOutOfDeviceMemory = 0x70000003;
constexpr Result kUninitialized = 0x78000001;
using Context = void*;
using Device = void*;
constexpr const char* kLibrary = "libze_loader";

struct DeviceProperties {
  std::uint32_t structure = 3;
  void* next = nullptr;
  std::uint32_t type;
  std::uint32_t vendor_id;
  std::uint32_t device_id;
  std::uint32_t flags;
  std::uint32_t subdevice_id;
  std::uint32_t core_clock_mhz;
  std::uint64_t most_allocation_bytes;
  std::uint32_t hardware_contexts;
  std::uint32_t most_priority;
  std::uint32_t shape[5];  ///< threads, lanes, units, subslices, slices
  std::uint64_t timer_resolution;
  std::uint32_t timestamp_bits;
  std::uint32_t kernel_timestamp_bits;
  std::uint8_t uuid[16];
  char name[256];
};
struct MemoryProperties {
  std::uint32_t structure = 7;
  void* next = nullptr;
  std::uint32_t flags;
  std::uint32_t clock_mhz;
  std::uint32_t bus_bits;
  std::uint64_t total_bytes;
  char name[256];
};

constinit Real<Result(Device, DeviceProperties*)> properties_of(kLibrary, "zeDeviceGetProperties");
constinit Real<Result(Device, std::uint32_t*, MemoryProperties*)> memory_of(kLibrary, "zeDeviceGetMemoryProperties");
Table<int> numbers;
void forget_numbers() {
  numbers.reset();
}
VRAMTRACK_ON_FORK(forget_numbers);

int number_of(Device device) {
  int number = -1;
  if (!numbers.find(key_of(nullptr, device), number)) {
    DeviceProperties properties{};
    auto* const ask = properties_of.get();
    const bool is_known = ask != nullptr && ask(device, &properties) == kSuccess;
    MemoryProperties memories[8] = {};
    std::uint32_t count = 8;
    std::uint64_t total_bytes = 0;
    if (auto* const ask_memory = memory_of.get();
        ask_memory != nullptr && ask_memory(device, &count, memories) == kSuccess)
      for (std::uint32_t i = 0; i < std::min(count, 8U); ++i) total_bytes += memories[i].total_bytes;
    properties.name[sizeof properties.name - 1] = '\0';
    number = number_of_device(is_known ? uuid_text(properties.uuid, false).text : "",
                              is_known ? properties.name : "Level Zero device", total_bytes);
    numbers.put(key_of(nullptr, device), number);
  }
  record_numbered_device(number);
  return number;
}

template <class Function>
Result take(Call call, Device device, std::uint64_t bytes, void** into, Function function) {
  Hook hook(call);
  if (hook.passes()) return function();
  // Shared memory need not belong to a particular device.
  if (!hook.may_take(device == nullptr ? -1 : number_of(device), bytes)) return kOutOfDeviceMemory;
  const Result result = function();
  if (result == kSuccess)
    hook.took(reinterpret_cast<std::uint64_t>(*into), bytes);
  else
    hook.failed(result == kOutOfDeviceMemory || result == kOutOfHostMemory);
  return result;
}

template <class Function>
Result give(void* memory, Function function) {
  const Holding holding = gave_back(Level::driver, reinterpret_cast<std::uint64_t>(memory));
  const Result result = function();
  if (result != kSuccess) holds_still(holding);
  return result;
}

}  // namespace

#define VRAMTRACK_ZE(name, parameters, ...)                                  \
  extern "C" __attribute__((visibility("default"))) Result name parameters { \
    static constinit Real<Result parameters> function(kLibrary, #name);      \
    auto* const real = function.get();                                       \
    if (real == nullptr) return kUninitialized;                              \
    __VA_ARGS__                                                              \
  }

// clang-format off: one call, one paragraph

VRAMTRACK_ZE(zeMemAllocDevice,
             (Context context, const void* how, std::size_t bytes, std::size_t alignment, Device device, void** into),
             return take(Call::ze_mem_alloc_device, device, bytes, into,
                         [&] { return real(context, how, bytes, alignment, device, into); });)

VRAMTRACK_ZE(zeMemAllocShared,
             (Context context, const void* how, const void* how_on_host, std::size_t bytes, std::size_t alignment,
              Device device, void** into),
             return take(Call::ze_mem_alloc_shared, device, bytes, into,
                         [&] { return real(context, how, how_on_host, bytes, alignment, device, into); });)

VRAMTRACK_ZE(zeMemAllocHost, (Context context, const void* how, std::size_t bytes, std::size_t alignment, void** into),
             return take(Call::ze_mem_alloc_host, nullptr, bytes, into,
                         [&] { return real(context, how, bytes, alignment, into); });)

VRAMTRACK_ZE(zeMemFree, (Context context, void* memory), return give(memory, [&] { return real(context, memory); });)

// The call may free later, when the memory is no longer in use; for the program, it is freed now.
VRAMTRACK_ZE(zeMemFreeExt, (Context context, const void* how, void* memory),
             return give(memory, [&] { return real(context, how, memory); });)

// clang-format on

}  // namespace vramtrack::probe::level_zero
