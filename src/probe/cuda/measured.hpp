// How much device memory a call takes that does not report it: the difference of what the device has free.
#pragma once

#include "probe/cuda/cuda.hpp"

namespace vramtrack::probe::cuda {

/// From before a call to after it, in one thread. Two questions to the driver, some 10 us each.
class Measure {
 public:
  /// `device`: on which the call takes memory. Without a current context on it there is no answer.
  explicit Measure(int device);
  /// 0: nothing, or not known.
  [[nodiscard]] std::uint64_t taken_bytes() const;

 private:
  int device_;
  std::uint64_t free_before_;
  std::uint64_t held_before_;  ///< by this process, as it is recorded
};

/// One hooked call that makes `handle` and takes memory of unknown size for it: recorded if it took any. No limit
/// refuses it; it counts, so that the next allocation is refused.
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
