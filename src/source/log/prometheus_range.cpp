// The answers of Prometheus's HTTP API, /api/v1/query_range and /api/v1/query (see its documentation, "HTTP API"):
//
//   {"status": "success", "data": {"resultType": "matrix", "result": [
//     {"metric": {"__name__": "DCGM_FI_DEV_FB_USED", "gpu": "0", "UUID": "GPU-..."},
//      "values": [[1772359200, "4845"], [1772359215, "4846"]]}, ...]}}
//
// A series is one object and is read when it is complete; the document around the series is never in memory. The
// series come one after another: their values are sorted by time when all are known.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <tuple>
#include <unordered_map>

#include "core/option.hpp"
#include "core/units.hpp"
#include "source/log/dump_readings.hpp"
#include "source/log/json.hpp"
#include "source/log/owners.hpp"
#include "source/log/prometheus_metric.hpp"
#include "source/log/recording.hpp"
#include "source/log/text.hpp"
#include "source/log/unit.hpp"

namespace vramtrack {
namespace {

using Field = DumpReadings::Field;

/// 768 MiB of memory.
constexpr std::size_t kMostPoints = 32'000'000;

struct Point {
  Timestamp time;
  std::uint64_t bytes = 0;
  std::uint32_t owner = 0;  ///< position of its series, or, once these are known, of its GPU
  Field field = Field::used;
};

/// Of equal figures, the largest comes last, and counts.
bool earlier(const Point& a, const Point& b) {
  return std::tie(a.time, a.owner, a.field, a.bytes) < std::tie(b.time, b.owner, b.field, b.bytes);
}

bool is_pair(const JsonValue& pair) {
  return pair.is_array() && pair.members().size() == 2 && pair.members()[0].second.is_number() &&
         pair.members()[1].second.is_string();
}

/// [1772359200.123, "4845"]: false when `pair` is not such a pair, or its value is not a number ("NaN").
bool read_point(const JsonValue& pair, std::uint64_t unit, Point& out) {
  if (!is_pair(pair)) return false;
  const double seconds = pair.members()[0].second.number();
  if (!(seconds >= 9e8 && seconds < 4.1e9)) return false;
  out.time = Timestamp{std::chrono::milliseconds{std::llround(seconds * 1000)}};
  return logtext::read_amount(pair.members()[1].second.text(), unit, out.bytes) == logtext::Amount::read;
}

class PrometheusRange final : public DumpParser<JsonParser> {
 public:
  PrometheusRange(DumpClock clock, std::vector<std::string> assumptions, bool own_times, std::uint64_t unit)
      : DumpParser(std::move(clock), std::move(assumptions), own_times), unit_(unit) {
    read_array("result");
  }

  void finish(LogRows& rows) override {
    find_gpus(rows);
    std::sort(points_.begin(), points_.end(), earlier);
    for (const Point& point : points_)
      readings_.set_at(point.time, gpus_[point.owner].named, point.field, point.bytes, rows);
    points_ = {};
    DumpParser::finish(rows);
    for (const std::string& name : other_)
      rows.warn(fmt::format("the metric {} is not the used, free or total memory of a GPU and is not read", name));
    for (const Gpu& gpu : gpus_)
      if (!gpu.has(Field::used) && !gpu.has(Field::percent) && !(gpu.has(Field::free) && gpu.has(Field::total)))
        return rows.warn(
            fmt::format("GPU {} has free or total memory, but no used memory; query DCGM_FI_DEV_FB_USED as well",
                        rows.device_id(rows.device(gpu.named))));
  }

 private:
  struct Gpu {
    LogDevice named;
    unsigned fields = 0;  ///< a bit for each

    [[nodiscard]] bool has(Field field) const { return (fields & (1U << static_cast<unsigned>(field))) != 0; }
  };

  struct Series {
    std::string metric;  ///< its name; empty: the query is an expression
    PrometheusLabels labels;
  };

  void read_object(const JsonValue& series, std::uint64_t line, LogRows& rows) override {
    const JsonValue* const named_by = series.find("metric");
    if (named_by == nullptr || !named_by->is_object())
      return rows.skip(line, "no \"metric\" in an element of \"result\"");
    PrometheusLabels labels;
    for (const auto& [key, value] : named_by->members())
      if (value.is_string()) labels.emplace_back(key, value.text());
    const auto metric = meaning(labels, rows);
    if (!metric) return;
    const auto name =
        std::find_if(labels.begin(), labels.end(), [](const auto& one) { return one.first == "__name__"; });
    const auto at = static_cast<std::uint32_t>(series_.size());
    for (const auto& [key, value] : labels) rows.keeps_text(key.size() + value.size());
    series_.push_back({name == labels.end() ? std::string() : name->second, std::move(labels)});
    if (const JsonValue* const value = series.find("value")) read_value(*value, *metric, line, at, rows);
    if (const JsonValue* const values = series.find("values"))
      for (const auto& [ignored, pair] : values->members()) read_value(pair, *metric, line, at, rows);
  }

  /// Finds the GPUs by the labels of all series, and puts them into the points. No label is known to be that of a
  /// process.
  void find_gpus(LogRows& rows) {
    constexpr std::size_t kMostPlanned = 100'000;
    std::sort(points_.begin(), points_.end(), earlier);
    const std::size_t every = points_.size() / kMostPlanned + 1;  // of the times
    std::deque<std::string> times;
    std::vector<LabelledSample> samples;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const Point& point = points_[i];
      if (i == 0 || point.time != points_[i - 1].time) times.push_back(std::to_string(times.size()));
      const bool is_in_use = point.field == Field::used || point.field == Field::percent || point.field == Field::free;
      const Series& series = series_[point.owner];
      if (is_in_use && (times.size() - 1) % every == 0)
        samples.push_back({series.metric, &series.labels, times.back(), static_cast<double>(point.bytes)});
    }
    const LabelPlan plan = plan_labels(samples, false);
    if (!plan.distinguishing.empty()) rows.warn(distinguished_by_fields(plan.distinguishing));
    std::unordered_map<std::string, std::uint32_t> gpu_of;
    std::vector<std::uint32_t> gpu_of_series;
    for (const Series& series : series_) {
      const LogDevice named = owner_of_labels(series.labels, series.metric, plan).gpu;
      const auto [known, fresh] = gpu_of.try_emplace(device_id(named), static_cast<std::uint32_t>(gpus_.size()));
      if (fresh) gpus_.push_back({named});
      gpu_of_series.push_back(known->second);
    }
    for (Point& point : points_) {
      point.owner = gpu_of_series[point.owner];
      gpus_[point.owner].fields |= 1U << static_cast<unsigned>(point.field);
    }
  }

  /// The meaning from the name; an expression such as max by (gpu) (...) has no name and is read as used memory.
  std::optional<PrometheusMetric> meaning(const PrometheusLabels& labels, LogRows& rows) {
    const auto name = std::find_if(labels.begin(), labels.end(), [](const auto& l) { return l.first == "__name__"; });
    std::optional<PrometheusMetric> metric;
    if (name != labels.end()) {
      metric = gpu_metric(name->second);
      if (metric && metric->field == Field::allocated) metric->field = Field::used;
      if (metric && metric->field == Field::reserved) metric.reset();
      if (!metric && other_.size() < 4 && std::find(other_.begin(), other_.end(), name->second) == other_.end())
        other_.push_back(name->second);
    } else {
      metric.emplace();
    }
    if (metric && metric->unit_bytes == 0) {
      metric->unit_bytes = unit_ != 0 ? unit_ : kBytesPerMiB;
      if (unit_ == 0)
        rows.warn(
            name == labels.end()
                ? fmt::format("the query is an expression: its values are assumed to be used memory in MiB; if they "
                              "are not, give {} or query the metric itself",
                              name_of(Option::unit))
                : fmt::format("the metric {} does not name its unit: MiB is assumed; if that is wrong, give {}",
                              name->second, name_of(Option::unit)));
    }
    return metric;
  }

  void read_value(const JsonValue& pair, const PrometheusMetric& metric, std::uint64_t line, std::uint32_t series,
                  LogRows& rows) {
    Point point;
    point.owner = series;
    point.field = metric.field;
    if (!read_point(pair, metric.unit_bytes, point)) {
      const bool missing = is_pair(pair) && pair.members()[1].second.text() == "NaN";
      return missing ? void() : rows.skip(line, "no [seconds, \"bytes\"] in the values of a series");
    }
    if (metric.field == Field::busy) point.bytes = percent_of_ratio(point.bytes);
    if (points_.size() == kMostPoints)
      return rows.refuse(
          fmt::format("{}: more than {} million values, the most that can be put in order of time; query a "
                      "shorter time or a longer step",
                      rows.file(), kMostPoints / 1'000'000));
    points_.push_back(point);
  }

  std::uint64_t unit_ = 0;
  std::vector<Gpu> gpus_;
  std::vector<Series> series_;
  std::vector<Point> points_;
  std::vector<std::string> other_;
};

Evidence recognise(std::string_view head) {
  const std::string_view start = head.substr(0, 4096);
  const bool ranged = start.find("\"matrix\"") != std::string_view::npos;
  const bool instant = start.find("\"vector\"") != std::string_view::npos;
  return start.find("\"resultType\"") != std::string_view::npos && (ranged || instant) ? Evidence::own_mark
                                                                                       : Evidence::none;
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  const auto unit = unit_of(*head.options);
  if (!unit) return fail(unit.error());
  if (head.text.find("\"metric\"") == std::string_view::npos)
    return fail("the query found no series; query for example DCGM_FI_DEV_FB_USED");
  return make_dump_parser<PrometheusRange>(head, {}, true, *unit);
}

}  // namespace

const LogFormatInfo prometheus_range_log_format{
    "prometheus-range",
    "curl -G prometheus:9090/api/v1/query_range -d 'query={__name__=~\"DCGM_FI_DEV_FB_(USED|FREE)\"}' -d "
    "start=... -d end=... -d step=15s",
    recognise,
    make,
    nullptr,
    false};

}  // namespace vramtrack
