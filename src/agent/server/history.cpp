#include "agent/server/history.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "store/store.hpp"

namespace vramtrack::agent {
namespace {

double seconds(Timestamp time) {
  return static_cast<double>(time.time_since_epoch().count()) * 1e-9;
}

double step_of(const HistoryRange& range) {
  return seconds_between(range.from, range.to) / static_cast<double>(range.points);
}

/// Merges the values within each of `points` equal stretches of the range.
class Buckets {
 public:
  explicit Buckets(const HistoryRange& range) : from_(range.from), width_s_(step_of(range)), points_(range.points) {}

  void add(Timestamp time, std::uint64_t min, std::uint64_t max, double mean, std::uint64_t count) {
    const std::size_t bucket = bucket_of(time);
    // Samples that are out of order because the clock was set back are merged into the last point.
    if (columns_.time_s.empty() || bucket > last_) {
      last_ = bucket;
      columns_.time_s.push_back(seconds(time));
      columns_.min.push_back(min);
      columns_.max.push_back(max);
      columns_.mean.push_back(mean);
      count_ = count;
      return;
    }
    columns_.min.back() = std::min(columns_.min.back(), min);
    columns_.max.back() = std::max(columns_.max.back(), max);
    const auto n = static_cast<double>(count);
    columns_.mean.back() += (mean - columns_.mean.back()) * n / static_cast<double>(count_ + count);
    count_ += count;
  }
  HistoryColumns take() { return std::move(columns_); }
  [[nodiscard]] std::size_t bucket_of(Timestamp time) const {
    const double position = seconds_between(from_, time) / width_s_;
    return std::min(static_cast<std::size_t>(std::max(position, 0.0)), points_ - 1);
  }

 private:
  Timestamp from_;
  double width_s_;
  std::size_t points_;
  HistoryColumns columns_;
  std::size_t last_ = 0;
  std::uint64_t count_ = 0;
};

Status read_raw(StoreReader& reader, const HistoryQuery& query, std::vector<Buckets>& buckets) {
  reader.select({query.range.from, query.range.to});
  Catalog catalog;
  Batch batch;
  constexpr std::size_t kUnknown = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> which;  // indexed by SeriesId: position in keys, or keys.size() if none
  for (;;) {
    const Result<bool> read = reader.read(catalog, batch);
    if (!read) continue;  // a damaged chunk; show the rest of the past
    if (!*read) return {};
    for (const Sample& sample : batch.samples) {
      const std::size_t id = index_of(sample.series);
      if (id >= which.size()) which.resize(id + 1, kUnknown);
      if (which[id] == kUnknown) {
        const auto found = std::find(query.keys.begin(), query.keys.end(), catalog.key(sample.series));
        which[id] = static_cast<std::size_t>(found - query.keys.begin());
      }
      if (which[id] < query.keys.size())
        buckets[which[id]].add(sample.time, sample.bytes, sample.bytes, static_cast<double>(sample.bytes), 1);
    }
  }
}

Status read_rollups(StoreReader& reader, const SeriesKey& key, Grain grain, const HistoryQuery& query, Buckets& into) {
  const TimeRange range{query.range.from, query.range.to};
  std::vector<Rollup> rows;
  if (grain == Grain::minute) {
    auto minutes = reader.rollups(key, Resolution::minute, range);
    if (!minutes) return fail(minutes.error());
    rows = std::move(*minutes);
  }
  // Minutes are kept for a while, hours forever, so hours are used before the first minute.
  TimeRange before = range;
  if (!rows.empty()) before.to = rows.front().start;
  auto hours = reader.rollups(key, Resolution::hour, before);
  if (!hours) return fail(hours.error());
  if (!rows.empty())  // minutes replace the hour in which they begin
    while (!hours->empty() && hours->back().start + std::chrono::hours{1} > rows.front().start) hours->pop_back();
  for (const std::vector<Rollup>* part : {&*hours, &rows})
    for (const Rollup& r : *part) into.add(r.start, r.min, r.max, r.mean, r.count);
  return {};
}

}  // namespace

std::string_view to_string(Grain grain) {
  constexpr std::string_view kNames[] = {"raw", "minute", "hour"};
  return kNames[static_cast<std::size_t>(grain)];
}

Result<History> read_history(const std::string& store_path, const HistoryQuery& query) {
  auto reader = StoreReader::open(store_path);
  if (!reader) return fail(reader.error());
  const double range_s = seconds_between(query.range.from, query.range.to);
  const double step_s = step_of(query.range);
  History out;
  if (query.grain) {
    out.grain = *query.grain;
    if (out.grain == Grain::raw && range_s > kMostRawSeconds)
      return fail(
          fmt::format("raw samples cover at most {:.0f} hours per request; shorten the range, or use resolution=minute",
                      kMostRawSeconds / 3600));
  } else {
    const auto raw = (*reader)->raw_extent();
    if (!raw) return fail(raw.error());
    const bool raw_reaches = *raw && (*raw)->first <= query.range.from + from_seconds(60);
    // Minutes instead of raw samples would show too few points; if all data is more recent than the start of the range,
    // raw covers it.
    const auto all = raw_reaches ? Result<std::vector<SeriesExtent>>() : (*reader)->series();
    const bool raw_is_all =
        !raw_reaches && *raw && all &&
        std::all_of(all->begin(), all->end(), [&](const SeriesExtent& e) { return e.first >= (*raw)->first; });
    if (step_s < 60 && range_s <= kMostRawSeconds && (raw_reaches || raw_is_all))
      out.grain = Grain::raw;
    else
      out.grain = step_s < 3600 ? Grain::minute : Grain::hour;
  }
  std::vector<Buckets> buckets(query.keys.size(), Buckets(query.range));
  if (out.grain == Grain::raw) {
    if (Status read = read_raw(**reader, query, buckets); !read) return fail(read.error());
  } else {
    for (std::size_t i = 0; i < query.keys.size(); ++i)
      if (Status read = read_rollups(**reader, query.keys[i], out.grain, query, buckets[i]); !read)
        return fail(read.error());
  }
  out.step_s = std::max(step_s, out.grain == Grain::raw ? 0.0 : out.grain == Grain::minute ? 60.0 : 3600.0);
  for (Buckets& b : buckets) out.series.push_back(b.take());
  return out;
}

Result<GaugeHistory> read_gauges(const std::string& store_path, const std::string& device_id,
                                 const HistoryRange& range) {
  auto reader = StoreReader::open(store_path);
  if (!reader) return fail(reader.error());
  const auto minutes = (*reader)->device_minutes(device_id, {range.from, range.to});
  if (!minutes) return fail(minutes.error());
  GaugeHistory out;
  out.step_s = std::max(60.0, step_of(range));
  const Buckets buckets(range);
  std::optional<std::size_t> last;
  const auto raise = [](std::vector<std::optional<double>>& column, const std::optional<double>& figure) {
    column.back() = std::max(column.back(), figure);  // nullopt is less than any figure
  };
  for (const DeviceMinute& minute : *minutes) {
    if (const std::size_t bucket = buckets.bucket_of(minute.start); last != bucket) {
      last = bucket;
      out.time_s.push_back(seconds(minute.start));
      for (auto* column : {&out.busy, &out.temperature_celsius, &out.power_watts, &out.sm_clock_hertz})
        column->emplace_back();
    }
    raise(out.busy, minute.busy_ratio);
    raise(out.temperature_celsius, minute.temperature_celsius);
    raise(out.power_watts, minute.power_watts);
    raise(out.sm_clock_hertz, minute.sm_clock_hertz);
  }
  return out;
}

}  // namespace vramtrack::agent
