#include "top/gauges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace vramtrack::top {
namespace {

/// Checks an untrusted figure: it must be a finite number, and not so large that it would fill the screen.
std::optional<double> sane(const std::optional<double>& value, double most) {
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return std::clamp(*value, -most, most);
}

std::string figure(const std::optional<double>& value, double most, std::string_view unit) {
  const auto known = sane(value, most);
  return known ? fmt::format("{:.0f}{}", *known, unit) : std::string("-");
}

std::optional<double> per_cent(const std::optional<double>& ratio) {
  return ratio ? std::optional(*ratio * 100) : std::nullopt;
}

}  // namespace

std::optional<double> temperature_celsius(const SeriesView& device) {
  if (device.gauges.temperature_celsius) return device.gauges.temperature_celsius;
  return device.health ? device.health->temperature_celsius : std::nullopt;
}

bool has_gauges(const SeriesView& device) {
  return device.utilisation_ratio || temperature_celsius(device) || !(device.gauges == DeviceGauges{});
}

std::string percent_figure(const std::optional<double>& ratio) {
  return figure(per_cent(ratio), 9999, "");
}
std::string percent_or_dash(const std::optional<double>& ratio) {
  return figure(per_cent(ratio), 999, " %");
}

std::string temperature_words(const SeriesView& device) {
  return figure(temperature_celsius(device), 999, " °C");
}

Role temperature_role(const SeriesView& device) {
  if (!device.health || !device.health->throttle) return Role::plain;
  if (device.health->throttle->has(Throttle::thermal_hardware)) return Role::bad;
  return device.health->throttle->has(Throttle::thermal_software) ? Role::notice : Role::plain;
}

std::string power_words(const DeviceGauges& gauges) {
  if (!gauges.power_watts) return "-";
  if (!gauges.power_limit_watts) return figure(gauges.power_watts, 9999, " W");
  return figure(gauges.power_watts, 9999, "") + figure(gauges.power_limit_watts, 9999, " W").insert(0, "/");
}

std::optional<double> power_ratio(const DeviceGauges& gauges) {
  if (!gauges.power_watts || !gauges.power_limit_watts || !(*gauges.power_limit_watts > 0)) return std::nullopt;
  return *gauges.power_watts / *gauges.power_limit_watts;
}

void draw_ratio(Screen& screen, int x, int y, int width, const std::optional<double>& ratio, Role role) {
  const auto known = sane(ratio, 1);
  if (!known || width < 3) return;
  const int full = static_cast<int>(std::lround(std::max(0.0, *known) * width));
  for (int i = 0; i < width; ++i) screen.put(x + i, y, i < full ? U'█' : U'░', i < full ? role : Role::faint);
}

}  // namespace vramtrack::top
