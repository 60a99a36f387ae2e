// UnknownMetric: a metric of a server that looks like GPU memory but is not read, with the lines for an --exporters
// file that would read it.
#pragma once

#include <string>
#include <vector>

#include "fleet/exporters.hpp"
#include "fleet/reader.hpp"

namespace vramtrack::fleet {

struct UnknownMetric {
  std::string name;
  std::string exporter_lines;  ///< TOML for an --exporters file; to be reviewed, because the unit is a guess
};

/// Whether a metric with that name may well be the used memory of a GPU. Pure.
bool looks_like_used_gpu_memory(const std::string& name);

/// The lines for a metric with these labels. Pure.
std::string exporter_lines(const std::string& metric, const Labels& labels);

/// The metrics that the server has for `query` and that `mapping` lacks, by name; at most a dozen. Other metrics of an
/// exporter that is read are left out. Costs one request, and one per metric found. Empty if the server does not
/// answer: known metrics are read nevertheless.
std::vector<UnknownMetric> unknown_metrics(const Reader& reader, const Mapping& mapping, const Query& query);
/// The same as text. Empty if there is none.
std::string unknown_metrics_text(const std::vector<UnknownMetric>& metrics);

}  // namespace vramtrack::fleet
