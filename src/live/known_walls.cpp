#include "live/known_walls.hpp"

#include <algorithm>

#include "core/limit_end.hpp"

namespace vramtrack {

void KnownWalls::take(const Batch& batch) {
  for (const Event& event : batch.events) {
    if (event.kind != Event::Kind::capacity || event.pid == 0 || event.device_id == kHostMemory || !event.host.empty())
      continue;
    const Process which{event.device_id, event.pid, event.pid_start_ticks};
    if (event.capacity_bytes > 0)
      reported_[which][event.text] = event.capacity_bytes;
    else if (const auto known = reported_.find(which); known != reported_.end())
      known->second.erase(event.text);
  }
}

std::vector<Wall> KnownWalls::of(const ProcessInfo& process, const std::vector<DeviceInfo>& devices,
                                 const std::string& device_id) {
  const auto [read, is_new] = read_.try_emplace(process.pid);
  if (is_new) read->second = reader_.read(process, devices);
  std::vector<Wall> out = read->second;
  std::erase_if(out, [&device_id](const Wall& wall) { return wall.device_id != device_id; });
  if (const auto reported = reported_.find({device_id, process.pid, process.start_ticks}); reported != reported_.end())
    for (const auto& [name, bytes] : reported->second) out.push_back({device_id, bytes, name});
  return out;
}

void KnownWalls::keep(const std::map<std::uint32_t, std::uint64_t>& living) {
  reader_.keep(living);
  std::erase_if(reported_, [&living](const auto& reported) {
    const auto alive = living.find(std::get<1>(reported.first));
    return reported.second.empty() || alive == living.end() || alive->second != std::get<2>(reported.first);
  });
}

double used_of(const std::vector<Walled>& all, const std::string& wall) {
  double bytes = 0;
  for (const Walled& each : all)
    if (std::any_of(each.walls.begin(), each.walls.end(), [&wall](const Wall& w) { return w.name == wall; }))
      bytes += each.bytes;
  return bytes;
}

const Wall* nearest_wall(const Walled& process, const std::vector<Walled>& all) {
  const Wall* nearest = nullptr;
  double nearest_end = 0;
  for (const Wall& wall : process.walls) {
    const double end = end_by_limit(process.bytes, static_cast<double>(wall.bytes), used_of(all, wall.name));
    if (nearest != nullptr && end >= nearest_end) continue;
    nearest = &wall;
    nearest_end = end;
  }
  return nearest;
}

}  // namespace vramtrack
