// Charts of memory over time: two by four Braille dots per cell, so 80 columns show 160 points.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "core/verdict.hpp"
#include "report/trend.hpp"
#include "top/screen.hpp"
#include "top/timeline.hpp"

namespace vramtrack::top {

/// The plane of a chart: the times and amounts of memory at its edges.
struct Plane {
  Timestamp from;
  Timestamp to;
  double low_bytes = 0;
  double high_bytes = 0;
};

/// Fills `rect` with the points: from the bottom up to the maximum of each dot column, or as a line from minimum to
/// maximum if the plane does not begin at zero. Points are valid until the next one; a long time without points stays
/// empty. Pure; O(points + cells).
void draw_history(Screen& screen, const Rect& rect, const Plane& plane, const std::vector<Point>& points);

/// The forecast, from `used_bytes` at `now` to `limit_bytes` after eta_s.
struct Band {
  Timestamp now;
  double used_bytes = 0;
  double limit_bytes = 0;
  Interval eta_s;

  /// The level after `ahead_s` if the limit is reached after `eta_of_limit_s`; at most the limit.
  [[nodiscard]] double bytes_at(double eta_of_limit_s, double ahead_s) const {
    if (eta_of_limit_s <= 0 || used_bytes >= limit_bytes) return limit_bytes;
    return used_bytes + (limit_bytes - used_bytes) * std::min(1.0, ahead_s / eta_of_limit_s);
  }
};

/// An instant marked below the chart.
struct Mark {
  Timestamp time;
  char32_t sign = U'^';
  Role role = Role::mark;
};

struct Chart {
  Plane plane;
  std::vector<Point> points;
  std::optional<MemoryEnd> limit;  ///< drawn as a line if it is within the plane; a wall is labelled with its name
  std::optional<TrendLine> trend;  ///< its length must not be zero
  std::optional<Band> band;
  std::vector<Mark> marks;
  bool clock_is_relative = false;
  Scale scale;
};

/// The chart with its scales: labels on the left, below it a row of marks (if there are any) and one of times. Draws
/// nothing if `rect` is under 24x4. Pure.
void draw_chart(Screen& screen, const Rect& rect, const Chart& chart);

/// The maximum number of points that a chart of this width can show.
std::size_t chart_points(int columns);

}  // namespace vramtrack::top
