#include "live/health_history.hpp"

#include <fmt/format.h>

#include <utility>

namespace vramtrack {
namespace {

constexpr double kStands_s = 60;

}  // namespace

void HealthHistory::add(const Catalog& catalog, Batch& batch) {
  for (const DeviceReading& reading : batch.readings) {
    if (!reading.health) continue;
    SeriesView device;
    device.key.device_id = reading.device_id;
    device.health = reading.health;
    const HealthReport report = judge_health(device, reading.time);
    if (report.condition == Condition::unknown) continue;
    Known& known = devices_.try_emplace(reading.device_id, Known{.since = reading.time}).first->second;
    if (std::exchange(known.seen, report.condition) != report.condition) known.since = reading.time;
    const bool is_sure = known.seen == Condition::failing || seconds_between(known.since, reading.time) >= kStands_s;
    if (known.seen == known.reported || !is_sure) continue;
    known.reported = known.seen;
    std::string name = reading.device_id;
    if (const DeviceInfo* info = catalog.device({reading.device_id, reading.host}); info != nullptr && info->index)
      name = fmt::format("{}", *info->index);
    std::string text = fmt::format("GPU {}: health {}", name, to_string(report.condition));
    if (!report.problems.empty())
      text += fmt::format(": {}; {}", report.problems.front().text, report.problems.front().next);
    batch.events.push_back(Event{
        .time = reading.time, .kind = Event::Kind::note, .device_id = reading.device_id, .text = std::move(text)});
  }
}

}  // namespace vramtrack
