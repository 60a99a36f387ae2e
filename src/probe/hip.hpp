// What a hooked HIP allocation needs: the device, its name, the limit.
#pragma once

#include "probe/hip_api.hpp"
#include "probe/real.hpp"
#include "probe/recorder.hpp"

namespace vramtrack::probe::hip {

inline constexpr const char* kLibrary = "libamdhip64";

/// The calling thread's device. Records the device if it is new.
int current_device();
int device_or_current(int device);
bool is_out_of_memory(Error error);

/// `call(into)` allocates `bytes` at `*into`; `taken()` returns the actual size.
template <class Pointer, class Taken, class Function>
Error take(Call call, int device, std::uint64_t bytes, Pointer* into, std::uint8_t flags, Taken taken,
           Function function) {
  Hook hook(call);
  if (hook.passes()) return function();
  if (!hook.may_take(device, bytes)) return kOutOfMemory;
  const Error result = function();
  if (result == kSuccess && into != nullptr)
    hook.took(reinterpret_cast<std::uint64_t>(*into), taken(), flags);
  else
    hook.failed(is_out_of_memory(result));
  return result;
}

template <class Pointer, class Function>
Error take(Call call, int device, std::uint64_t bytes, Pointer* into, Function function) {
  return take(
      call, device, bytes, into, 0, [bytes] { return bytes; }, function);
}

/// `function()` frees the memory held at `memory`.
template <class Function>
Error give(void* memory, Function function) {
  const Holding holding = gave_back(Level::driver, reinterpret_cast<std::uint64_t>(memory));
  const Error result = function();
  if (result != kSuccess) holds_still(holding);
  return result;
}

}  // namespace vramtrack::probe::hip

/// Within the namespace: defines the program's `name`, which looks up the library's as `real`, and returns
/// kNotInitialized if there is none. The name is plain: a symbol without a version matches every version that a program
/// requests (hip_4.2 and later).
#define VRAMTRACK_HIP(name, parameters, ...)                                \
  extern "C" __attribute__((visibility("default"))) Error name parameters { \
    static constinit Real<Error parameters> function(kLibrary, #name);      \
    auto* const real = function.get();                                      \
    if (real == nullptr) return kNotInitialized;                            \
    __VA_ARGS__                                                             \
  }
