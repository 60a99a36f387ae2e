#include "live/wall_rounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "core/format.hpp"
#include "core/limit_end.hpp"

namespace vramtrack {
namespace {

bool is_wall(const Event& event) {
  return event.kind == Event::Kind::capacity && event.pid != 0 && event.device_id != kHostMemory && event.host.empty();
}

std::string device_words(const DeviceInfo* device, const std::string& device_id) {
  return device != nullptr && device->index ? fmt::format("GPU {}", *device->index) : device_id;
}

/// The free memory of a device, by the samples of one poll; nullopt: unknown.
std::optional<double> free_bytes(const std::string& device_id, const Catalog& catalog, const Batch& batch) {
  const DeviceInfo* const device = catalog.device(device_id);
  if (device == nullptr || !device->capacity_bytes) return std::nullopt;
  std::optional<double> used;
  double reserved = 0;
  for (const Sample& sample : batch.samples) {
    const SeriesKey& key = catalog.key(sample.series);
    if (key.device_id != device_id || !key.host.empty()) continue;
    if (key.metric == Metric::device_used) used = static_cast<double>(sample.bytes);
    if (key.metric == Metric::device_reserved) reserved = static_cast<double>(sample.bytes);
  }
  if (!used) return std::nullopt;
  return std::max(0.0, static_cast<double>(*device->capacity_bytes) - reserved - *used);
}

}  // namespace

/// A replay begins with the capacity that a device had then, and follows it as the watch did.
void WallRounds::look_at_devices(const Catalog& catalog, Timestamp now, Batch& batch) {
  if (catalog.device_revision() == device_revision_) return;
  device_revision_ = catalog.device_revision();
  for (const DeviceInfo& device : catalog.devices()) {
    if (!device.host.empty() || !device.capacity_bytes) continue;
    std::uint64_t& reported = totals_[device.id];
    if (reported == *device.capacity_bytes) continue;
    const std::uint64_t before = std::exchange(reported, *device.capacity_bytes);
    Event moved{.time = now, .kind = Event::Kind::capacity, .device_id = device.id};
    moved.capacity_bytes = reported;
    batch.events.push_back(std::move(moved));
    if (before == 0) continue;
    Event note{.time = now, .kind = Event::Kind::note, .device_id = device.id};
    note.text = fmt::format("{}: its memory is now limited to {} instead of {}: the driver has adjusted the total",
                            device_words(&device, device.id), format_bytes(reported), format_bytes(before));
    batch.events.push_back(std::move(note));
  }
}

/// Reads where the memory of each process that has samples ends, and adds what no source has reported yet.
void WallRounds::look(const Catalog& catalog, Timestamp now, Batch& batch) {
  const std::vector<DeviceInfo> devices(catalog.devices().begin(), catalog.devices().end());
  std::set<std::pair<Process, std::string>> reported;
  for (const Event& event : batch.events)
    if (is_wall(event)) reported.insert({{event.device_id, event.pid, event.pid_start_ticks}, event.text});
  std::map<std::uint32_t, std::uint64_t> living;
  devices_.clear();
  walls_.look();
  std::vector<Event> events;
  for (const Sample& sample : batch.samples) {
    const SeriesKey& key = catalog.key(sample.series);
    if (key.metric != Metric::process_used || key.pid == 0 || key.pid_start_ticks == 0 || !key.host.empty()) continue;
    const ProcessInfo* const process = catalog.process(key.pid, key.pid_start_ticks);
    if (process == nullptr) continue;
    living.emplace(key.pid, key.pid_start_ticks);
    const Process which{key.device_id, key.pid, key.pid_start_ticks};
    Walled& walled = devices_[key.device_id][which];
    walled = {static_cast<double>(sample.bytes), walls_.of(*process, devices, key.device_id)};
    Limits limits;
    for (const Wall& wall : walled.walls) limits[wall.name] = wall.bytes;
    const auto known = known_.find(which);
    const Limits before = known == known_.end() ? Limits() : known->second;
    const auto add = [&](const std::string& name, std::uint64_t bytes) {
      if (reported.contains({which, name})) return;
      events.push_back(Event{.time = now,
                             .kind = Event::Kind::capacity,
                             .device_id = key.device_id,
                             .pid = key.pid,
                             .pid_start_ticks = key.pid_start_ticks,
                             .text = name,
                             .capacity_bytes = bytes});
    };
    for (const auto& [name, bytes] : limits)
      if (const auto old = before.find(name); old == before.end() || old->second != bytes) add(name, bytes);
    for (const auto& [name, bytes] : before)
      if (!limits.contains(name)) add(name, 0);
    known_[which] = std::move(limits);
  }
  std::erase_if(known_, [this](const auto& known) {
    const auto device = devices_.find(std::get<0>(known.first));
    return device == devices_.end() || !device->second.contains(known.first);
  });
  walls_.keep(living);
  batch.events.insert(batch.events.end(), events.begin(), events.end());
}

/// People are notified once of a wall that several processes share, and each time it moves: where memory ends for the
/// nearest wall, and of the level for the others.
void WallRounds::note(const Catalog& catalog, Timestamp now, Batch& batch) {
  struct Note {
    bool is_nearest = false;
    Event event;
  };
  std::vector<Note> notes;
  for (const Event& change : batch.events) {
    if (!is_wall(change)) continue;
    const auto device = devices_.find(change.device_id);
    if (device == devices_.end()) continue;
    const auto at = device->second.find({change.device_id, change.pid, change.pid_start_ticks});
    if (at == device->second.end()) continue;  // it has ended, and its limits with it
    std::uint64_t& reported = reported_[{change.device_id, change.text}];
    if (reported == change.capacity_bytes) continue;
    const std::uint64_t before = std::exchange(reported, change.capacity_bytes);
    std::vector<Walled> all;
    for (const auto& [process, walled] : device->second) all.push_back(walled);
    const Walled& its = at->second;
    const Wall* nearest = nearest_wall(its, all);
    const auto free = free_bytes(change.device_id, catalog, batch);
    if (nearest != nullptr && free &&
        end_by_limit(its.bytes, static_cast<double>(nearest->bytes), used_of(all, nearest->name)) > its.bytes + *free)
      nearest = nullptr;  // the GPU ends it
    const std::string gpu = device_words(catalog.device(change.device_id), change.device_id);
    const bool is_nearest = nearest != nullptr && nearest->name == change.text;
    const std::string size = format_bytes(change.capacity_bytes);
    std::string text;
    if (change.capacity_bytes == 0)
      text = fmt::format("{}: the limit of {} was lifted: {}", gpu, format_bytes(before), change.text);
    else if (is_nearest)
      text = before == 0
                 ? fmt::format("{}: the memory of pid {} is limited to {}: {}", gpu, change.pid, size, change.text)
                 : fmt::format("{}: the memory of pid {} is now limited to {} instead of {}: {}", gpu, change.pid, size,
                               format_bytes(before), change.text);
    else
      text = before == 0 ? fmt::format("{}: pid {} has a limit of {}: {}", gpu, change.pid, size, change.text)
                         : fmt::format("{}: the limit of pid {} is now {} instead of {}: {}", gpu, change.pid, size,
                                       format_bytes(before), change.text);
    if (!is_nearest && before != 0)
      text += nearest != nullptr
                  ? fmt::format("; its memory is limited to {}: {}", format_bytes(nearest->bytes), nearest->name)
                  : "; only the GPU's capacity limits it now";
    else if (!is_nearest && nearest == nullptr)
      text += "; the GPU's capacity is the closer limit";
    notes.push_back({is_nearest, Event{.time = now,
                                       .kind = Event::Kind::note,
                                       .device_id = change.device_id,
                                       .pid = change.pid,
                                       .pid_start_ticks = change.pid_start_ticks,
                                       .text = std::move(text)}});
  }
  std::stable_partition(notes.begin(), notes.end(), [](const Note& one) { return one.is_nearest; });
  for (Note& one : notes) batch.events.push_back(std::move(one.event));
}

void WallRounds::add(const Catalog& catalog, Timestamp now, Batch& batch) {
  look_at_devices(catalog, now, batch);
  walls_.take(batch);
  const bool is_reported = std::any_of(batch.events.begin(), batch.events.end(), is_wall);
  // The clock may have been set back.
  if (now < next_ && now >= last_ && !is_reported) return;
  last_ = now;
  next_ = now + from_seconds(kPace_s);
  look(catalog, now, batch);
  note(catalog, now, batch);
}

}  // namespace vramtrack
