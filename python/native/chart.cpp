// The chart of a verdict: the period report's, drawn from plain numbers.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "bindings.hpp"
#include "report/chart_svg.hpp"

namespace vramtrack::python {
namespace {

/// The narrowest gap that is left open is this share of the chart: narrower ones cannot be seen.
constexpr double kOpenGap = 0.05;

using Percentiles = std::tuple<double, double, double>;

/// `duration_s`, `alerts_s` and `onset_s` count from the first of `times_s`.
std::string draw(const std::vector<double>& times_s, const std::vector<double>& low_bytes,
                 const std::vector<double>& mean_bytes, const std::vector<double>& high_bytes, double duration_s,
                 double interval_s, bool clock_is_relative, std::optional<double> capacity_bytes,
                 const std::vector<double>& alerts_s, std::optional<double> onset_s,
                 std::optional<Percentiles> oom_in_s, double growth_bytes_per_s, std::string label) {
  const std::size_t n = times_s.size();
  if (low_bytes.size() != n || mean_bytes.size() != n || high_bytes.size() != n)
    throw nb::value_error("the columns of a chart differ in length");
  if (n < 2) return {};
  const auto moment = [&](double offset_s) { return Timestamp(from_seconds(times_s.front() + offset_s)); };
  ChartInput chart;
  for (std::size_t i = 0; i < n; ++i)
    chart.points.push_back({Timestamp(from_seconds(times_s[i])), low_bytes[i], mean_bytes[i], high_bytes[i]});
  chart.begin = chart.points.front().time;
  chart.last = std::max(chart.points.back().time, moment(duration_s));
  chart.step_s = std::max(interval_s, kOpenGap / 3 * seconds_between(chart.begin, chart.last));
  chart.clock_is_relative = clock_is_relative;
  chart.capacity_bytes = capacity_bytes;
  for (const double raised_s : alerts_s) chart.alerts.push_back(moment(raised_s));
  if (onset_s) chart.onset = moment(*onset_s);
  if (oom_in_s)
    chart.forecast =
        ChartForecast{{std::get<0>(*oom_in_s), std::get<1>(*oom_in_s), std::get<2>(*oom_in_s)}, growth_bytes_per_s};
  chart.label = std::move(label);
  return chart_svg(chart, ChartStyle::standalone);
}

}  // namespace

void add_chart(nb::module_& module) {
  module.def("chart_svg", &draw, nb::arg("times_s"), nb::arg("low_bytes"), nb::arg("mean_bytes"), nb::arg("high_bytes"),
             nb::kw_only(), nb::arg("duration_s"), nb::arg("interval_s"), nb::arg("clock_is_relative"),
             nb::arg("capacity_bytes").none(), nb::arg("alerts_s"), nb::arg("onset_s").none(),
             nb::arg("oom_in_s").none(), nb::arg("growth_bytes_per_s"), nb::arg("label"),
             "The chart as an SVG element; empty with fewer than two points.");
}

}  // namespace vramtrack::python
