// The chart of one series of the period report.
#include <algorithm>

#include "period/document.hpp"
#include "report/chart_svg.hpp"

namespace vramtrack {

std::string report_svg(const PeriodReport& report, const PeriodSeries& s) {
  if (s.history.empty()) return {};
  ChartInput chart;
  for (const HistoryPoint& p : s.history)
    chart.points.push_back({p.start, static_cast<double>(p.min), p.mean, static_cast<double>(p.max)});
  chart.begin = std::min(report.first.value_or(s.history.front().start), s.history.front().start);
  chart.last = std::max(report.last.value_or(s.history.back().start), s.history.back().start);
  chart.step_s = std::max(report.bucket_s, s.view.interval_s);
  chart.clock_is_relative = report.clock_is_relative;
  chart.scale = report.scale;
  if (s.view.key.pid == 0 && s.view.device.capacity_bytes.value_or(0) > 0)
    chart.capacity_bytes = static_cast<double>(*s.view.device.capacity_bytes);
  if (auto end = memory_end(view_of(report), s.view); end && !end->wall.empty()) chart.wall = std::move(end);
  for (const PeriodAlert& a : s.alerts) chart.alerts.push_back(a.alert.raised);
  const Finding& f = s.view.verdict.finding;
  if (f.leak) chart.onset = f.onset;
  if (!chart.onset && s.view.verdict.end) chart.onset = s.view.verdict.end->onset;
  if (f.leak && f.oom_in_s) chart.forecast = ChartForecast{*f.oom_in_s, f.growth_bytes_per_s.mid};
  return chart_svg(chart, ChartStyle::of_page);
}

}  // namespace vramtrack
