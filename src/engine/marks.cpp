#include "engine/marks.hpp"

#include <algorithm>

#include "core/mark.hpp"

namespace vramtrack {

void Marks::take(const Event& event) {
  const auto mark = parse_mark(event.text);
  if (!mark) return;  // from a store that an older program wrote
  const auto& [name, number] = *mark;
  auto& names = known_[{event.pid, event.pid_start_ticks, event.host}];
  if (!names.contains(name) && names.size() >= kMostNames) return;
  Known& known = names[name];
  if (known.count++ == 0) known.first = event.time;
  known.last = number.value_or(known.last + 1);
  known.track.observe(event.time, static_cast<double>(known.last));
}

std::optional<MarkGrowth> Marks::growth_of(const SeriesState& process, const Finding& finding) const {
  const auto known = known_.find(process_key(process.key));
  if (known == known_.end() || process.key.metric != Metric::process_used) return std::nullopt;
  const auto most = std::max_element(known->second.begin(), known->second.end(),
                                     [](const auto& a, const auto& b) { return a.second.count < b.second.count; });
  const auto& [name, marks] = *most;
  MarkGrowth out{name, marks.last, 0};
  if (!grows(finding) || !finding.onset) return out;
  const Timestamp to = std::min(process.last_time, marks.track.last());
  // Marks may begin long after the growth: its rate is divided among those that there were.
  const Timestamp from = std::max(*finding.onset, marks.first);
  const auto since = marks.track.increase(from, to);
  if (!since || *since <= 0) return std::nullopt;
  out.bytes_per_mark = finding.growth_bytes_per_s.mid * seconds_between(from, to) / *since;
  return out;
}

}  // namespace vramtrack
