#include "top/chart.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "core/format.hpp"
#include "core/median.hpp"
#include "top/rows.hpp"

namespace vramtrack::top {
namespace {

constexpr int kLabel = 9;                                                ///< columns of the left scale
constexpr std::array<unsigned, 4> kLeft = {0x40U, 0x04U, 0x02U, 0x01U};  ///< Braille dots from the bottom up
constexpr std::array<unsigned, 4> kRight = {0x80U, 0x20U, 0x10U, 0x08U};

/// Rows of dots from the bottom, clamped: 0 is the lowest dot.
int dot_of(double bytes, const Plane& plane, int dots) {
  const double span = plane.high_bytes - plane.low_bytes;
  if (!(span > 0)) return 0;
  return static_cast<int>(std::lround(std::clamp((bytes - plane.low_bytes) / span, 0.0, 1.0) * (dots - 1)));
}

/// The column of `time`, -1 when it is not on the chart.
int column_of(Timestamp time, const Plane& plane, int columns) {
  if (time < plane.from || time > plane.to || plane.to <= plane.from) return -1;
  const double at = seconds_between(plane.from, time) / seconds_between(plane.from, plane.to);
  return std::min(columns - 1, static_cast<int>(at * columns));
}

Timestamp time_of(double column, const Plane& plane, int columns) {
  return plane.from + from_seconds(seconds_between(plane.from, plane.to) * column / columns);
}

/// If the pause between two points is longer than this (several usual steps), nothing is drawn between them.
double longest_hold_s(const std::vector<Point>& points) {
  std::vector<double> steps;
  for (std::size_t i = 1; i < points.size(); ++i) steps.push_back(seconds_between(points[i - 1].from, points[i].from));
  if (steps.empty()) return 0;
  return upper_median(std::span(steps)) * 6;
}

struct Extreme {
  double min = 0;
  double max = 0;
  bool any = false;
  void take(double low, double high) {
    min = any ? std::min(min, low) : low;
    max = any ? std::max(max, high) : high;
    any = true;
  }
};

/// Least and greatest of each dot column.
std::vector<Extreme> columns_of_points(const Plane& plane, const std::vector<Point>& points, int columns) {
  std::vector<Extreme> out(static_cast<std::size_t>(columns));
  const double hold_s = longest_hold_s(points);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Point& p = points[i];
    Timestamp until = p.to;
    if (i + 1 < points.size() && seconds_between(p.from, points[i + 1].from) <= hold_s) until = points[i + 1].from;
    if (until < plane.from || p.from > plane.to) continue;
    const int first = column_of(std::max(p.from, plane.from), plane, columns);
    const int last = column_of(std::min(until, plane.to), plane, columns);
    for (int c = first; c <= last; ++c)
      if (c == first || !out[static_cast<std::size_t>(c)].any)
        out[static_cast<std::size_t>(c)].take(p.min_bytes, p.max_bytes);
  }
  return out;
}

void draw_trend(Screen& screen, const Rect& r, const Chart& c) {
  const TrendLine& t = *c.trend;
  const double slope_bytes_per_s = (t.to_bytes - t.from_bytes) / seconds_between(t.from, t.to);
  for (int x = 0; x < r.width; ++x) {
    const Timestamp time = time_of(x + 0.5, c.plane, r.width);
    if (time < t.from || time > t.to) continue;
    const double bytes = t.to_bytes - slope_bytes_per_s * seconds_between(time, t.to);
    if (bytes < c.plane.low_bytes || bytes > c.plane.high_bytes) continue;
    screen.over(r.x + x, r.bottom() - 1 - dot_of(bytes, c.plane, r.height), U'•', Role::trend);
  }
}

void draw_band(Screen& screen, const Rect& r, const Chart& c) {
  const Band& b = *c.band;
  const double left = b.limit_bytes - b.used_bytes;
  if (left <= 0) return;
  const auto at = [&](double eta_s, double ahead_s) {
    return eta_s <= 0 ? b.limit_bytes : b.used_bytes + left * std::min(1.0, ahead_s / eta_s);
  };
  for (int x = 0; x < r.width; ++x) {
    const double ahead_s = seconds_between(b.now, time_of(x + 0.5, c.plane, r.width));
    if (ahead_s <= 0) continue;
    const int top = dot_of(at(b.eta_s.low, ahead_s), c.plane, r.height);
    const int bottom = dot_of(at(b.eta_s.high, ahead_s), c.plane, r.height);
    const int middle = dot_of(at(b.eta_s.mid, ahead_s), c.plane, r.height);
    for (int y = bottom; y <= top; ++y)
      screen.over(r.x + x, r.bottom() - 1 - y, y == middle ? U'•' : U'░', y == middle ? Role::trend : Role::band);
  }
}

void draw_limit(Screen& screen, const Rect& r, const Chart& c) {
  if (*c.limit_bytes < c.plane.low_bytes || *c.limit_bytes > c.plane.high_bytes) return;
  const int y = r.bottom() - 1 - dot_of(*c.limit_bytes, c.plane, r.height);
  for (int x = r.x; x < r.right(); ++x)
    if (!screen.at(x, y).written) screen.put(x, y, U'─', Role::faint);
}

void draw_scale(Screen& screen, const Rect& area, const Rect& r, const Chart& c) {
  const int steps = r.height >= 9 ? 4 : r.height >= 5 ? 2 : 1;
  int last = -1;
  for (int i = 0; i <= steps; ++i) {
    const int y = r.y + (r.height - 1) * i / steps;
    if (y == last) continue;
    last = y;
    const double share = r.height > 1 ? 1.0 - static_cast<double>(y - r.y) / (r.height - 1) : 0;
    screen.put_right(r.x - 1, y, kLabel - 1,
                     format_bytes(c.plane.low_bytes + share * (c.plane.high_bytes - c.plane.low_bytes)), Role::faint);
  }
  const int times = area.bottom() - 1;
  const std::string left = clock_words(c.plane.from, c.now, c.clock_is_relative);
  const std::string right = clock_words(c.plane.to, c.now, c.clock_is_relative);
  const int taken = screen.put(r.x, times, r.width / 3, left, Role::faint);
  screen.put_right(r.right(), times, r.width / 3, right, Role::faint);
  const int now = c.band ? column_of(c.band->now, c.plane, r.width) : -1;
  const int to = static_cast<int>(right.size());
  if (now > taken + 2 && now + 4 < r.width - to) {
    screen.put(r.x + now, times, 4, "now", Role::mark);
  } else {
    const std::string span = format_duration(seconds_between(c.plane.from, c.plane.to));
    const int x = (r.width - static_cast<int>(span.size())) / 2;
    if (x > taken + 1 && x + static_cast<int>(span.size()) < r.width - to - 1)
      screen.put(r.x + x, times, r.width, span, Role::faint);
  }
}

}  // namespace

std::size_t chart_points(int columns) {
  return static_cast<std::size_t>(std::max(1, columns)) * 2;
}

void draw_history(Screen& screen, const Rect& r, const Plane& plane, const std::vector<Point>& points) {
  if (r.empty()) return;
  const auto dots = columns_of_points(plane, points, r.width * 2);
  const bool fill = plane.low_bytes <= 0;
  const int rows = r.height * 4;
  const auto width = static_cast<std::size_t>(r.width);
  std::vector<unsigned> cells(width * static_cast<std::size_t>(r.height), 0U);
  const auto cell = [&](int x, int y) -> unsigned& {
    return cells[static_cast<std::size_t>(y) * width + static_cast<std::size_t>(x)];
  };
  for (int c = 0; c < r.width * 2; ++c) {
    const Extreme& e = dots[static_cast<std::size_t>(c)];
    if (!e.any || (fill && e.max <= 0) || e.max < plane.low_bytes) continue;
    const int high = dot_of(e.max, plane, rows);
    const int low = fill ? 0 : dot_of(e.min, plane, rows);
    for (int d = low; d <= high; ++d)
      cell(c / 2, r.height - 1 - d / 4) |= (c % 2 == 0 ? kLeft : kRight)[static_cast<std::size_t>(d % 4)];
  }
  for (int y = 0; y < r.height; ++y)
    for (int x = 0; x < r.width; ++x)
      if (const unsigned bits = cell(x, y); bits != 0)
        screen.put(r.x + x, r.y + y, static_cast<char32_t>(0x2800U + bits), Role::history);
}

void draw_chart(Screen& screen, const Rect& area, const Chart& chart) {
  if (area.width < 24 || area.height < 4) return;
  const int below = chart.marks.empty() ? 1 : 2;
  const Rect r{area.x + kLabel, area.y, area.width - kLabel, area.height - below};
  draw_history(screen, r, chart.plane, chart.points);
  if (chart.band) draw_band(screen, r, chart);
  if (chart.limit_bytes) draw_limit(screen, r, chart);
  if (chart.trend) draw_trend(screen, r, chart);
  draw_scale(screen, area, r, chart);
  for (const Mark& mark : chart.marks) {
    const int x = column_of(mark.time, chart.plane, r.width);
    if (x >= 0) screen.over(r.x + x, r.bottom(), mark.sign, mark.role);
  }
}

}  // namespace vramtrack::top
