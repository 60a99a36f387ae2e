#include "engine/still_holding.hpp"

#include <fmt/format.h>

#include "engine/device_state.hpp"

namespace vramtrack {
namespace {

constexpr double kEndsWithin_s = 60;  ///< a program that ends because of it has ended by then
constexpr double kStillShare = 0.5;   ///< of what it held when it ran out

}  // namespace

void StillHolding::take(const Event& event, const SeriesTable& table) {
  table.for_process({event.pid, event.pid_start_ticks, event.host}, [&](const SeriesState& s) {
    if (s.key.metric != Metric::process_used || s.ended || s.samples == 0) return;
    if (event.device_id.empty() || s.key.device_id == event.device_id) known_[s.id] = {event.time, s.last_bytes};
  });
}

std::optional<StillHolds> StillHolding::of(const SeriesState& process) const {
  const auto known = known_.find(process.id);
  if (known == known_.end() || process.ended) return std::nullopt;
  const Known& then = known->second;
  if (seconds_between(then.ran_out, process.last_time) < kEndsWithin_s) return std::nullopt;
  if (static_cast<double>(process.last_bytes) < kStillShare * static_cast<double>(then.held_bytes)) return std::nullopt;
  StillHolds out{then.ran_out, {}};
  const SeriesState* allocated = nullptr;
  const SeriesState* reserved = nullptr;
  for (const auto& [id, other] : process.device->series) {
    if (other->ended || process_key(other->key) != process_key(process.key)) continue;
    if (other->key.metric == Metric::allocator_allocated) allocated = other;
    if (other->key.metric == Metric::allocator_reserved) reserved = other;
  }
  if (allocated != nullptr && reserved != nullptr && reserved->last_bytes >= allocated->last_bytes)
    out.unused_bytes = reserved->last_bytes - allocated->last_bytes;
  return out;
}

std::string StillHolding::left_for(const SeriesState& process, const Catalog& catalog) const {
  for (const auto& [id, other] : process.device->series) {
    if (other->key.metric != Metric::process_used || process_key(other->key) == process_key(process.key)) continue;
    const auto holds = of(*other);
    if (!holds) continue;
    return fmt::format("; pid {}, whose memory had run out at {}, still held {} then", other->key.pid,
                       catalog.moment(holds->ran_out), catalog.scale.bytes(static_cast<double>(other->last_bytes)));
  }
  return {};
}

}  // namespace vramtrack
