// What the allocator reports: how much of a process's memory is in live tensors, and how much the framework's allocator
// only keeps (docs/design/0017-siblings.md).
#include <fmt/format.h>

#include <algorithm>

#include "engine/engine_core.hpp"

namespace vramtrack {
namespace {

/// The allocator explains a growth if its reserved memory grows at no less than this share of the growth's rate.
constexpr double kExplains = 0.5;
/// Live memory stands still if it grows at less than this share of the rate of reserved memory.
constexpr double kStandsStill = 0.25;

/// Mean rate of the floor over a growth, from its first quarter to its last; nullopt if not all of it was seen.
std::optional<double> floor_rate(const SeriesState& s, Timestamp onset, Timestamp now) {
  const double duration_s = seconds_between(onset, now);
  if (!s.floors || !(duration_s > 0)) return std::nullopt;
  const std::size_t level = FloorCurve::level_for(duration_s);
  const Duration quarter = from_seconds(duration_s / 4);
  const auto then = s.floors->floor_between(level, onset, onset + quarter);
  const auto last = s.floors->floor_between(level, now - quarter, now);
  if (!then || !last) return std::nullopt;
  return (*last - *then) / (0.75 * duration_s);
}

}  // namespace

/// The allocator's series for the process of `s` on its device; for a device, those of its only process that has any.
Engine::Core::Allocator Engine::Core::allocator_of(const SeriesState& s) const {
  Allocator found;
  if (!knows_allocators) return found;
  bool several = false;
  const auto look = [&](const SeriesState& other) {
    if (other.ended || !other.detector || other.key.device_id != s.key.device_id) return;
    if (!is_of_device(s.key.metric) && process_key(other.key) != process_key(s.key)) return;
    const SeriesState** const into = other.key.metric == Metric::allocator_allocated  ? &found.allocated
                                     : other.key.metric == Metric::allocator_reserved ? &found.reserved
                                                                                      : nullptr;
    if (into == nullptr) return;
    several |= *into != nullptr;
    *into = &other;
  };
  if (s.key.pid != 0)
    series.for_process(process_key(s.key), look);
  else
    series.for_device(device_key(s.key), look);
  return several ? Allocator{} : found;
}

/// Whether an alert about allocated memory of the process stands.
bool Engine::Core::live_memory_leaks(const SeriesState& s) const {
  const Allocator allocator = allocator_of(s);
  return allocator.allocated != nullptr && allocator.allocated->leaks();
}

/// The alert or the suspicion about allocated memory was raised or has ended: decides its process again.
void Engine::Core::allocator_changes(const SeriesState& allocated) {
  const auto again = [&](SeriesState& s) {
    if (s.id == allocated.id || s.ended || is_of_device(s.key.metric)) return;
    if (s.key.device_id != allocated.key.device_id || process_key(s.key) != process_key(allocated.key)) return;
    s.reviewed.reset();
    queue(s);
  };
  if (allocated.key.pid != 0)
    series.for_process(process_key(allocated.key), again);
  else
    series.for_device(device_key(allocated.key), again);
}

/// If live memory grows, that is the leak. If only reserved memory grows, that is cache or fragmentation, and what the
/// process and its device hold grows with it.
void Engine::Core::leave_to_allocator(const SeriesState& s, Explained& v) const {
  const bool total_alone = s.key.metric == Metric::device_used && !knows_parts(s);
  if (s.key.metric != Metric::allocator_reserved && s.key.metric != Metric::process_used && !total_alone) return;
  const Allocator allocator = allocator_of(s);
  if (!allocator.known() || !s.detector) return;
  Finding& f = v.finding;
  if (allocator.allocated->leaks() && !total_alone && !s.ignored) {
    const Finding its = allocator.allocated->detector->finding();
    if (!f.leak && s.key.metric == Metric::allocator_reserved) return;
    if (!f.leak) f = its;
    f.confidence = std::max(f.confidence, its.confidence);
    f.because = "live memory grows, according to the framework's allocator: " + its.because;
    return;
  }
  if (f.stage == Stage::none && !grows(f)) return;
  if (!f.onset || !(f.growth_bytes_per_s.mid > 0)) return;
  const auto live = floor_rate(*allocator.allocated, *f.onset, s.last_time);
  const auto kept = floor_rate(*allocator.reserved, *f.onset, s.last_time);
  if (!live || !kept || *kept < kExplains * f.growth_bytes_per_s.mid || *live > kStandsStill * *kept) return;
  const Finding its = allocator.allocated->detector->finding();
  const double span_s = seconds_between(*f.onset, s.last_time);
  f.leak = false;
  f.stage = Stage::none;
  f.state = State::growing;
  f.pattern = Pattern::none;
  if (f.oom_in_s) f.oom_if_growth_continues_s = f.oom_in_s->mid;
  f.oom_in_s.reset();
  f.confidence = std::min(f.confidence, its.confidence);
  f.because = fmt::format(
      "cache or fragmentation, not a leak: what the framework's allocator reserves grew by about {} in {}, while live "
      "memory {}; {}",
      scale.bytes(*kept * span_s), scale.span(span_s),
      *live > 0 ? "grew by " + scale.bytes(*live * span_s) : std::string("did not grow"), f.because);
}

}  // namespace vramtrack
