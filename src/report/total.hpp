// The total of a device: the series by which it is judged.
#pragma once

#include "core/view.hpp"

namespace vramtrack {

/// Whether a device is judged by this series: what is in use on it, or, where nothing else is known of the device, what
/// a framework's allocator reports. The engine keeps runs for those alone.
inline bool is_total(const SeriesView& series) {
  return series.key.metric == Metric::device_used || !series.runs.empty();
}

/// Such a series of a framework's allocator.
inline bool stands_in(const SeriesView& series) {
  return is_total(series) && series.key.metric != Metric::device_used;
}

}  // namespace vramtrack
