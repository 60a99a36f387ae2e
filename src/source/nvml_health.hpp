// HealthReader: one GPU's temperature, ECC counts and throttling, read occasionally.
#pragma once

#include <array>
#include <chrono>
#include <optional>

#include "core/health.hpp"
#include "source/nvml_library.hpp"

namespace vramtrack::nvml {

/// Time between two readings of one GPU's health. Some of the calls (the ECC counts) ask the GPU's own processor and
/// cost more than everything else in a poll, but their values change over minutes: made at every tenth poll, they stay
/// within the watch's budget.
inline constexpr std::chrono::seconds kHealthEvery{10};

/// Converts NVML's mask of reasons to a set.
ThrottleSet throttle_set(std::uint64_t clock_reasons);

/// One per GPU and opening of the library. Not thread-safe.
class HealthReader {
 public:
  HealthReader() = default;
  /// `index`: the GPU's index, which spreads the readings over the polls. `receives_xids`: whether XIDs are received.
  HealthReader(unsigned index, bool receives_xids)
      : spread_(index % kHealthEvery.count()), receives_xids_(receives_xids) {}

  /// The health at the first call and then every kHealthEvery; otherwise nullopt. A call that the driver lacks, or that
  /// the GPU does not support, is not made again, and its values stay unknown. After a failed call, they are unknown
  /// until the next reading. Also nullopt if nothing at all is reported. Cost: up to nine calls.
  std::optional<DeviceHealth> read(NvmlLibrary& library, Device device, Timestamp now);

 private:
  enum Call : std::size_t { temperature, reasons, ecc_mode, ecc_since_load, ecc_lifetime, rows, pages, kCalls };
  template <class T>
  std::optional<T> answered(Call call, const Answer<T>& answer);
  void read_ecc(NvmlLibrary& library, Device device, DeviceHealth& health);

  std::chrono::seconds spread_{0};
  bool receives_xids_ = false;
  std::array<bool, kCalls> lacking_{};
  std::optional<Timestamp> read_;
  Timestamp next_{};
};

}  // namespace vramtrack::nvml
