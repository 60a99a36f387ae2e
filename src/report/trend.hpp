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

/// For a series that leaks or grows; nullopt for others, or if onset or level are unknown. Pure.
std::optional<TrendLine> trend_line(const SeriesView& series);

/// The level at which the memory of a device ends, and so every forecast for it: its capacity minus what the driver
/// reserves; nullopt for other series, or if the capacity is unknown. Pure; O(series).
std::optional<double> limit_bytes(const View& view, const SeriesView& device);

}  // namespace vramtrack
