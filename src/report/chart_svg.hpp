// The chart of one series as SVG: the band between minimum and maximum, the mean, the capacity, alerts, the predicted
// end. The only charting code outside the terminal and dashboard: the period report and Python's notebooks use it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/time.hpp"
#include "core/verdict.hpp"
#include "report/trend.hpp"

namespace vramtrack {

/// The range and the mean of one interval.
struct ChartPoint {
  Timestamp time;
  double min_bytes = 0;
  double mean_bytes = 0;
  double max_bytes = 0;
};

struct ChartForecast {
  Interval oom_in_s;              ///< from the last time
  double growth_bytes_per_s = 0;  ///< the slope of the trend line
};

struct ChartInput {
  std::vector<ChartPoint> points;  ///< in time order
  Timestamp begin;                 ///< where the time axis begins; not after the first point
  Timestamp last;                  ///< time of the last sample; not before the last point
  /// The distance between two points. A gap of more than three of them is left blank: there were no samples.
  double step_s = 1;
  bool clock_is_relative = false;        ///< times are offsets from zero, not dates
  Scale scale;                           ///< the scale of the recording
  std::optional<double> capacity_bytes;  ///< drawn as a line if known
  std::optional<MemoryEnd> wall;         ///< drawn as a line with its name if known; the forecast ends there
  std::vector<Timestamp> alerts;         ///< when they were raised
  std::optional<Timestamp> onset;        ///< the onset of the leak
  std::optional<ChartForecast> forecast;
  std::string label = "memory used over the period";  ///< for screen readers
};

/// Where a chart gets its colours from.
enum class ChartStyle : std::uint8_t {
  of_page,     ///< from the page's style sheet, by the classes of the elements
  standalone,  ///< from a style sheet within the SVG, for light and dark pages
};

/// An SVG element without scripts or external parts; empty if there are fewer than two points. Pure; O(points).
std::string chart_svg(const ChartInput& chart, ChartStyle style);

}  // namespace vramtrack
