// The labels of a Prometheus series.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vramtrack::exporters {

/// Name and value, in the order the server gave them; "__name__" is the metric.
using Labels = std::vector<std::pair<std::string, std::string>>;

/// The value of the label `name`; empty if there is none: Prometheus treats the two as the same.
inline std::string_view value_of(const Labels& labels, std::string_view name) {
  for (const auto& [key, value] : labels)
    if (key == name) return value;
  return {};
}

/// The first label with one of these names that has a value; empty if none has.
inline std::string_view first_of(const Labels& labels, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (const std::string_view value = value_of(labels, name); !value.empty()) return value;
  return {};
}

}  // namespace vramtrack::exporters
