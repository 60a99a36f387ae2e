// Out-of-memory messages in a text.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <string>
#include <tuple>

#include "bindings.hpp"
#include "explain/explanation.hpp"
#include "explain/render.hpp"

namespace vramtrack::python {
namespace {

/// (JSON, text)
using Explained = std::tuple<std::string, std::string>;

std::optional<Explained> explained(const nb::bytes& text) {
  const std::string_view bytes(text.c_str(), text.size());
  std::optional<explain::Explanation> explanation;
  {
    const GilReleased released;
    explanation = explain::explain(explain::read_messages(bytes));
  }
  if (!explanation) return std::nullopt;
  return Explained(explain::explanation_json(*explanation, ""), explain::explanation_text(*explanation, ""));
}

}  // namespace

void add_explain(nb::module_& module) {
  module.def("explain", explained, nb::arg("text"));
}

}  // namespace vramtrack::python
