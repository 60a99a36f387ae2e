// The total of a device: the series by which it is judged.
#pragma once

#include "core/view.hpp"

namespace vramtrack {

/// Whether a device is judged by this series: the memory in use on it or, if nothing else is known of the device, a
/// framework's allocator. The engine keeps runs only for these.
inline bool is_total(const SeriesView& series) {
  return series.key.metric == Metric::device_used || !series.runs.empty();
}

/// Such a series of a framework's allocator.
inline bool replaces_device_total(const SeriesView& series) {
  return is_total(series) && series.key.metric != Metric::device_used;
}

}  // namespace vramtrack
