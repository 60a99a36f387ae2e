// The answers of Prometheus's HTTP API, /api/v1/query_range and /api/v1/query (see its documentation, "HTTP API"):
//
//   {"status": "success", "data": {"resultType": "matrix", "result": [
//     {"metric": {"__name__": "DCGM_FI_DEV_FB_USED", "gpu": "0", "UUID": "GPU-..."},
//      "values": [[1772359200, "4845"], [1772359215, "4846"]]}, ...]}}
//
// A series is one object and is read when it is complete; the document around them is never in memory.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "core/units.hpp"
#include "source/log/json_parser.hpp"
#include "source/log/prometheus_metric.hpp"
#include "source/log/recording.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using Field = DumpReadings::Field;

/// Used and free memory of a GPU are two series: so many times of each are remembered until they meet.
constexpr std::size_t kRemembered = 64;

struct Point {
  Timestamp time;
  std::uint64_t bytes = 0;
};

bool is_pair(const JsonValue& pair) {
  return pair.is_array() && pair.members().size() == 2 && pair.members()[0].second.is_number() &&
         pair.members()[1].second.is_string();
}

/// [1772359200.123, "4845"]: false when it is none, or no number ("NaN").
bool read_point(const JsonValue& pair, std::uint64_t unit, Point& out) {
  if (!is_pair(pair)) return false;
  const double seconds = pair.members()[0].second.number();
  if (!(seconds >= 9e8 && seconds < 4.1e9)) return false;
  out.time = Timestamp{std::chrono::milliseconds{std::llround(seconds * 1000)}};
  return logtext::read_amount(pair.members()[1].second.text(), unit, out.bytes) == logtext::Amount::read;
}

class PrometheusRange final : public JsonParser {
 public:
  explicit PrometheusRange(std::uint64_t unit) : JsonParser("result"), unit_(unit) {}

  void finish(LogRows& rows) override {
    JsonParser::finish(rows);
    for (const std::string& name : other_)
      rows.warn(fmt::format("the metric {} is not the used, free or total memory of a GPU and is not read", name));
    for (const auto& [id, gpu] : gpus_)
      if (!gpu.has_used && gpu.device != SIZE_MAX)
        return rows.warn(
            fmt::format("GPU {} has free or total memory, but no used memory; query DCGM_FI_DEV_FB_USED as well", id));
  }
  [[nodiscard]] bool clock_is_relative() const override { return false; }
  [[nodiscard]] bool lists_series_in_turn() const override { return true; }

 private:
  struct Gpu {
    std::size_t device = SIZE_MAX;
    bool has_used = false;
    bool has_total = false;
    std::vector<Point> used, free;  ///< the first ones of each
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
    const LogDevice named = gpu_of_labels(labels);
    Gpu& gpu = gpus_[device_id(named)];
    if (gpu.device == SIZE_MAX) gpu.device = rows.device(named);
    if (const JsonValue* const value = series.find("value")) read_value(*value, *metric, line, gpu, rows);
    if (const JsonValue* const values = series.find("values"))
      for (const auto& [ignored, pair] : values->members()) read_value(pair, *metric, line, gpu, rows);
  }

  /// By the name; an expression such as max by (gpu) (...) has none and is taken for used memory.
  std::optional<PrometheusMetric> meaning(const PrometheusLabels& labels, LogRows& rows) {
    const auto name = std::find_if(labels.begin(), labels.end(), [](const auto& l) { return l.first == "__name__"; });
    std::optional<PrometheusMetric> metric;
    if (name != labels.end()) {
      metric = gpu_memory_metric(name->second);
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
                ? std::string("the query is an expression: its values are taken for used memory in MiB; else give "
                              "--unit, or query the metric itself")
                : fmt::format("the metric {} does not name its unit: MiB is assumed; else give --unit", name->second));
    }
    return metric;
  }

  void read_value(const JsonValue& pair, const PrometheusMetric& metric, std::uint64_t line, Gpu& gpu, LogRows& rows) {
    Point point;
    if (!read_point(pair, metric.unit_bytes, point)) {
      const bool missing = is_pair(pair) && pair.members()[1].second.text() == "NaN";
      return missing ? void() : rows.skip(line, "no [seconds, \"bytes\"] in the values of a series");
    }
    if (metric.field == Field::total) {
      gpu.has_total = true;
      return rows.total(point.time, gpu.device, point.bytes);
    }
    std::vector<Point>& mine = metric.field == Field::used ? gpu.used : gpu.free;
    const std::vector<Point>& others = metric.field == Field::used ? gpu.free : gpu.used;
    if (mine.size() < kRemembered) mine.push_back(point);
    if (!gpu.has_total) {
      const auto same =
          std::find_if(others.begin(), others.end(), [&](const Point& o) { return o.time == point.time; });
      if (same != others.end()) {
        gpu.has_total = true;
        rows.total(point.time, gpu.device, point.bytes + same->bytes);
      }
    }
    if (metric.field != Field::used) return;
    gpu.has_used = true;
    rows.add(point.time, rows.device_series(gpu.device), point.bytes);
  }

  std::uint64_t unit_ = 0;
  std::unordered_map<std::string, Gpu> gpus_;
  std::vector<std::string> other_;
};

int recognise(std::string_view head) {
  const std::string_view start = head.substr(0, 4096);
  const bool ranged = start.find("\"matrix\"") != std::string_view::npos;
  const bool instant = start.find("\"vector\"") != std::string_view::npos;
  return start.find("\"resultType\"") != std::string_view::npos && (ranged || instant) ? 95 : 0;
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  const auto unit = unit_of(*head.options);
  if (!unit) return fail(unit.error());
  if (head.text.find("\"metric\"") == std::string_view::npos)
    return fail("the query found no series; query for example DCGM_FI_DEV_FB_USED");
  return std::make_unique<PrometheusRange>(*unit);
}

}  // namespace

extern const LogFormatInfo prometheus_range_log_format;
const LogFormatInfo prometheus_range_log_format{
    "prometheus-range",
    "curl -G prometheus:9090/api/v1/query_range -d 'query={__name__=~\"DCGM_FI_DEV_FB_(USED|FREE)\"}' -d "
    "start=... -d end=... -d step=15s",
    recognise, make};

}  // namespace vramtrack
