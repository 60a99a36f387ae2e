// History: past values of series, and of a device's gauges, read from the store's file as columns for a chart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "core/series.hpp"
#include "core/time.hpp"

namespace vramtrack::agent {

enum class Grain : std::uint8_t { raw, minute, hour };
std::string_view to_string(Grain grain);

/// REQUIRES: from < to, points >= 2.
struct HistoryRange {
  Timestamp from;  ///< from <= t < to
  Timestamp to;
  std::size_t points = 600;  ///< at most this many per series
};

struct HistoryQuery {
  std::vector<SeriesKey> keys;
  HistoryRange range;          ///< keys times points is at most kMostPoints
  std::optional<Grain> grain;  ///< empty: the coarsest that still yields `points`
};

/// One series; the four columns have the same length, times ascend.
struct HistoryColumns {
  std::vector<double> time_s;  ///< since 1970: the point's first sample, or the start of its minute or hour
  std::vector<std::uint64_t> min;
  std::vector<double> mean;
  std::vector<std::uint64_t> max;
};

struct History {
  Grain grain = Grain::raw;
  double step_s = 0;                   ///< the smallest distance between two points
  std::vector<HistoryColumns> series;  ///< in the order of HistoryQuery::keys
};

/// The readings of a device's gauges: at each point, the largest of its minutes; nullopt: not reported.
struct GaugeHistory {
  double step_s = 0;                        ///< the smallest distance between two points
  std::vector<double> time_s;               ///< since 1970: the start of the first minute of the point
  std::vector<std::optional<double>> busy;  ///< 0..1
  std::vector<std::optional<double>> temperature_celsius;
  std::vector<std::optional<double>> power_watts;
  std::vector<std::optional<double>> sm_clock_hertz;
};

constexpr std::size_t kMostPoints = 200'000;
constexpr double kMostRawSeconds = 6 * 3600;

/// Errors: those of the store, a raw range of more than kMostRawSeconds. Memory: 40 bytes per point. Cost: rollups,
/// about 1 ms per series; raw samples, a read of every series' samples in the range (some 30 ms for 6 h of 72
/// series).
Result<History> read_history(const std::string& store_path, const HistoryQuery& query);

/// Errors: those of the store. A device that is not in the store has no points. Cost: about 1 ms per day.
Result<GaugeHistory> read_gauges(const std::string& store_path, const std::string& device_id,
                                 const HistoryRange& range);

}  // namespace vramtrack::agent
