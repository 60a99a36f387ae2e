// UnknownMetric: a metric of a server that looks like the memory of GPUs and is not read, with the lines of an
// --exporters file that would read it.
#pragma once

#include <string>
#include <vector>

#include "fleet/exporters.hpp"
#include "fleet/reader.hpp"

namespace vramtrack::fleet {

struct UnknownMetric {
  std::string name;
  std::string exporter_lines;  ///< TOML, for a file for --exporters; to be looked over: the unit is a guess
};

/// Whether a metric of that name may well be how much memory of a GPU is in use. Pure.
bool looks_like_used_gpu_memory(const std::string& name);

/// The lines for a metric of these labels. Pure.
std::string exporter_lines(const std::string& metric, const Labels& labels);

/// Those that the server has where and when `query` says, and that `mapping` does not know, by name; at most a dozen.
/// Other metrics of an exporter that is read do not count. Costs one request, and one for each that is found. Nothing,
/// if the server does not answer: what is known is read all the same.
std::vector<UnknownMetric> unknown_metrics(const Reader& reader, const Mapping& mapping, const Query& query);
/// For people. Empty if there is none.
std::string unknown_metrics_text(const std::vector<UnknownMetric>& metrics);

}  // namespace vramtrack::fleet
