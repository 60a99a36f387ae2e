#include "report/trend.hpp"

namespace vramtrack {

std::optional<TrendLine> trend_line(const SeriesView& series) {
  const Finding& f = series.verdict.finding;
  if (!grows(f) || !f.onset || !series.last || !series.level_bytes || *f.onset >= *series.last) return std::nullopt;
  // The slope is the verdict's, the level that of the samples.
  const double rise = f.growth_bytes_per_s.mid * seconds_between(*f.onset, *series.last);
  if (rise == 0) return std::nullopt;
  return TrendLine{*f.onset, *series.last, *series.level_bytes - rise, *series.level_bytes};
}

}  // namespace vramtrack
