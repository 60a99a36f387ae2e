#include "report/trend.hpp"

#include <algorithm>

#include "core/limit_end.hpp"
#include "report/total.hpp"

namespace vramtrack {

std::optional<TrendLine> trend_line(const SeriesView& series) {
  const Finding& f = series.verdict.finding;
  if (!grows(f) || !f.onset || !series.last || !series.level_bytes || *f.onset >= *series.last) return std::nullopt;
  // The slope comes from the verdict, the level from the samples.
  const double rise = f.growth_bytes_per_s.mid * seconds_between(*f.onset, *series.last);
  if (rise == 0) return std::nullopt;
  return TrendLine{*f.onset, *series.last, *series.level_bytes - rise, *series.level_bytes};
}

std::optional<MemoryEnd> memory_end(const View& view, const SeriesView& series) {
  std::optional<MemoryEnd> out;
  const auto add_wall = [&](const SeriesView& of) {
    if (!of.wall || of.ended) return;
    const double end = end_by_limit(static_cast<double>(series.used_bytes), static_cast<double>(of.wall->bytes),
                                    static_cast<double>(of.wall->used_bytes));
    if (!out || end < out->bytes) out = {end, of.wall->name};
  };
  if (series.key.pid != 0) {
    add_wall(series);
    return out;
  }
  if (!is_total(series)) return std::nullopt;
  const Verdict& v = series.verdict;
  if (series.device.capacity_bytes) {
    double limit = static_cast<double>(*series.device.capacity_bytes);
    for (const SeriesView& s : view.series)
      if (s.key.metric == Metric::device_reserved && device_key(s.key) == device_key(series.key))
        limit -= static_cast<double>(s.used_bytes);
    out = {std::max(0.0, limit), {}};
  }
  add_wall(series);
  if (!out || !grows(v.finding) || !v.suspect || v.suspect->pid == 0) return out;
  for (const SeriesView& s : view.series)
    if (s.key.pid == v.suspect->pid && s.key.pid_start_ticks == v.suspect->pid_start_ticks &&
        device_key(s.key) == device_key(series.key) && grows(s.verdict.finding))
      add_wall(s);
  return out;
}

std::optional<double> limit_bytes(const View& view, const SeriesView& series) {
  const auto end = memory_end(view, series);
  return end ? std::optional(end->bytes) : std::nullopt;
}

}  // namespace vramtrack
