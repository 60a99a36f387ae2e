#include "report/chart_svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/format.hpp"
#include "core/markup.hpp"
#include "core/printable.hpp"
#include "report/time_ticks.hpp"

namespace vramtrack {
namespace {

constexpr double kWidth = 860;
constexpr double kHeight = 260;
constexpr double kLeft = 70;
constexpr double kRight = 16;
constexpr double kTop = 14;
constexpr double kBottom = 30;

struct Plane {
  Timestamp begin;
  double length_s = 1;
  double top_bytes = 1;

  [[nodiscard]] double x(double s) const {
    return kLeft + (kWidth - kLeft - kRight) * std::clamp(s / length_s, 0.0, 1.0);
  }
  [[nodiscard]] double x(Timestamp t) const { return x(seconds_between(begin, t)); }
  [[nodiscard]] double y(double bytes) const {
    return kTop + (kHeight - kTop - kBottom) * (1 - std::clamp(bytes / top_bytes, 0.0, 1.0));
  }
};

std::string point(double x, double y) {
  return fmt::format("{:.1f},{:.1f} ", x, y);
}

/// The smallest of 1, 2, 5 times a power of ten (of two for bytes' units) that gives at most `most` steps.
double step_for(double range, int most, double unit) {
  double step = unit;
  while (range / step > most)
    for (const double factor : {2.0, 2.5, 2.0}) {
      if (range / step <= most) break;
      step *= factor;
    }
  while (range / (step / 2) <= most) step /= 2;
  return step;
}

void axes(std::string& out, const Plane& plane, const ChartInput& chart) {
  const Scale::AxisUnit unit = chart.scale.axis_unit(plane.top_bytes);
  const double step = step_for(plane.top_bytes, 6, unit.bytes);
  for (double bytes = 0; bytes <= plane.top_bytes * 1.001; bytes += step)
    out += fmt::format(
        "<line class=\"grid\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/><text class=\"tick\" "
        "x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:.{}f}{}{}</text>\n",
        kLeft, kWidth - kRight, plane.y(bytes), plane.y(bytes), kLeft - 6, plane.y(bytes) + 4, bytes / unit.bytes,
        step < unit.bytes ? 1 : 0, unit.name.empty() ? "" : " ", unit.name);
  const double step_s = time_step(plane.length_s, chart.scale);
  for (const Timestamp t : time_ticks(plane.begin, plane.begin + from_seconds(plane.length_s), step_s))
    out += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/><text class=\"tick low\" "
        "x=\"{0:.1f}\" y=\"{3:.1f}\" text-anchor=\"middle\">{4}</text>\n",
        plane.x(t), kTop, kHeight - kBottom, kHeight - kBottom + 16,
        time_label(t, step_s, chart.clock_is_relative, chart.scale));
}

/// Runs of points without a gap: periods without samples are left blank.
template <class Draw>
void runs(const std::vector<ChartPoint>& points, double step_s, Draw draw) {
  for (std::size_t begin = 0; begin < points.size();) {
    std::size_t end = begin + 1;
    while (end < points.size() && seconds_between(points[end - 1].time, points[end].time) <= 3 * step_s) ++end;
    draw(begin, end);
    begin = end;
  }
}

void history(std::string& out, const Plane& plane, const ChartInput& chart) {
  const std::vector<ChartPoint>& points = chart.points;
  runs(points, chart.step_s, [&](std::size_t begin, std::size_t end) {
    std::string band;
    std::string back;
    std::string mean;
    for (std::size_t i = begin; i < end; ++i) {
      const double x = plane.x(points[i].time);
      band += point(x, plane.y(points[i].max_bytes));
      back.insert(0, point(x, plane.y(points[i].min_bytes)));
      mean += point(x, plane.y(points[i].mean_bytes));
    }
    out += fmt::format("<polygon class=\"band\" points=\"{}\"/>\n<polyline class=\"mean\" points=\"{}\"/>\n",
                       band + back, mean);
  });
}

/// Each line of the chart is labelled in place: a legend would have to be looked up. A page with larger letters moves
/// labels of the class "low" down.
std::string name_of_line(double x, double y, std::string_view words, std::string_view classes = "tick") {
  const bool is_right = x > kWidth * 0.7;
  return fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", classes,
                     is_right ? x - 4 : x + 4, y, is_right ? "end" : "start", words);
}

/// The fitted growth up to the predicted end, and the interval of that end.
void end_to_come(std::string& out, const Plane& plane, const ChartInput& chart) {
  if (!chart.forecast) return;
  const Interval& oom_in_s = chart.forecast->oom_in_s;
  const double from_s = seconds_between(plane.begin, chart.last);
  const double last_bytes = chart.points.back().mean_bytes;
  const double low = plane.x(from_s + oom_in_s.low);
  const double high = plane.x(from_s + oom_in_s.high);
  if (from_s + oom_in_s.low < plane.length_s)
    out += fmt::format(
        "<rect class=\"end\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"><title>out of memory in "
        "{}</title></rect>\n",
        low, kTop, std::max(2.0, high - low), kHeight - kTop - kBottom, chart.scale.eta(oom_in_s));
  const double mid_s = std::min(oom_in_s.mid, plane.length_s - from_s);
  out += fmt::format("<line class=\"trend\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
                     plane.x(chart.last), plane.y(last_bytes), plane.x(from_s + mid_s),
                     plane.y(last_bytes + chart.forecast->growth_bytes_per_s * mid_s));
  if (from_s + oom_in_s.low < plane.length_s) out += name_of_line(low, kTop + 24, "predicted end");
}

/// `row`: the row of labels to use, counted from the bottom, so that neighbours do not overlap.
void mark(std::string& out, const Plane& plane, const ChartInput& chart, std::string_view kind, std::string_view words,
          Timestamp time, int row) {
  if (time < plane.begin) return;
  out += fmt::format(
      "<line class=\"{0}\" x1=\"{1:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{3:.1f}\"><title>{4} {5}</title></line>\n",
      kind, plane.x(time), kTop, kHeight - kBottom, words, chart.scale.moment(time, chart.clock_is_relative));
  out += name_of_line(plane.x(time), kHeight - kBottom - 6 - 14 * row, words);
}

Plane plane_of(const ChartInput& chart) {
  Plane plane;
  plane.begin = chart.begin;
  const double seen_s = std::max(1.0, seconds_between(chart.begin, chart.last));
  plane.length_s = seen_s;
  // The end is shown if it is not too far beyond the samples.
  if (chart.forecast) plane.length_s += std::clamp(chart.forecast->oom_in_s.high * 1.03, 0.0, 2.5 * seen_s);
  double top = std::max(chart.capacity_bytes.value_or(0.0), chart.wall ? chart.wall->bytes : 0.0);
  for (const ChartPoint& p : chart.points) top = std::max(top, p.max_bytes);
  plane.top_bytes = std::max(1.0, top * 1.05);
  return plane;
}

/// The period report's colours. An inline SVG's style sheet applies to the whole page, so each rule names our class.
constexpr std::string_view kStyle = R"(<style>
.vramtrack-chart{--ink:#1b1f24;--faint:#5b6570;--line:#d5dbe1;--mean:#0062a3;--band:#56b4e955;--bad:#b3261e;--notice:#8a5a00;--end:#d55e0033;font:11px system-ui,sans-serif}
@media(prefers-color-scheme:dark){.vramtrack-chart{--ink:#e4e8ec;--faint:#9aa5b1;--line:#333c46;--mean:#6cc1ff;--band:#56b4e944;--bad:#ff8a7a;--notice:#f0b93a;--end:#d55e0055}}
.vramtrack-chart .tick{fill:var(--faint)}.vramtrack-chart .grid{stroke:var(--line);stroke-width:.6}
.vramtrack-chart .mean{fill:none;stroke:var(--mean);stroke-width:1.8}.vramtrack-chart .band{fill:var(--band);stroke:none}
.vramtrack-chart .capacity{stroke:var(--ink);stroke-width:1.2;stroke-dasharray:6 4}.vramtrack-chart .wall{stroke:var(--bad);stroke-width:1.2;stroke-dasharray:6 4}.vramtrack-chart .end{fill:var(--end)}
.vramtrack-chart .trend{stroke:var(--bad);stroke-width:1.6;stroke-dasharray:4 3}.vramtrack-chart .alert{stroke:var(--bad);stroke-width:1.4}
.vramtrack-chart .onset{stroke:var(--notice);stroke-width:1.4;stroke-dasharray:2 3}
</style>
)";

std::string opening(const ChartInput& chart, ChartStyle style) {
  const std::string label = escape_markup(chart.label);
  if (style == ChartStyle::of_page)
    return fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n", kWidth, kHeight, label);
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"vramtrack-chart\" viewBox=\"0 0 {0} {1}\" "
             "width=\"{0}\" height=\"{1}\" role=\"img\" aria-label=\"{2}\">\n",
             kWidth, kHeight, label) +
         std::string(kStyle);
}

}  // namespace

std::string chart_svg(const ChartInput& chart, ChartStyle style) {
  if (chart.points.size() < 2) return {};
  const Plane plane = plane_of(chart);
  std::string out = opening(chart, style);
  axes(out, plane, chart);
  if (chart.capacity_bytes)
    out += fmt::format("<line class=\"capacity\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n", kLeft,
                       kWidth - kRight, plane.y(*chart.capacity_bytes), plane.y(*chart.capacity_bytes)) +
           name_of_line(kLeft, plane.y(*chart.capacity_bytes) + 13, "capacity", "tick low");
  if (chart.wall)
    out += fmt::format("<line class=\"wall\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n", kLeft,
                       kWidth - kRight, plane.y(chart.wall->bytes), plane.y(chart.wall->bytes)) +
           name_of_line(kLeft, plane.y(chart.wall->bytes) - 4, escape_markup("ends by " + printable(chart.wall->wall)));
  end_to_come(out, plane, chart);
  history(out, plane, chart);
  for (const Timestamp raised : chart.alerts) mark(out, plane, chart, "alert", "alert raised", raised, 1);
  if (chart.onset) mark(out, plane, chart, "onset", "growing since", *chart.onset, 0);
  return out + "</svg>\n";
}

}  // namespace vramtrack
