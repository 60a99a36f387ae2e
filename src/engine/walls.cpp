#include "engine/walls.hpp"

#include "core/limit_end.hpp"
#include "engine/device_state.hpp"

namespace vramtrack {

void Walls::take(const Event& event) {
  const Key key{event.host, event.device_id, event.pid, event.pid_start_ticks};
  if (event.capacity_bytes > 0) {
    walls_[key][event.text] = static_cast<double>(event.capacity_bytes);
    return;
  }
  const auto known = walls_.find(key);
  if (known == walls_.end()) return;
  known->second.erase(event.text);
  if (known->second.empty()) walls_.erase(known);
}

bool Walls::has(const SeriesKey& process, const std::string& name) const {
  const auto known = walls_.find(key_of(process));
  return known != walls_.end() && known->second.contains(name);
}

std::optional<Walls::Nearest> Walls::nearest(const SeriesState& process) const {
  if (walls_.empty() || process.key.metric != Metric::process_used) return std::nullopt;
  const auto known = walls_.find(key_of(process.key));
  if (known == walls_.end()) return std::nullopt;
  std::optional<Nearest> out;
  for (const auto& [name, bytes] : known->second) {
    Nearest one{.bytes = bytes, .name = name};
    for (const auto& [id, other] : process.device->series) {
      if (other->ended || other->key.metric != Metric::process_used || !has(other->key, name)) continue;
      one.used_bytes += static_cast<double>(other->last_bytes);
      one.sharing.push_back(other);
    }
    one.end_bytes = end_by_limit(static_cast<double>(process.last_bytes), bytes, one.used_bytes);
    if (!out || one.end_bytes < out->end_bytes) out = one;
  }
  return out;
}

}  // namespace vramtrack
