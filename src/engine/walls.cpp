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

void Walls::end(const SeriesState& series, const std::optional<MemoryWall>& at) {
  if (series.key.metric == Metric::process_used) walls_.erase(key_of(series.key));
  if (at) ended_[series.id] = *at;
}

const MemoryWall* Walls::at_end(SeriesId series) const {
  const auto known = ended_.find(series);
  return known == ended_.end() ? nullptr : &known->second;
}

bool Walls::has(const SeriesKey& process, const std::string& name) const {
  const auto known = walls_.find(key_of(process));
  return known != walls_.end() && known->second.contains(name);
}

std::optional<Walls::Nearest> Walls::of_recording(const SeriesState& s) const {
  const auto known = walls_.find({s.key.host, s.key.device_id, 0, 0});
  if (known == walls_.end()) return std::nullopt;
  // The allocator's memory counts; a device has more.
  const SeriesState* counted = &s;
  if (s.key.metric == Metric::device_used)
    for (const auto& [id, other] : s.device->series)
      if (other->key.metric == Metric::allocator_reserved ||
          (other->key.metric == Metric::allocator_allocated && counted == &s))
        counted = other;
  std::optional<Nearest> out;
  for (const auto& [name, bytes] : known->second) {
    const auto used_bytes = static_cast<double>(counted->last_bytes);
    Nearest one{.bytes = bytes, .used_bytes = used_bytes, .name = name};
    one.end_bytes = end_by_limit(static_cast<double>(s.last_bytes), bytes, used_bytes);
    if (!out || one.end_bytes < out->end_bytes) out = one;
  }
  return out;
}

std::optional<Walls::Nearest> Walls::nearest(const SeriesState& process) const {
  if (walls_.empty()) return std::nullopt;
  if (process.key.metric == Metric::device_used || is_of_allocator(process.key.metric)) return of_recording(process);
  if (process.key.metric != Metric::process_used) return std::nullopt;
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
