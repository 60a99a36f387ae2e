// The line of a verdict's growth through the past: the same on every screen, page and chart.
#pragma once

#include <optional>

#include "core/view.hpp"

namespace vramtrack {

/// From the onset to the last sample.
struct TrendLine {
  Timestamp from;
  Timestamp to;
  double from_bytes = 0;
  double to_bytes = 0;
};

/// Of a series that leaks or grows; nullopt of others, and where onset or level are not known. Pure.
std::optional<TrendLine> trend_line(const SeriesView& series);

/// Where the memory of a device ends, and so every forecast of it: its capacity less what the driver reserves; nullopt
/// of others, and where the capacity is not known. Pure; O(series).
std::optional<double> limit_bytes(const View& view, const SeriesView& device);

}  // namespace vramtrack
