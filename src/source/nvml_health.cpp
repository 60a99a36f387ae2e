#include "source/nvml_health.hpp"

#include <utility>

namespace vramtrack::nvml {

ThrottleSet throttle_set(std::uint64_t clock_reasons) {
  constexpr std::array<std::pair<std::uint64_t, Throttle>, 7> kNamed = {{
      {kReasonIdle, Throttle::idle},
      {kReasonApplicationClocks, Throttle::clocks_setting},
      {kReasonPowerCap, Throttle::power_cap},
      {kReasonHardwareSlowdown, Throttle::hardware_slowdown},
      {kReasonThermalSoftware, Throttle::thermal_software},
      {kReasonThermalHardware, Throttle::thermal_hardware},
      {kReasonPowerBrake, Throttle::power_brake},
  }};
  ThrottleSet set;
  for (const auto& [bit, reason] : kNamed) {
    if ((clock_reasons & bit) != 0) set.add(reason);
    clock_reasons &= ~bit;
  }
  if (clock_reasons != 0) set.add(Throttle::other);
  return set;
}

template <class T>
std::optional<T> HealthReader::answered(Call call, const Answer<T>& answer) {
  if (answer) return answer.value;
  if (answer.code == kNotSupported || answer.code == kFunctionNotFound) lacking_[call] = true;
  return std::nullopt;
}

void HealthReader::read_ecc(NvmlLibrary& library, Device device, DeviceHealth& health) {
  if (!lacking_[ecc_mode]) health.ecc_enabled = answered(ecc_mode, library.ecc_enabled(device));
  // Without ECC there are no counters.
  if (health.ecc_enabled != false) {
    const auto count = [&](Call call, EccCounter counter, EccErrors& errors) {
      if (!lacking_[call]) errors.corrected = answered(call, library.ecc_errors(device, EccKind::corrected, counter));
      if (!lacking_[call])
        errors.uncorrected = answered(call, library.ecc_errors(device, EccKind::uncorrected, counter));
    };
    count(ecc_since_load, EccCounter::since_load, health.ecc_since_load);
    count(ecc_lifetime, EccCounter::lifetime, health.ecc_lifetime);
  }
  if (!lacking_[rows])
    if (const auto remaps = answered(rows, library.row_remaps(device))) {
      health.remapped_rows = std::uint64_t{remaps->corrected} + remaps->uncorrected;
      health.repair_pending = remaps->pending;
      health.repair_failed = remaps->failed;
    }
  // GPUs older than Ampere retire pages instead.
  if (lacking_[rows] && !lacking_[pages])
    health.repair_pending = answered(pages, library.page_retirement_pending(device));
}

std::optional<DeviceHealth> HealthReader::read(NvmlLibrary& library, Device device, Timestamp now) {
  // The clock may have been set back.
  if (read_ && now < next_ && now >= *read_) return std::nullopt;
  next_ = now + kHealthEvery + (read_ ? std::chrono::seconds{0} : spread_);
  read_ = now;
  DeviceHealth health;
  health.time = now;
  if (!lacking_[temperature])
    if (const auto celsius = answered(temperature, library.temperature_celsius(device)))
      health.temperature_celsius = *celsius;
  if (!lacking_[reasons])
    if (const auto mask = answered(reasons, library.clock_reasons(device))) health.throttle = throttle_set(*mask);
  read_ecc(library, device, health);
  DeviceHealth nothing;
  nothing.time = now;
  const bool has_figures = !(health == nothing);
  // It is significant that XIDs are not received only if the driver reports any health at all.
  if (!has_figures && !receives_xids_) return std::nullopt;
  health.hears_xids = receives_xids_;
  return health;
}

}  // namespace vramtrack::nvml
