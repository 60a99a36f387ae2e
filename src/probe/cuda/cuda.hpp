// Common parts of the CUDA driver hooks: the driver types that they need (without NVIDIA's headers), the driver's own
// functions, and the sequence of one hooked call.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "probe/cuda/owners.hpp"
#include "probe/cuda/types.hpp"
#include "probe/recorder.hpp"

#define VRAMTRACK_CUDA_EXPORT extern "C" __attribute__((visibility("default")))

namespace vramtrack::probe::cuda {

inline constexpr CUresult kSuccess = 0, kOutOfMemory = 2, kNoDevice = 100, kNotFound = 500;
inline constexpr int kOnDevice = 1;  ///< CUmemLocation::type; others are the host and its NUMA nodes

/// Every name that a driver exports (symbols.txt), hooked or not.
enum class Symbol : std::uint32_t {
#define VRAMTRACK_CUDA_SYMBOL(name, number) name = number,
#define VRAMTRACK_CUDA_SPARE(name, number)
#include "cuda_symbols.inc"
#undef VRAMTRACK_CUDA_SPARE
#undef VRAMTRACK_CUDA_SYMBOL
};

/// Whether there is a driver: the one that VRAMTRACK_PROBE_DRIVER names or, without it, the one that the loader finds
/// in this process under `name`. Opens it.
bool has_driver(const char* name);
/// The driver's function; the driver is opened at the first call. Never nullptr: functions that the driver lacks return
/// CUDA_ERROR_NOT_FOUND, or CUDA_ERROR_NO_DEVICE without a driver. Any thread.
void* driver_function(Symbol symbol);
/// The same; nullptr if the driver does not have it.
void* driver_function_if_any(Symbol symbol);
/// From now on, `function`, returned by the driver's resolver, is the driver's function.
void remember_function(Symbol symbol, void* function);

/// The driver's own function with that name, which must be declared.
#define REAL(name)                      \
  (reinterpret_cast<decltype(::name)*>( \
      ::vramtrack::probe::cuda::driver_function(::vramtrack::probe::cuda::Symbol::name)))
#define REAL_IF_ANY(name)               \
  (reinterpret_cast<decltype(::name)*>( \
      ::vramtrack::probe::cuda::driver_function_if_any(::vramtrack::probe::cuda::Symbol::name)))

/// The device of the calling thread's context; -1 if it has none.
int current_device();
/// Free memory of the current device as reported by the driver; 0 if it reports none.
std::uint64_t free_bytes();
/// Records a device in the ring before its first record.
void introduce(int device);

/// Handles are not addresses: they get a separate range of the table.
inline constexpr std::uint64_t kHandle = 1ULL << 63U;

/// The result of an allocating call.
struct Taken {
  std::uint64_t address = 0, bytes = 0;
  std::uint8_t flags = 0;
};
/// Whether destroying the current context frees the memory.
enum class Life { of_context, of_device };

/// One hooked allocation of about `bytes` on `device` (-1: the host). Refuses it if a limit requires that, else runs
/// `call_driver`; `taken` returns the result.
template <class CallDriver, class TakenOf>
CUresult allocate(Call call, int device, std::uint64_t bytes, Life life, CallDriver call_driver, TakenOf taken_of) {
  Hook hook(call);
  if (hook.passes()) return call_driver();
  introduce(device);
  if (!hook.may_take(device, bytes)) return kOutOfMemory;
  const CUresult code = call_driver();
  if (code != kSuccess) {
    hook.failed(code == kOutOfMemory, code == kOutOfMemory ? free_bytes() : 0);
    return code;
  }
  const Taken taken = taken_of();
  if (taken.address == 0 || taken.bytes == 0) {
    hook.failed(false);
  } else {
    // Record the owner first: once in the table, memory may be freed with its context at any time.
    if (life == Life::of_context) own(taken.address, device < 0 ? current_device() : device, device < 0);
    hook.took(taken.address, taken.bytes, taken.flags);
  }
  return code;
}

/// One hooked free: recorded before the driver gets the address, and restored if the call fails.
template <class CallDriver>
CUresult release(std::uint64_t address, CallDriver call_driver) {
  const std::uint64_t owner = disown(address);
  const Holding held = gave_back(Level::driver, address);
  const CUresult code = call_driver();
  if (code != kSuccess) {
    own_again(address, owner);
    holds_still(held);
  }
  return code;
}

/// The bits of a handle's number that distinguish it from an address.
inline std::uint64_t key_of(const void* handle) {
  return reinterpret_cast<std::uint64_t>(handle) | kHandle;
}

}  // namespace vramtrack::probe::cuda
