// The leak gate's statistics, shared with `vramtrack test`.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <utility>

#include "bindings.hpp"
#include "core/format.hpp"
#include "gate/leak_gate.hpp"

namespace vramtrack::python {
namespace {

gate::GrowthLimits limits(double limit_bytes, double error_rate, std::size_t contaminated_blocks,
                          const std::string& unit) {
  if (!(limit_bytes >= 0 && limit_bytes < 1e18))
    throw nb::value_error("the limit must be 0 bytes per iteration or more");
  if (!(error_rate >= 1e-6 && error_rate <= 0.05)) throw nb::value_error("error_rate must be from 1e-6 to 0.05");
  if (contaminated_blocks > 16) throw nb::value_error("contaminated_blocks must be from 0 to 16");
  gate::GrowthLimits limits{limit_bytes, error_rate, contaminated_blocks};
  limits.unit = unit;
  return limits;
}

}  // namespace

void add_gate(nb::module_& module) {
  using gate::GrowthResult;
  nb::class_<GrowthResult>(module, "GrowthResult")
      .def_prop_ro("outcome", [](const GrowthResult& r) { return std::string(to_string(r.outcome)); })
      .def_prop_ro("failed", [](const GrowthResult& r) { return r.outcome == gate::Outcome::fails; })
      .def_prop_ro("passed", [](const GrowthResult& r) { return r.outcome == gate::Outcome::passes; })
      .def_ro("iterations", &GrowthResult::iterations)
      .def_ro("warm_up_iterations", &GrowthResult::warm_up_iterations)
      .def_ro("blocks", &GrowthResult::blocks)
      .def_ro("growth_bytes", &GrowthResult::growth_bytes)
      .def_ro("low_bytes", &GrowthResult::low_bytes)
      .def_ro("high_bytes", &GrowthResult::high_bytes)
      .def_ro("late_to_early", &GrowthResult::late_to_early)
      .def_ro("settled", &GrowthResult::settled)
      .def_ro("nothing_measured", &GrowthResult::nothing_measured)
      .def_ro("because", &GrowthResult::because)
      .def("__repr__", [](const GrowthResult& r) {
        return "<GrowthResult " + std::string(to_string(r.outcome)) + ": " + r.because + ">";
      });
  module.def(
      "test_growth",
      [](const Column& used_bytes, double limit_bytes, double error_rate, std::size_t contaminated_blocks,
         const std::string& unit) {
        return gate::test_growth({used_bytes.data(), used_bytes.size()},
                                 limits(limit_bytes, error_rate, contaminated_blocks, unit));
      },
      nb::arg("used_bytes").noconvert(), nb::arg("limit_bytes"), nb::arg("error_rate"), nb::arg("contaminated_blocks"),
      nb::arg("unit"));
  module.def(
      "test_short_growth",
      [](const Column& used_bytes, double error_rate, double rise_bytes, double least_bytes) {
        if (used_bytes.size() < 3) throw nb::value_error("at least three values");
        const gate::ShortGrowth growth =
            gate::test_short_growth({used_bytes.data(), used_bytes.size()}, error_rate, rise_bytes, least_bytes);
        return std::pair(growth.grows, growth.p_value);
      },
      nb::arg("used_bytes").noconvert(), nb::arg("error_rate"), nb::arg("rise_bytes"), nb::arg("least_bytes"));
  nb::class_<gate::LeakGate>(module, "LeakGate")
      .def(
          "__init__",
          [](gate::LeakGate* self, double limit_bytes, double error_rate, std::size_t first, std::size_t most,
             std::size_t contaminated_blocks, const std::string& unit, double capacity_bytes) {
            if (most > 10'000'000) throw nb::value_error("at most 10,000,000 iterations");
            gate::GrowthLimits of_gate = limits(limit_bytes, error_rate, contaminated_blocks, unit);
            of_gate.zeros_are_counted = true;  // what nobody counts is added as NaN
            new (self) gate::LeakGate(of_gate, {first, most},
                                      capacity_bytes > 0 ? capacity_bytes : std::numeric_limits<double>::infinity());
          },
          nb::arg("limit_bytes"), nb::arg("error_rate"), nb::arg("first"), nb::arg("most"),
          nb::arg("contaminated_blocks"), nb::arg("unit"), nb::arg("capacity_bytes") = 0.0)
      .def("add", &gate::LeakGate::add, nb::arg("used_bytes"))
      .def_prop_ro("finished", &gate::LeakGate::finished)
      .def_prop_ro("result", [](const gate::LeakGate& g) { return g.result(); })
      .def_prop_ro("most", [](const gate::LeakGate& g) { return g.iterations().most; })
      .def_prop_ro("used_bytes", [](const gate::LeakGate& g) { return g.used_bytes(); });
  module.def(
      "parse_growth_limit", [](const std::string& text) { return value_or_raise(gate::parse_growth_limit(text)); },
      nb::arg("text"));
  module.def(
      "growth_text", [](double bytes) { return format_growth(bytes); }, nb::arg("bytes_per_iteration"));
  module.def("error_rate_words", &gate::error_rate_words, nb::arg("error_rate"));
}

}  // namespace vramtrack::python
