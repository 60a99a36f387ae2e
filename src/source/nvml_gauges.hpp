// GaugeReader: one GPU's temperature, power, clock, fan and received bytes, and how busy each process keeps it.
#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <vector>

#include "core/gauges.hpp"
#include "core/time.hpp"
#include "source/nvml_library.hpp"

namespace vramtrack::nvml {

/// Time between two readings of one GPU's gauges: as often as a person can follow on a screen. A faster poll does not
/// read them more often.
inline constexpr std::chrono::seconds kGaugesEvery{2};
/// The power limit changes only when somebody sets it.
inline constexpr std::chrono::seconds kPowerLimitEvery{30};
/// The driver samples processes at least once per second. A value that it has not repeated for this long is outdated.
inline constexpr std::chrono::seconds kProcessHolds{5};

/// One per GPU and opening of the library. Not thread-safe.
class GaugeReader {
 public:
  GaugeReader() = default;
  /// `index`: the GPU's index, which spreads the readings of many GPUs over the polls.
  explicit GaugeReader(unsigned index) : spread_(index % kGaugesEvery.count()) {}

  /// Reads what is due; the other values stay. A call that the driver lacks, or that the GPU does not support, is not
  /// made again. Cost: up to seven calls every kGaugesEvery, otherwise none. In one of these calls, the thread sleeps
  /// for 20 ms. No allocation in the steady state.
  const DeviceGauges& read(NvmlLibrary& library, Device device, Timestamp now);

  /// Bytes per second that the GPU receives over its bus; nullopt if the last read() did not read it.
  [[nodiscard]] std::optional<double> received_bytes_per_s() const { return received_bytes_per_s_; }

  /// Share of time in which kernels of `pid` ran, 0..1, as of the last read(); nullopt if not reported.
  [[nodiscard]] std::optional<double> process_ratio(std::uint32_t pid) const;

 private:
  enum Call : std::size_t { temperature, power, power_limit, clock, fan, received, processes, kCalls };
  std::optional<double> answered(Call call, const Answer<unsigned>& answer, double unit);
  void read_processes(NvmlLibrary& library, Device device, Timestamp now);

  struct Busy {
    std::uint32_t pid = 0;
    double ratio = 0;
    std::uint64_t time_us = 0;
    Timestamp time;
  };
  std::chrono::seconds spread_{0};
  std::array<bool, kCalls> lacking_{};
  DeviceGauges gauges_;
  std::optional<double> received_bytes_per_s_;
  std::optional<Timestamp> read_;
  Timestamp next_{};
  Timestamp next_limit_ = Timestamp::min();
  std::vector<Busy> busy_;
  std::uint64_t last_seen_us_ = 0;
  std::vector<ProcessUtilization> samples_;  ///< scratch
};

}  // namespace vramtrack::nvml
