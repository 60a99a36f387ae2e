// Verdicts: on a whole series at once, and on one that is still going on.
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "bindings.hpp"
#include "stream.hpp"

namespace vramtrack::python {
namespace {

Result<Analysis> analyze(const Column& times_s, const Column& used_bytes, std::optional<double> capacity_bytes,
                         const std::string& metric, const std::vector<std::string>& settings, bool explain,
                         unsigned device_id) {
  auto stream = Stream::open(metric, settings, device_id);
  if (!stream) return fail(stream.error());
  if (capacity_bytes)
    if (auto ok = stream->set_capacity(*capacity_bytes); !ok) return fail(ok.error());
  if (auto ok = stream->observe(times_s.data(), used_bytes.data(), times_s.size()); !ok) return fail(ok.error());
  return stream->final_analysis(explain);
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
    analysis = analyze(times_s, used_bytes, capacity_bytes, metric, settings, explain, device_id);
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
      .def_ro("mean_bytes", &Analysis::mean_bytes)
      .def_ro("high_bytes", &Analysis::high_bytes);
  nb::class_<Stream>(module, "Stream")
      .def(
          "__init__",
          [](Stream* self, const std::string& metric, const std::vector<std::string>& settings, unsigned device_id) {
            new (self) Stream(value_or_raise(Stream::open(metric, settings, device_id)));
          },
          nb::arg("metric"), nb::arg("settings"), nb::arg("device_id"))
      .def(
          "set_capacity", [](Stream& s, double bytes) { check_or_raise(s.set_capacity(bytes)); },
          nb::arg("capacity_bytes"))
      .def(
          "observe",
          [](Stream& s, double time_s, double used_bytes) { check_or_raise(s.observe(&time_s, &used_bytes, 1)); },
          nb::arg("time_s"), nb::arg("used_bytes"), "The next sample; NaN where nothing could be read.")
      .def(
          "set_ceiling",
          [](Stream& s, const std::string& metric, double bytes) { check_or_raise(s.set_ceiling(metric, bytes)); },
          nb::arg("metric"), nb::arg("bytes"))
      .def(
          "observe_beside",
          [](Stream& s, const std::string& metric, double time_s, double used_bytes) {
            check_or_raise(s.observe_beside(metric, time_s, used_bytes));
          },
          nb::arg("metric"), nb::arg("time_s"), nb::arg("used_bytes"),
          "The same of another metric of the same process and device.")
      .def(
          "works", [](Stream& s, double time_s) { check_or_raise(s.works(time_s)); }, nb::arg("time_s"),
          "The program works at this time.")
      .def("analysis", &Stream::analysis, nb::arg("explain"), "The verdict so far.")
      .def("final_analysis", &Stream::final_analysis, nb::arg("explain"), "The verdict where nothing more will come.")
      .def(
          "analysis_beside",
          [](Stream& s, const std::string& metric, bool explain) {
            return value_or_raise(s.analysis_beside(metric, explain));
          },
          nb::arg("metric"), nb::arg("explain"), "The verdict so far of another metric.");
  module.def("largest", &largest, nb::arg("values").noconvert());
  module.def("analyze", &analyze_columns, nb::arg("times_s").noconvert(), nb::arg("used_bytes").noconvert(),
             nb::arg("capacity_bytes").none(), nb::arg("metric"), nb::arg("settings"), nb::arg("explain"),
             nb::arg("device_id"),
             "The vramtrack.analysis.v1 line (empty when there is no sample), its words, and the series thinned out.");
}

}  // namespace vramtrack::python
