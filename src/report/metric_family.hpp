// Families of metrics in Prometheus' text format, for code that writes them. For .cpp files only, because it includes a
// slow header.
#pragma once

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/order.hpp"
#include "core/printable.hpp"

namespace vramtrack::metrics {

using Families = std::vector<prometheus::MetricFamily>;
using Labels = std::vector<std::pair<std::string_view, std::string>>;

/// One metric with all of its series; families without series are not written.
class Family {
 public:
  Family(Families& all, const char* name, const char* help, prometheus::MetricType type = prometheus::MetricType::Gauge)
      : all_(all) {
    family_.name = name;
    family_.help = help;
    family_.type = type;
  }
  ~Family() {
    if (!family_.metric.empty()) all_.push_back(std::move(family_));
  }
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;

  void add(double value, const Labels& labels, const Labels& more = {}) {
    prometheus::ClientMetric metric;
    for (const Labels* part : {&labels, &more})
      for (const auto& label : *part) metric.label.push_back({std::string(label.first), printable(label.second)});
    if (family_.type == prometheus::MetricType::Counter)
      metric.counter.value = value;
    else
      metric.gauge.value = value;
    family_.metric.push_back(std::move(metric));
  }
  void add(std::uint64_t value, const Labels& labels, const Labels& more = {}) {
    add(static_cast<double>(value), labels, more);
  }

 private:
  Families& all_;
  prometheus::MetricFamily family_;
};

inline constexpr auto kCounter = prometheus::MetricType::Counter;

/// All families. Those of one function are finished last to first; here they are sorted by name, for people and tests.
inline std::string text_of(Families families) {
  order(families, [](const auto& a, const auto& b) { return a.name < b.name; });
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families);
  return std::move(out).str();
}

}  // namespace vramtrack::metrics
