#include "store/utilisation.hpp"

#include <algorithm>
#include <cmath>

namespace vramtrack {

Result<UtilisationWriter> UtilisationWriter::open(sql::Database& database) {
  auto put = database.prepare(
      "INSERT INTO utilisation SELECT id,?,? FROM series WHERE metric='device_used' AND device_id=? AND pid=0 "
      "ON CONFLICT(minute_s,series_id) DO UPDATE SET max_percent=max(max_percent,excluded.max_percent)");
  if (!put) return fail(put.error());
  return UtilisationWriter(std::move(*put));
}

void UtilisationWriter::collect(const DeviceReading& reading) {
  if (!reading.gpu_utilisation_ratio) return;
  const std::int64_t time_s = std::chrono::floor<std::chrono::seconds>(reading.time).time_since_epoch().count();
  const std::int64_t minute_s = time_s - ((time_s % 60) + 60) % 60;
  // Rounded up: a device that was a little busy was not idle.
  const int percent = static_cast<int>(std::ceil(std::clamp(*reading.gpu_utilisation_ratio, 0.0, 1.0) * 100));
  const auto [known, is_new] = latest_.try_emplace(reading.device_id, minute_s, percent);
  if (!is_new && known->second.first == minute_s && known->second.second >= percent) return;
  known->second = {minute_s, percent};
  int& most = waiting_[{minute_s, reading.device_id}];
  most = std::max(most, percent);
  if (waiting_.size() > kMostWaiting) waiting_.erase(waiting_.begin());
}

Status UtilisationWriter::write() {
  for (const auto& [at, percent] : waiting_) {
    put_.bind(1, at.first).bind(2, std::int64_t{percent}).bind(3, std::string_view(at.second));
    if (auto s = put_.run(); !s) return s;
  }
  return {};
}

}  // namespace vramtrack
