// Measures the device memory taken by a call that does not report it: the decrease of the device's free memory.
#pragma once

#include "probe/cuda/cuda.hpp"

namespace vramtrack::probe::cuda {

/// Lives from before a call until after it, in one thread. Queries the driver twice, some 10 us each.
class Measure {
 public:
  /// `device`: the device on which the call takes memory. It needs a current context there.
  explicit Measure(int device);
  /// The bytes taken; 0: none, or unknown.
  [[nodiscard]] std::uint64_t taken_bytes() const;

 private:
  int device_;
  std::uint64_t free_before_;
  std::uint64_t held_before_;  ///< held by this process, as recorded
};

/// One hooked call that creates `handle` and takes an unknown amount of memory for it: recorded if it took any. No
/// limit refuses it, but it counts, so the next allocation is refused.
template <class CallDriver>
CUresult take_measured(Call call, int device, Life life, void** handle, CallDriver call_driver) {
  Hook hook(call);
  if (hook.passes() || device < 0) return call_driver();
  const Measure measure(device);
  const CUresult code = call_driver();
  const std::uint64_t bytes = code == kSuccess && handle != nullptr ? measure.taken_bytes() : 0;
  if (bytes == 0) return code;
  introduce(device);
  if (life == Life::of_context) own(key_of(*handle), device, false);
  hook.took_unasked(device, key_of(*handle), bytes, kEstimated);
  return code;
}

}  // namespace vramtrack::probe::cuda
