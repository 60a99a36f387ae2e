#include "live/wall_rounds.hpp"

#include <fmt/format.h>

#include <optional>
#include <set>

#include "core/format.hpp"

namespace vramtrack {
namespace {

std::string bytes_words(std::uint64_t bytes) {
  return format_bytes(static_cast<double>(bytes));
}

}  // namespace

/// People are told once of a wall that several processes share, and of each time it moves.
void WallRounds::note(const SeriesKey& key, const std::string& name, std::uint64_t before, std::uint64_t now,
                      Timestamp time, Batch& batch) {
  std::uint64_t& told = told_[{key.device_id, name}];
  if (told == now) return;
  told = now;
  const DeviceInfo* device = catalog_->device(key.device_id);
  const std::string gpu = device != nullptr && device->index ? fmt::format("GPU {}", *device->index) : key.device_id;
  Event event;
  event.time = time;
  event.device_id = key.device_id;
  event.pid = key.pid;
  event.pid_start_ticks = key.pid_start_ticks;
  event.text = now == 0      ? fmt::format("{}: the limit of {} was lifted: {}", gpu, bytes_words(before), name)
               : before == 0 ? fmt::format("{}: memory of pid {} ends at {}: {}", gpu, key.pid, bytes_words(now), name)
                             : fmt::format("{}: memory of pid {} now ends at {} instead of {}: {}", gpu, key.pid,
                                           bytes_words(now), bytes_words(before), name);
  batch.events.push_back(std::move(event));
}

void WallRounds::compare(const SeriesKey& key, const ProcessInfo& process, const Limits& now, Timestamp time,
                         Batch& batch) {
  Limits& before = known_[{key.device_id, process.pid, process.start_ticks}];
  const auto tell = [&](const std::string& name, std::uint64_t old, std::uint64_t bytes) {
    Event event;
    event.time = time;
    event.kind = Event::Kind::capacity;
    event.device_id = key.device_id;
    event.pid = key.pid;
    event.pid_start_ticks = key.pid_start_ticks;
    event.text = name;
    event.capacity_bytes = bytes;
    batch.events.push_back(std::move(event));
    note(key, name, old, bytes, time, batch);
  };
  for (const auto& [name, bytes] : now) {
    const auto old = before.find(name);
    if (old == before.end() || old->second != bytes) tell(name, old == before.end() ? 0 : old->second, bytes);
  }
  for (const auto& [name, bytes] : before)
    if (!now.contains(name)) tell(name, bytes, 0);
  before = now;
}

void WallRounds::add(const Catalog& catalog, Timestamp now, Batch& batch) {
  // The clock may have been set back.
  if (now < next_ && now >= last_) return;
  last_ = now;
  next_ = now + from_seconds(kPace_s);
  catalog_ = &catalog;
  const std::vector<DeviceInfo> devices(catalog.devices().begin(), catalog.devices().end());
  std::map<std::uint32_t, std::uint64_t> living;
  std::map<std::uint32_t, std::vector<Wall>> walls;
  std::set<Process> seen;
  for (const Sample& sample : batch.samples) {
    const SeriesKey& key = catalog.key(sample.series);
    if (key.metric != Metric::process_used || key.pid == 0 || key.pid_start_ticks == 0 || !key.host.empty()) continue;
    const ProcessInfo* process = catalog.process(key.pid, key.pid_start_ticks);
    if (process == nullptr) continue;
    if (living.emplace(key.pid, key.pid_start_ticks).second) walls[key.pid] = reader_.read(*process, devices);
    Limits limits;
    for (const Wall& wall : walls[key.pid])
      if (wall.device_id == key.device_id) limits[wall.name] = wall.bytes;
    const Process which{key.device_id, key.pid, key.pid_start_ticks};
    seen.insert(which);
    if (!limits.empty() || known_.contains(which)) compare(key, *process, limits, now, batch);
  }
  std::erase_if(known_, [&seen](const auto& known) { return !seen.contains(known.first); });
  reader_.keep(living);
}

}  // namespace vramtrack
