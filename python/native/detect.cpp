// One series through the engine: the verdict a live watch of the same samples would have given, as an analysis line.
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "bindings.hpp"
#include "core/settings.hpp"
#include "engine/engine.hpp"
#include "report/report.hpp"

namespace vramtrack::python {
namespace {

constexpr std::size_t kChunk = 8192;  // samples a batch: they stay in the cache
constexpr double kFirstDate_s = 1e8;  // 1973: times below are seconds since some beginning
constexpr double kMost_s = 9e9;       // what nanoseconds in 64 bits hold
constexpr double kMostBytes = 1.8e19;

Result<Config> configure(const std::vector<std::string>& settings) {
  LayeredConfig layers;
  for (const std::string& assignment : settings)
    if (auto ok = layers.apply_assignment(assignment, "settings"); !ok) return fail(ok.error());
  if (auto ok = layers.check(); !ok) return fail(ok.error());
  return layers.config();
}

Status check(const double* times_s, const double* used_bytes, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    if (!(std::abs(times_s[i]) <= kMost_s))
      return fail(
          fmt::format("times_s[{}] is {}: expected seconds, since 1970 or since the first sample", i, times_s[i]));
    if (i > 0 && times_s[i] < times_s[i - 1])
      return fail(fmt::format("times_s[{}] is {}, earlier than the one before it ({}): sort the samples by time", i,
                              times_s[i], times_s[i - 1]));
    if (used_bytes[i] < 0 || used_bytes[i] > kMostBytes)
      return fail(fmt::format("used_bytes[{}] is {}: expected bytes, 0 or more; NaN where there is no value", i,
                              used_bytes[i]));
  }
  return {};
}

constexpr std::size_t kPoints = 600;  // of the chart

/// What Python gets: the line, the words, and the series as few enough stretches to draw, each with its range.
struct Analysis {
  std::string line;
  std::string text;
  std::vector<double> times_s;
  std::vector<double> low_bytes;
  std::vector<double> high_bytes;
};

void thin_out(const double* times_s, const double* used_bytes, std::size_t n, Analysis& out) {
  const std::size_t stretches = std::min(n, kPoints);
  for (std::size_t k = 0; k < stretches; ++k) {
    const std::size_t begin = k * n / stretches;
    const std::size_t end = (k + 1) * n / stretches;
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (std::size_t i = begin; i < end; ++i) {
      if (std::isnan(used_bytes[i])) continue;
      low = std::min(low, used_bytes[i]);
      high = std::max(high, used_bytes[i]);
    }
    if (low > high) continue;
    out.times_s.push_back(times_s[end - 1]);
    out.low_bytes.push_back(low);
    out.high_bytes.push_back(high);
  }
}

Result<Analysis> analyze(const double* times_s, const double* used_bytes, std::size_t n,
                         std::optional<double> capacity_bytes, const std::string& metric,
                         const std::vector<std::string>& settings, bool explain, unsigned device_id) {
  const auto kind = parse_metric(metric);
  if (!kind)
    return fail(
        fmt::format("unknown metric '{}'; expected device_used, process_used, allocator_allocated, "
                    "allocator_reserved, device_reserved or probe_live",
                    metric));
  if (capacity_bytes && !(*capacity_bytes > 0 && *capacity_bytes <= kMostBytes))
    return fail(
        fmt::format("capacity_bytes is {}: expected bytes above 0, or None where it is not known", *capacity_bytes));
  if (auto ok = check(times_s, used_bytes, n); !ok) return fail(ok.error());
  const auto config = configure(settings);
  if (!config) return fail(config.error());

  Catalog catalog;
  catalog.clock_is_relative = n == 0 || times_s[0] < kFirstDate_s;
  DeviceInfo device;
  device.id = std::to_string(device_id);
  if (capacity_bytes) device.capacity_bytes = static_cast<std::uint64_t>(*capacity_bytes);
  catalog.describe(device);
  const SeriesId series = catalog.intern({*kind, device.id, 0, 0});
  Engine engine(*config, catalog);
  Batch batch;
  batch.samples.reserve(std::min(n, kChunk));
  for (std::size_t begin = 0; begin < n; begin += kChunk) {
    batch.clear();
    for (std::size_t i = begin; i < std::min(n, begin + kChunk); ++i)
      if (!std::isnan(used_bytes[i]))
        batch.samples.push_back(
            {Timestamp(from_seconds(times_s[i])), series, static_cast<std::uint64_t>(used_bytes[i])});
    engine.ingest(batch);
  }
  engine.finish();
  const std::shared_ptr<const View> view = engine.view(explain);
  Analysis analysis;
  analysis.line = find_report("json")->render(*view, {});
  analysis.text = find_report("text")->render(*view, {});
  thin_out(times_s, used_bytes, n, analysis);
  return analysis;
}

Analysis analyze_columns(const Column& times_s, const Column& used_bytes, std::optional<double> capacity_bytes,
                         const std::string& metric, const std::vector<std::string>& settings, bool explain,
                         unsigned device_id) {
  if (times_s.size() != used_bytes.size())
    throw nb::value_error(
        fmt::format("times_s has {} values and used_bytes {}: expected as many", times_s.size(), used_bytes.size())
            .c_str());
  Result<Analysis> analysis;
  {
    const GilReleased released;
    analysis = analyze(times_s.data(), used_bytes.data(), times_s.size(), capacity_bytes, metric, settings, explain,
                       device_id);
  }
  return value_or_raise(std::move(analysis));
}

/// The largest value there is, NaN aside; 0 where there is none.
double largest(const Column& values) {
  double most = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    most = std::max(most, std::isnan(values.data()[i]) ? 0 : values.data()[i]);
  return most;
}

}  // namespace

void add_detect(nb::module_& module) {
  nb::class_<Analysis>(module, "Analysis")
      .def_ro("line", &Analysis::line)
      .def_ro("text", &Analysis::text)
      .def_ro("times_s", &Analysis::times_s)
      .def_ro("low_bytes", &Analysis::low_bytes)
      .def_ro("high_bytes", &Analysis::high_bytes);
  module.def("largest", &largest, nb::arg("values").noconvert());
  module.def("analyze", &analyze_columns, nb::arg("times_s").noconvert(), nb::arg("used_bytes").noconvert(),
             nb::arg("capacity_bytes").none(), nb::arg("metric"), nb::arg("settings"), nb::arg("explain"),
             nb::arg("device_id"),
             "The vramtrack.analysis.v1 line (empty when there is no sample), its words, and the series thinned out.");
}

}  // namespace vramtrack::python
