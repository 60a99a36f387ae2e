// The line of a verdict's growth through the past: the same on every screen, page and chart.
#pragma once

#include <optional>
#include <string>

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

/// Where the memory of a series ends, as used by all its forecasts and charts.
struct MemoryEnd {
  double bytes = 0;  ///< level of the series
  std::string wall;  ///< the external limit (MemoryWall::name) that ends it; empty: its device; untrusted
};

/// For a device: its capacity minus the driver's reserve, or its use when the growing process reaches its wall, if that
/// is sooner. For a process: its wall. Nullopt if neither is known. Pure; O(series).
std::optional<MemoryEnd> memory_end(const View& view, const SeriesView& series);
/// The level of memory_end().
std::optional<double> limit_bytes(const View& view, const SeriesView& series);

}  // namespace vramtrack
