#include "report/trend.hpp"

#include <algorithm>

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

std::optional<double> limit_bytes(const View& view, const SeriesView& device) {
  if (!is_total(device) || !device.device.capacity_bytes) return std::nullopt;
  double limit = static_cast<double>(*device.device.capacity_bytes);
  for (const SeriesView& s : view.series)
    if (s.key.metric == Metric::device_reserved && device_key(s.key) == device_key(device.key))
      limit -= static_cast<double>(s.used_bytes);
  return std::max(0.0, limit);
}

}  // namespace vramtrack
