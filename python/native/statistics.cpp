// The straight line through points, for MemoryAnalyzer; the binomial distribution, for the sign test; texts made
// printable.
#include "core/statistics.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cmath>
#include <tuple>

#include "bindings.hpp"
#include "core/moments.hpp"
#include "core/printable.hpp"

namespace vramtrack::python {
namespace {

/// (slope, r, two-sided p) of least squares of y on x, the points taken as independent: what the document states.
/// (0, 0, 1) where there is no line.
std::tuple<double, double, double> linear_fit(const Column& x, const Column& y) {
  if (x.size() != y.size()) throw nb::value_error("x and y differ in length");
  Moments moments;
  for (std::size_t i = 0; i < x.size(); ++i) moments.add(x.data()[i], y.data()[i]);
  if (moments.n < 3 || moments.tt <= 0 || moments.yy <= 0) return {0, 0, 1};
  const double slope = moments.ty / moments.tt;
  const double r = std::min(1.0, std::max(-1.0, moments.ty / std::sqrt(moments.tt * moments.yy)));
  const double degrees = moments.n - 2;
  if (std::abs(r) >= 1) return {slope, r, 0};
  const double t = r * std::sqrt(degrees / (1 - r * r));
  return {slope, r, 2 * students_t_cdf(-std::abs(t), degrees)};
}

}  // namespace

void add_statistics(nb::module_& module) {
  module.def("linear_fit", &linear_fit, nb::arg("x").noconvert(), nb::arg("y").noconvert());
  module.def(
      "binomial_cdf",
      [](std::size_t successes, std::size_t trials, double probability) {
        if (successes > trials || !(probability >= 0 && probability <= 1))
          throw nb::value_error("expected successes of as many trials or more, and a probability");
        return binomial_cdf(successes, trials, probability);
      },
      nb::arg("successes"), nb::arg("trials"), nb::arg("probability"));
  module.def(
      "printable",
      [](const nb::bytes& text) {
        return printable({text.c_str(), text.size()});
      },
      nb::arg("text"));
}

}  // namespace vramtrack::python
