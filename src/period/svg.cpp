// One series over the period as SVG: the band between least and greatest, the mean, the capacity, alerts, the end to
// come.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/format.hpp"
#include "core/units.hpp"
#include "period/document.hpp"

namespace vramtrack {
namespace {

constexpr double kWidth = 860;
constexpr double kHeight = 260;
constexpr double kLeft = 70;
constexpr double kRight = 16;
constexpr double kTop = 14;
constexpr double kBottom = 30;

struct Scale {
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

/// The least of 1, 2, 5 times a power of ten (of two for bytes' units) that gives at most `most` steps.
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

double time_step(double length_s) {
  constexpr std::array kSteps = {1.0,   2.0,    5.0,    10.0,   15.0,    30.0,    60.0,    120.0,   300.0,    600.0,
                                 900.0, 1800.0, 3600.0, 7200.0, 10800.0, 21600.0, 43200.0, 86400.0, 172800.0, 604800.0};
  for (const double step : kSteps)
    if (length_s / step <= 8) return step;
  return length_s / 8;
}

std::string time_label(Timestamp t, double step_s, bool relative) {
  if (relative) return format_duration(seconds_between(Timestamp{}, t));
  const std::string iso = iso8601(std::chrono::floor<std::chrono::seconds>(t));  // 2026-01-02T03:04:05Z
  if (step_s >= 86400) return iso.substr(5, 5);
  return step_s < 60 ? iso.substr(11, 8) : iso.substr(11, 5);
}

void axes(std::string& out, const Scale& scale, bool relative) {
  const double unit = scale.top_bytes >= kGiB ? kGiB : kMiB;
  const double step = step_for(scale.top_bytes, 6, unit);
  for (double bytes = 0; bytes <= scale.top_bytes * 1.001; bytes += step)
    out += fmt::format(
        "<line class=\"grid\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/><text class=\"tick\" "
        "x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:.{}f} {}</text>\n",
        kLeft, kWidth - kRight, scale.y(bytes), scale.y(bytes), kLeft - 6, scale.y(bytes) + 4, bytes / unit,
        step < unit ? 1 : 0, unit == kGiB ? "GiB" : "MiB");
  const double step_s = time_step(scale.length_s);
  const double begin_s = seconds_between(Timestamp{}, scale.begin);
  for (double s = std::ceil(begin_s / step_s) * step_s; s <= begin_s + scale.length_s; s += step_s) {
    const Timestamp t = Timestamp{} + from_seconds(s);
    out += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/><text class=\"tick\" "
        "x=\"{0:.1f}\" y=\"{3:.1f}\" text-anchor=\"middle\">{4}</text>\n",
        scale.x(t), kTop, kHeight - kBottom, kHeight - kBottom + 16, time_label(t, step_s, relative));
  }
}

/// Runs of points without a gap: nothing is drawn where nothing was seen.
template <class Draw>
void runs(const std::vector<HistoryPoint>& points, double step_s, Draw draw) {
  for (std::size_t begin = 0; begin < points.size();) {
    std::size_t end = begin + 1;
    while (end < points.size() && seconds_between(points[end - 1].start, points[end].start) <= 3 * step_s) ++end;
    draw(begin, end);
    begin = end;
  }
}

void history(std::string& out, const Scale& scale, const std::vector<HistoryPoint>& points, double step_s) {
  runs(points, step_s, [&](std::size_t begin, std::size_t end) {
    std::string band;
    std::string back;
    std::string mean;
    for (std::size_t i = begin; i < end; ++i) {
      const double x = scale.x(points[i].start);
      band += point(x, scale.y(static_cast<double>(points[i].max)));
      back.insert(0, point(x, scale.y(static_cast<double>(points[i].min))));
      mean += point(x, scale.y(points[i].mean));
    }
    out += fmt::format("<polygon class=\"band\" points=\"{}\"/>\n<polyline class=\"mean\" points=\"{}\"/>\n",
                       band + back, mean);
  });
}

/// The fitted growth up to the end it leads to, and when that may be.
void end_to_come(std::string& out, const Scale& scale, const PeriodSeries& s, Timestamp last, double last_bytes) {
  const Finding& f = s.view.verdict.finding;
  if (!f.leak || !f.oom_in_s) return;
  const double from_s = seconds_between(scale.begin, last);
  const double low = scale.x(from_s + f.oom_in_s->low);
  const double high = scale.x(from_s + f.oom_in_s->high);
  if (from_s + f.oom_in_s->low < scale.length_s)
    out += fmt::format(
        "<rect class=\"end\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"><title>out of memory in "
        "{}</title></rect>\n",
        low, kTop, std::max(2.0, high - low), kHeight - kTop - kBottom, format_eta(*f.oom_in_s));
  const double mid_s = std::min(f.oom_in_s->mid, scale.length_s - from_s);
  out +=
      fmt::format("<line class=\"trend\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", scale.x(last),
                  scale.y(last_bytes), scale.x(from_s + mid_s), scale.y(last_bytes + f.growth_bytes_per_s.mid * mid_s));
}

void marks(std::string& out, const Scale& scale, const PeriodReport& report, const PeriodSeries& s) {
  for (const PeriodAlert& a : s.alerts)
    if (a.alert.raised >= scale.begin)
      out += fmt::format(
          "<line class=\"alert\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"><title>alert raised "
          "{3}</title></line>\n",
          scale.x(a.alert.raised), kTop, kHeight - kBottom, format_moment(a.alert.raised, report.clock_is_relative));
  const auto& onset = s.view.verdict.finding.onset;
  if (s.view.verdict.finding.leak && onset && *onset >= scale.begin)
    out += fmt::format(
        "<line class=\"onset\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"><title>growing since "
        "{3}</title></line>\n",
        scale.x(*onset), kTop, kHeight - kBottom, format_moment(*onset, report.clock_is_relative));
}

}  // namespace

std::string report_svg(const PeriodReport& report, const PeriodSeries& s) {
  if (s.history.size() < 2) return {};
  const double step_s = std::max(report.bucket_s, s.view.interval_s);
  Scale scale;
  scale.begin = report.first ? std::min(*report.first, s.history.front().start) : s.history.front().start;
  const Timestamp last = std::max(report.last.value_or(s.history.back().start), s.history.back().start);
  const double seen_s = std::max(1.0, seconds_between(scale.begin, last));
  scale.length_s = seen_s;
  const Finding& f = s.view.verdict.finding;
  // The end is shown where it is not too far beyond what was seen.
  if (f.leak && f.oom_in_s) scale.length_s += std::clamp(f.oom_in_s->high * 1.03, 0.0, 2.5 * seen_s);
  double top = 0;
  for (const HistoryPoint& p : s.history) top = std::max(top, static_cast<double>(p.max));
  const bool device = s.view.key.pid == 0;
  const double capacity =
      device && s.view.device.capacity_bytes ? static_cast<double>(*s.view.device.capacity_bytes) : 0.0;
  scale.top_bytes = std::max(1.0, std::max(top, capacity) * 1.05);

  std::string out = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"memory used over the period\">\n",
                                kWidth, kHeight);
  axes(out, scale, report.clock_is_relative);
  if (capacity > 0)
    out += fmt::format("<line class=\"capacity\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n", kLeft,
                       kWidth - kRight, scale.y(capacity), scale.y(capacity));
  end_to_come(out, scale, s, last, s.history.back().mean);
  history(out, scale, s.history, step_s);
  marks(out, scale, report, s);
  return out + "</svg>\n";
}

}  // namespace vramtrack
