#include "top/store_history.hpp"

#include <algorithm>

namespace vramtrack::top {
namespace {

constexpr std::size_t kMostKept = 24;
/// Individual samples are read for at most this time span, which is decoded in tens of milliseconds.
constexpr double kLongestSamples_s = 3 * 3600;

Point point_of(const Rollup& rollup, Duration length) {
  return {rollup.start, rollup.start + length,           static_cast<double>(rollup.min),
          rollup.mean,  static_cast<double>(rollup.max), rollup.count};
}

}  // namespace

Result<StoreHistory> StoreHistory::open(const std::string& path) {
  auto reader = StoreReader::open(path);
  if (!reader) return fail(reader.error());
  StoreHistory history(std::move(*reader));
  auto series = history.reader_->series();
  if (!series) return fail(series.error());
  history.series_ = std::move(*series);
  return history;
}

std::optional<Timestamp> StoreHistory::begin(const SeriesKey& key) const {
  const auto it = std::find_if(series_.begin(), series_.end(), [&](const SeriesExtent& s) { return s.key == key; });
  if (it == series_.end()) return std::nullopt;
  return it->first;
}

std::optional<std::pair<Timestamp, Timestamp>> StoreHistory::extent() const {
  if (series_.empty()) return std::nullopt;
  std::pair all{series_.front().first, series_.front().last};
  for (const SeriesExtent& s : series_) all = {std::min(all.first, s.first), std::max(all.second, s.last)};
  return all;
}

std::vector<Point> StoreHistory::points(const SeriesKey& key, Timestamp from, Timestamp to, std::size_t most) {
  const double span_s = seconds_between(from, to);
  if (!(span_s > 0) || most == 0 || !begin(key)) return {};
  // Use the coarsest resolution that still gives every second column its own point.
  const double per_point_s = span_s / static_cast<double>(most);
  const Grain grain = per_point_s >= 1800                               ? Grain::hour
                      : per_point_s >= 30 || span_s > kLongestSamples_s ? Grain::minute
                                                                        : Grain::sample;
  auto it = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& k) {
    return k.key == key && k.grain == grain && k.from <= from && k.to >= to;
  });
  if (it == kept_.end()) {
    // Read more than requested on both sides, so that panning and new samples need no reading for a while.
    const Duration margin = from_seconds(span_s / 2);
    std::erase_if(kept_, [&](const Kept& k) { return k.key == key && k.grain == grain; });
    kept_.push_front({key, grain, from - margin, to + margin, read(key, grain, from - margin, to + margin)});
    if (kept_.size() > kMostKept) kept_.pop_back();
  } else {
    kept_.splice(kept_.begin(), kept_, it);
  }
  return resample(kept_.front().points, from, to, most);
}

std::vector<Point> StoreHistory::read(const SeriesKey& key, Grain grain, Timestamp from, Timestamp to) {
  std::vector<Point> out;
  if (grain != Grain::sample) {
    const bool hours = grain == Grain::hour;
    const auto rollups = reader_->rollups(key, hours ? Resolution::hour : Resolution::minute, {from, to});
    if (!rollups) {
      error_ = rollups.error().message;
      return out;
    }
    const Duration length = hours ? Duration{std::chrono::hours{1}} : Duration{std::chrono::minutes{1}};
    for (const Rollup& rollup : *rollups) out.push_back(point_of(rollup, length));
    // Minutes are dropped after their retention time; hours stay.
    if (!hours && (out.empty() || out.front().from - from > std::chrono::hours{2})) {
      const Timestamp until = out.empty() ? to : out.front().from;
      std::vector<Point> older = read(key, Grain::hour, from, until);
      older.insert(older.end(), out.begin(), out.end());
      return older;
    }
    return out;
  }
  Catalog catalog;
  Batch batch;
  reader_->select({from, to});
  for (bool more = true; more;) {
    const auto read = reader_->read(catalog, batch);
    if (!read) {
      error_ = read.error().message;
      continue;  // the next call continues after the damage
    }
    more = *read;
    const auto id = catalog.find(key);
    if (!id) continue;
    for (const Sample& sample : batch.samples) {
      if (sample.series != *id || sample.time < from || sample.time >= to) continue;
      const auto bytes = static_cast<double>(sample.bytes);
      out.push_back({sample.time, sample.time, bytes, bytes, bytes, 1});
    }
  }
  // Samples may also be deleted early.
  if (out.empty()) return read(key, Grain::minute, from, to);
  return out;
}

}  // namespace vramtrack::top
