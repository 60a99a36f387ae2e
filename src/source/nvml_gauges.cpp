#include "source/nvml_gauges.hpp"

#include <algorithm>

namespace vramtrack::nvml {

std::optional<double> GaugeReader::answered(Call call, const Answer<unsigned>& answer, double unit) {
  if (answer) return answer.value * unit;
  if (answer.code == kNotSupported || answer.code == kFunctionNotFound) lacking_[call] = true;
  return std::nullopt;
}

const DeviceGauges& GaugeReader::read(NvmlLibrary& library, Device device, Timestamp now) {
  received_bytes_per_s_.reset();
  // The clock may have been set back.
  const bool set_back = read_ && now < *read_;
  if (read_ && now < next_ && !set_back) return gauges_;
  next_ = now + kGaugesEvery + (read_ ? std::chrono::seconds{0} : spread_);
  read_ = now;
  if (!lacking_[temperature])
    gauges_.temperature_celsius = answered(temperature, library.temperature_celsius(device), 1);
  if (!lacking_[power]) gauges_.power_watts = answered(power, library.power_milliwatts(device), 1e-3);
  if (!lacking_[power_limit] && (now >= next_limit_ || set_back)) {
    next_limit_ = now + kPowerLimitEvery;
    gauges_.power_limit_watts = answered(power_limit, library.power_limit_milliwatts(device), 1e-3);
  }
  if (!lacking_[clock]) gauges_.sm_clock_hertz = answered(clock, library.sm_clock_megahertz(device), 1e6);
  if (!lacking_[fan]) gauges_.fan_ratio = answered(fan, library.fan_percent(device), 1e-2);
  if (!lacking_[received]) received_bytes_per_s_ = answered(received, library.received_kilobytes_per_s(device), 1e3);
  if (!lacking_[processes]) read_processes(library, device, now);
  return gauges_;
}

void GaugeReader::read_processes(NvmlLibrary& library, Device device, Timestamp now) {
  const int code = library.process_utilization(device, last_seen_us_, samples_);
  if (code == kNotSupported || code == kFunctionNotFound) lacking_[processes] = true;
  for (const ProcessUtilization& sample : samples_) {
    // Some drivers return entries that were never filled in.
    if (sample.pid == 0 || sample.sm > 100 || sample.time_us == 0) continue;
    last_seen_us_ = std::max(last_seen_us_, sample.time_us);
    const auto known = std::find_if(busy_.begin(), busy_.end(), [&](const Busy& b) { return b.pid == sample.pid; });
    if (known == busy_.end())
      busy_.push_back({sample.pid, sample.sm / 100.0, sample.time_us, now});
    else if (sample.time_us >= known->time_us)
      *known = {sample.pid, sample.sm / 100.0, sample.time_us, now};
  }
  std::erase_if(busy_, [&](const Busy& b) { return now - b.time > kProcessHolds || now < b.time; });
}

std::optional<double> GaugeReader::process_ratio(std::uint32_t pid) const {
  const auto known = std::find_if(busy_.begin(), busy_.end(), [&](const Busy& b) { return b.pid == pid; });
  if (known == busy_.end()) return std::nullopt;
  return known->ratio;
}

}  // namespace vramtrack::nvml
