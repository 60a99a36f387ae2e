#include "store/device_minutes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace vramtrack {
namespace {

/// More than any device reports: larger values are a driver's errors.
constexpr double kMostOfAnyGauge = 1e6;

std::optional<std::int64_t> whole(const std::optional<double>& figure, double unit) {
  if (!figure || !std::isfinite(*figure)) return std::nullopt;
  return std::llround(std::clamp(*figure / unit, -kMostOfAnyGauge, kMostOfAnyGauge));
}

}  // namespace

Result<DeviceMinuteWriter> DeviceMinuteWriter::open(sql::Database& database) {
  std::string raise;
  for (const char* column : {"max_busy_percent", "max_celsius", "max_watts", "max_sm_mhz"})  // max() of a NULL is NULL
    raise += fmt::format("{0}{1}=coalesce(max({1},excluded.{1}),{1},excluded.{1})", raise.empty() ? "" : ",", column);
  auto put = database.prepare(
      "INSERT INTO device_minute SELECT id,?,?,?,?,? FROM series WHERE metric='device_used' AND device_id=? AND pid=0 "
      "ON CONFLICT(minute_s,series_id) DO UPDATE SET " +
      raise);
  if (!put) return fail(put.error());
  return DeviceMinuteWriter(std::move(*put));
}

bool DeviceMinuteWriter::raise(Figures& into, const Figures& figures) {
  bool raised = false;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    if (!figures[i] || (into[i] && *into[i] >= *figures[i])) continue;
    into[i] = figures[i];
    raised = true;
  }
  return raised;
}

void DeviceMinuteWriter::collect(const DeviceReading& reading) {
  Figures figures = {std::nullopt, whole(reading.gauges.temperature_celsius, 1), whole(reading.gauges.power_watts, 1),
                     whole(reading.gauges.sm_clock_hertz, 1e6)};
  // Rounded up: a device that was a little busy was not idle.
  if (reading.gpu_utilisation_ratio)
    figures[0] = static_cast<std::int64_t>(std::ceil(std::clamp(*reading.gpu_utilisation_ratio, 0.0, 1.0) * 100));
  if (figures == Figures{}) return;
  const std::int64_t time_s = std::chrono::floor<std::chrono::seconds>(reading.time).time_since_epoch().count();
  const std::int64_t minute_s = time_s - ((time_s % 60) + 60) % 60;
  const auto [known, is_new] = latest_.try_emplace(reading.device_id, minute_s, Figures{});
  if (known->second.first != minute_s) known->second = {minute_s, {}};
  if (!raise(known->second.second, figures)) return;
  raise(waiting_[{minute_s, reading.device_id}], figures);
  if (waiting_.size() > kMostWaiting) waiting_.erase(waiting_.begin());
}

Status DeviceMinuteWriter::write() {
  for (const auto& [at, figures] : waiting_) {
    put_.bind(1, at.first).bind(6, std::string_view(at.second));
    for (std::size_t i = 0; i < figures.size(); ++i)
      if (figures[i]) put_.bind(static_cast<int>(i) + 2, *figures[i]);  // unbound parameters are NULL
    if (auto s = put_.run(); !s) return s;
  }
  return {};
}

}  // namespace vramtrack
