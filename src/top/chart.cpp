#include "top/chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "core/format.hpp"
#include "core/median.hpp"
#include "core/printable.hpp"
#include "report/time_ticks.hpp"

namespace vramtrack::top {
namespace {

constexpr int kLabel = 9;  ///< columns of the left scale

/// A rectangle as a grid of Braille dots: two by four per cell, rows counted from the bottom.
class Dots {
 public:
  explicit Dots(const Rect& area)
      : width_(area.width),
        height_(area.height),
        cells_(static_cast<std::size_t>(area.width) * static_cast<std::size_t>(area.height), 0U) {}

  [[nodiscard]] int columns() const { return width_ * 2; }
  [[nodiscard]] int rows() const { return height_ * 4; }
  /// The dots from `low` to `high`, both included. REQUIRES: within columns() and rows().
  void fill(int column, int low, int high) {
    constexpr std::array<unsigned, 4> kLeft = {0x40U, 0x04U, 0x02U, 0x01U};
    constexpr std::array<unsigned, 4> kRight = {0x80U, 0x20U, 0x10U, 0x08U};
    for (int d = low; d <= high; ++d)
      cells_[index(column / 2, height_ - 1 - d / 4)] |=
          (column % 2 == 0 ? kLeft : kRight)[static_cast<std::size_t>(d % 4)];
  }
  /// The dots of a cell, y from the top; 0: none.
  [[nodiscard]] unsigned at(int x, int y) const { return cells_[index(x, y)]; }

 private:
  [[nodiscard]] std::size_t index(int x, int y) const {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) + static_cast<std::size_t>(x);
  }

  int width_;
  int height_;
  std::vector<unsigned> cells_;
};

/// Rows of dots from the bottom, clamped: 0 is the lowest dot.
int dot_of(double bytes, const Plane& plane, int dots) {
  const double span = plane.high_bytes - plane.low_bytes;
  if (!(span > 0)) return 0;
  return static_cast<int>(std::lround(std::clamp((bytes - plane.low_bytes) / span, 0.0, 1.0) * (dots - 1)));
}

/// The column of `time`, -1 if it is not on the chart.
int column_of(Timestamp time, const Plane& plane, int columns) {
  if (time < plane.from || time > plane.to || plane.to <= plane.from) return -1;
  const double at = seconds_between(plane.from, time) / seconds_between(plane.from, plane.to);
  return std::min(columns - 1, static_cast<int>(at * columns));
}

Timestamp time_of(double column, const Plane& plane, int columns) {
  return plane.from + from_seconds(seconds_between(plane.from, plane.to) * column / columns);
}

/// The longest pause between two points that is bridged (several usual steps); longer gaps stay empty.
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

/// The minimum and maximum of each dot column.
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

/// The dots of the points, filled from the bottom up if the plane begins at zero.
Dots history_dots(const Rect& r, const Plane& plane, const std::vector<Point>& points) {
  Dots out(r);
  const bool fill = plane.low_bytes <= 0;
  const auto columns = columns_of_points(plane, points, out.columns());
  for (int c = 0; c < out.columns(); ++c) {
    const Extreme& e = columns[static_cast<std::size_t>(c)];
    if (!e.any || (fill && e.max <= 0) || e.max < plane.low_bytes) continue;
    out.fill(c, fill ? 0 : dot_of(e.min, plane, out.rows()), dot_of(e.max, plane, out.rows()));
  }
  return out;
}

/// A line through the dot columns, without gaps at steep parts. `bytes_at`: the value at a time; nullopt: no line.
template <class BytesAt>
void add_line(Dots& out, const Plane& plane, BytesAt bytes_at) {
  constexpr int kNone = -1;
  int last = kNone;
  for (int c = 0; c < out.columns(); ++c) {
    const std::optional<double> bytes = bytes_at(time_of(c + 0.5, plane, out.columns()));
    if (!bytes || *bytes < plane.low_bytes || *bytes > plane.high_bytes) {
      last = kNone;
      continue;
    }
    const int row = dot_of(*bytes, plane, out.rows());
    const int before = last == kNone ? row : last;
    out.fill(c, std::min(row, before), std::max(row, before));
    last = row;
  }
}

/// The dots of the trend up to now, and of the middle of the band from now on.
Dots trend_dots(const Rect& r, const Chart& c) {
  Dots out(r);
  if (c.trend) {
    const TrendLine& t = *c.trend;
    const double slope_bytes_per_s = (t.to_bytes - t.from_bytes) / seconds_between(t.from, t.to);
    add_line(out, c.plane, [&](Timestamp time) -> std::optional<double> {
      if (time < t.from || time > t.to) return std::nullopt;
      return t.to_bytes - slope_bytes_per_s * seconds_between(time, t.to);
    });
  }
  if (c.band)
    add_line(out, c.plane, [&](Timestamp time) -> std::optional<double> {
      const double ahead_s = seconds_between(c.band->now, time);
      if (ahead_s <= 0 || ahead_s > c.band->eta_s.mid) return std::nullopt;
      return c.band->bytes_at(c.band->eta_s.mid, ahead_s);
    });
  return out;
}

/// Every other dot between the earliest and the latest end, which looks lighter than used memory.
Dots band_dots(const Rect& r, const Chart& c) {
  Dots out(r);
  if (!c.band) return out;
  for (int x = 0; x < out.columns(); ++x) {
    const double ahead_s = seconds_between(c.band->now, time_of(x + 0.5, c.plane, out.columns()));
    if (ahead_s <= 0 || ahead_s > c.band->eta_s.high) continue;
    const int low = dot_of(c.band->bytes_at(c.band->eta_s.high, ahead_s), c.plane, out.rows());
    const int high = dot_of(c.band->bytes_at(c.band->eta_s.low, ahead_s), c.plane, out.rows());
    for (int d = low; d <= high; ++d)
      if ((x + d) % 2 == 0) out.fill(x, d, d);
  }
  return out;
}

/// A cell has only one colour: that of the trend, else the past, else the band. It shows only the dots of that one, so
/// that the trend is a line over the past, one dot thick.
void put_dots(Screen& screen, const Rect& r, const Dots& past, const Dots& band, const Dots& trend) {
  for (int y = 0; y < r.height; ++y)
    for (int x = 0; x < r.width; ++x)
      for (const auto& [dots, role] :
           {std::pair{&trend, Role::trend}, std::pair{&past, Role::history}, std::pair{&band, Role::band}})
        if (const unsigned bits = dots->at(x, y); bits != 0) {
          screen.put(r.x + x, r.y + y, static_cast<char32_t>(0x2800U + bits), role);
          break;
        }
}

void draw_limit(Screen& screen, const Rect& r, const Chart& c) {
  const double bytes = c.limit->bytes;
  if (bytes < c.plane.low_bytes || bytes > c.plane.high_bytes) return;
  // Draw the line at its exact dot height, so that a curve that meets it is not drawn above it.
  constexpr std::array kLines = {U'▁', U'─', U'─', U'▔'};
  const int dot = dot_of(bytes, c.plane, r.height * 4);
  const int y = r.bottom() - 1 - dot / 4;
  for (int x = r.x; x < r.right(); ++x)
    if (!screen.at(x, y).written) screen.put(x, y, kLines[static_cast<std::size_t>(dot % 4)], Role::faint);
  if (c.limit->wall.empty()) return;
  // Put the label next to the line: below it is the past, and at its height the trend that meets it.
  const int row = y > r.y ? y - 1 : y + 1;
  screen.put(r.x + 1, row, r.width - 2, fmt::format("{} {}", c.scale.bytes(bytes), printable(c.limit->wall)),
             Role::mark);
}

/// A round step of at least `least`: the first that divides `span`, unless it is more than twice the very first.
/// Candidates are half, a quarter or an eighth of the unit in which `span` is shown, and common sizes of memory.
double round_step(double least, double span, const Scale& scale) {
  constexpr std::array<double, 23> kSteps = {0.125, 0.25, 0.5, 1,  2,  4,   5,   8,   10,  16,  20, 25,
                                             32,    40,   50,  64, 80, 100, 125, 200, 250, 256, 512};
  double unit = scale.axis_unit(0).bytes;
  const double next = scale.counts_bytes() ? 1024 : 1000;
  while (unit * next <= span) unit *= next;
  double first = 0;
  for (const double of : kSteps) {
    const double step = of * unit;
    if (step < least) continue;
    if (first > 0 && step > 2 * first) break;
    if (std::fmod(span, step) == 0) return step;
    if (first <= 0) first = step;
  }
  return first > 0 ? first : span;
}

/// Round amounts from the bottom up, about three rows apart, and the upper end of the plane.
std::vector<double> ticks(const Plane& plane, int rows, const Scale& scale) {
  const double span = plane.high_bytes - plane.low_bytes;
  std::vector<double> out;
  if (!(span > 0) || !std::isfinite(span)) return out;
  const int most = std::max(1, (rows - 1) / 3);
  const double step = round_step(span / most, span, scale);
  const double first = std::ceil(plane.low_bytes / step);
  for (int i = 0; i <= most && (first + i) * step <= plane.high_bytes; ++i) out.push_back((first + i) * step);
  // Always label the end of memory, and nothing right below it.
  if (out.empty() || out.back() < plane.high_bytes) {
    if (!out.empty() && plane.high_bytes - out.back() < 0.6 * span / most) out.pop_back();
    out.push_back(plane.high_bytes);
  }
  return out;
}

void draw_scale(Screen& screen, const Rect& area, const Rect& r, const Chart& c) {
  for (const double bytes : ticks(c.plane, r.height, c.scale)) {
    const int y = r.bottom() - 1 - dot_of(bytes, c.plane, r.height);
    screen.put_right(r.x - 1, y, kLabel - 1, c.scale.bytes(bytes), Role::faint);
  }
  const int times = area.bottom() - 1;
  const int now = c.band ? column_of(c.band->now, c.plane, r.width) : -1;
  if (now >= 0) screen.put(r.x + now, times, std::min(3, r.width - now), "now", Role::mark);
  const double step_s = time_step(seconds_between(c.plane.from, c.plane.to), c.scale, std::max(2, r.width / 14));
  int from = 0;
  for (const Timestamp tick : time_ticks(c.plane.from, c.plane.to, step_s)) {
    const std::string label = time_label(tick, step_s, c.clock_is_relative, c.scale);
    const auto width = static_cast<int>(label.size());
    const int x = std::clamp(column_of(tick, c.plane, r.width) - width / 2, 0, std::max(0, r.width - width));
    const bool is_beside_now = now < 0 || x + width < now || x > now + 3;
    if (x < from || !is_beside_now) continue;
    screen.put(r.x + x, times, width, label, Role::faint);
    from = x + width + 2;
  }
}

}  // namespace

std::size_t chart_points(int columns) {
  return static_cast<std::size_t>(std::max(1, columns)) * 2;
}

void draw_history(Screen& screen, const Rect& r, const Plane& plane, const std::vector<Point>& points) {
  if (r.empty()) return;
  put_dots(screen, r, history_dots(r, plane, points), Dots(r), Dots(r));
}

void draw_chart(Screen& screen, const Rect& area, const Chart& chart) {
  if (area.width < 24 || area.height < 4) return;
  const int below = chart.marks.empty() ? 1 : 2;
  const Rect r{area.x + kLabel, area.y, area.width - kLabel, area.height - below};
  put_dots(screen, r, history_dots(r, chart.plane, chart.points), band_dots(r, chart), trend_dots(r, chart));
  if (chart.limit) draw_limit(screen, r, chart);
  draw_scale(screen, area, r, chart);
  for (const Mark& mark : chart.marks) {
    const int x = column_of(mark.time, chart.plane, r.width);
    if (x >= 0) screen.over(r.x + x, r.bottom(), mark.sign, mark.role);
  }
}

}  // namespace vramtrack::top
