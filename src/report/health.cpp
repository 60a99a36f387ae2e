#include "report/health.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/format.hpp"
#include "core/order.hpp"
#include "core/xid.hpp"

namespace vramtrack {
namespace {

constexpr double kXidCounts_s = 24 * 3600;

/// Errors of a program itself do not concern the GPU's health.
Condition xid_condition(std::uint64_t code) {
  const XidSeverity severity = xid_severity(code);
  if (severity == XidSeverity::info) return Condition::healthy;
  return severity == XidSeverity::critical ? Condition::failing : Condition::degraded;
}

std::string xid_text(const LastXid& xid) {
  return xid.text.empty() ? fmt::format("XID {}", xid.code) : printable(xid.text);
}

void judge_memory(const DeviceHealth& h, std::vector<HealthProblem>& problems) {
  if (h.repair_failed == true)
    problems.push_back({Condition::failing, "a defective memory row could not be replaced",
                        "take the GPU out of use; have it tested and replaced", "repair_failed"});
  if (h.ecc_since_load.uncorrected.value_or(0) > 0)
    problems.push_back(
        {Condition::failing,
         format_count(*h.ecc_since_load.uncorrected, "uncorrected memory error") + " since the driver was loaded",
         "do not trust results computed since then; reset the GPU (nvidia-smi --gpu-reset), and replace it if the "
         "errors come back",
         "memory_errors"});
  if (h.repair_pending == true)
    problems.push_back({Condition::degraded, "defective memory rows wait for a reset to be replaced by spare ones",
                        "stop the programs on the GPU and reset it (nvidia-smi --gpu-reset), or restart the machine",
                        "repair_pending"});
}

void judge_clocks(const DeviceHealth& h, std::vector<HealthProblem>& problems) {
  if (!h.throttle) return;
  const std::string at = h.temperature_celsius ? fmt::format(" at {:.0f} °C", *h.temperature_celsius) : std::string();
  if (h.throttle->has(Throttle::thermal_hardware))
    problems.push_back({Condition::degraded, "too hot: the hardware lowers the clocks" + at,
                        "check the fans and the air flow now", "thermal"});
  else if (h.throttle->has(Throttle::thermal_software))
    problems.push_back({Condition::degraded, "too warm: the driver lowers the clocks" + at,
                        "check the fans and the air flow", "thermal"});
  if (h.throttle->has(Throttle::power_brake))
    problems.push_back({Condition::degraded, "the hardware lowers the clocks because of the power supply",
                        "check the power supplies and their cables", "power"});
  if (h.throttle->has(Throttle::hardware_slowdown) && !h.throttle->has(Throttle::thermal_hardware) &&
      !h.throttle->has(Throttle::power_brake))
    problems.push_back({Condition::degraded, "the hardware lowers the clocks" + at,
                        "check cooling and power; nvidia-smi -q -d PERFORMANCE shows the reason", "slowdown"});
}

/// "power cap"
std::string_view throttle_words(Throttle reason) {
  constexpr std::array<std::string_view, 8> kWords = {
      "idle",          "clocks were set", "power cap",         "power brake",
      "heat (driver)", "heat (hardware)", "hardware slowdown", "other"};
  return kWords[static_cast<std::size_t>(reason)];
}

}  // namespace

std::string_view to_string(Condition condition) {
  constexpr std::array<std::string_view, 4> kNames = {"unknown", "healthy", "degraded", "failing"};
  return kNames[static_cast<std::size_t>(condition)];
}

HealthReport judge_health(const SeriesView& device, Timestamp now) {
  HealthReport report;
  if (device.health) {
    judge_memory(*device.health, report.problems);
    judge_clocks(*device.health, report.problems);
    // The absence of XIDs alone is not enough to call it healthy.
    const DeviceHealth& h = *device.health;
    if (h.temperature_celsius || h.ecc_enabled || h.throttle || h.repair_pending) report.condition = Condition::healthy;
  }
  if (device.last_xid && seconds_between(device.last_xid->time, now) < kXidCounts_s) {
    const Condition condition = xid_condition(device.last_xid->code);
    if (condition != Condition::healthy)
      report.problems.push_back(
          {condition, xid_text(*device.last_xid), std::string(xid_advice(device.last_xid->code)), "xid"});
  }
  order(report.problems, [](const HealthProblem& a, const HealthProblem& b) { return a.condition > b.condition; });
  if (!report.problems.empty()) report.condition = report.problems.front().condition;
  return report;
}

std::string health_words(const std::optional<DeviceHealth>& health) {
  if (!health) return "temperature, ECC and throttle not known";
  const DeviceHealth& h = *health;
  std::string out = h.temperature_celsius ? fmt::format("temperature {:.0f} °C", *h.temperature_celsius)
                                          : std::string("temperature not known");
  if (!h.ecc_enabled) {
    out += "; ECC not known";
  } else if (!*h.ecc_enabled) {
    out += "; ECC off";
  } else {
    const EccErrors& e = h.ecc_since_load;
    out += e.uncorrected ? fmt::format("; ECC on, {} uncorrected", *e.uncorrected) : "; ECC on, errors not known";
    if (e.corrected.value_or(0) > 0) out += fmt::format(", {} corrected", *e.corrected);
    if (h.ecc_lifetime.uncorrected.value_or(0) > e.uncorrected.value_or(0))
      out += fmt::format(", {} uncorrected over its lifetime", *h.ecc_lifetime.uncorrected);
  }
  if (h.remapped_rows.value_or(0) > 0) out += fmt::format("; {} replaced", format_count(*h.remapped_rows, "row"));
  if (!h.throttle) return out + "; throttle not known";
  std::string reasons;
  for (std::size_t i = 0; i < kThrottleNames.size(); ++i)
    if (h.throttle->has(static_cast<Throttle>(i)))
      reasons += (reasons.empty() ? "" : ", ") + std::string(throttle_words(static_cast<Throttle>(i)));
  return out + "; throttle: " + (reasons.empty() ? "none" : reasons);
}

std::string xid_words(const SeriesView& device, const std::function<std::string(Timestamp)>& clock) {
  if (device.last_xid) return fmt::format("last {}, at {}", xid_text(*device.last_xid), clock(device.last_xid->time));
  return device.health && device.health->hears_xids == true ? "no XID error seen" : "XID not known";
}

}  // namespace vramtrack
