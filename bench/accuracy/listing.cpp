#include "listing.hpp"

#include <algorithm>
#include <utility>

namespace vramtrack::accuracy {

Batch Listing::pass(const Batch& batch) {
  if (trace_.alone) return own_device(batch);
  if (trace_.processes == ProcessLog::same || batch.samples.empty()) return batch;
  Batch out;
  const Timestamp now = batch.samples.front().time;
  for (Sample s : late_.samples) out.samples.push_back({std::min(s.time, now), s.series, s.bytes});
  for (Event e : late_.events) {
    e.time = std::min(e.time, now);
    out.events.push_back(std::move(e));
  }
  late_.clear();
  const bool lists = trace_.processes == ProcessLog::apart && ticks_++ % trace_.process_every == 0;
  const Timestamp at = now + from_seconds(trace_.process_phase * seconds_between(last_.value_or(now), now));
  last_ = now;
  for (const Sample& s : batch.samples) {
    if (catalog_.key(s.series).pid == 0)
      out.samples.push_back(s);
    else if (lists)
      late_.samples.push_back({at, s.series, s.bytes});
  }
  for (const Event& e : batch.events) (e.kind == Event::Kind::process_ended ? ended_ : out.events).push_back(e);
  if (!lists) return out;
  for (Event& e : ended_) {
    e.time = at;
    e.text.clear();
    late_.events.push_back(std::move(e));
  }
  ended_.clear();
  return out;
}

Batch Listing::own_device(const Batch& batch) const {
  const std::string& own = catalog_.devices()[trace_.label.device].id;
  Batch out;
  for (const Sample& s : batch.samples)
    if (catalog_.key(s.series).device_id == own) out.samples.push_back(s);
  for (const Event& e : batch.events)
    if (e.kind != Event::Kind::process_ended || !trace_.label.suspect_pid || e.pid == *trace_.label.suspect_pid)
      out.events.push_back(e);
  return out;
}

}  // namespace vramtrack::accuracy
