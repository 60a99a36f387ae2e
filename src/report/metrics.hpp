// The View as Prometheus text: docs/METRICS.md names every metric and is checked against what this writes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/view.hpp"

namespace vramtrack {

/// What one live source cost and failed.
struct SourceCost {
  std::string name;
  std::uint64_t polls = 0;
  std::uint64_t failed_polls = 0;
  double poll_s = 0;  ///< in all
};

/// What the agent itself costs: the tool that looks for leaks is looked at too.
struct OwnCost {
  double cpu_s = 0;  ///< user and system, since the start
  std::uint64_t resident_bytes = 0;
  std::uint64_t polls = 0;
  std::uint64_t late_polls = 0;  ///< that began more than half a period after their time
  double observe_s = 0;          ///< in all: store, detectors and the View
  std::uint64_t samples = 0;
  bool recording = false;
  std::uint64_t store_bytes = 0;
  std::vector<SourceCost> sources;
  std::uint64_t requests = 0;
  std::uint64_t refused_connections = 0;
  std::uint64_t streams = 0;
};

struct MetricsOptions {
  std::string host;
  std::string version;
  bool per_process = false;
  std::size_t top_processes = 10;  ///< a device, by memory and by growth each
};

/// Text format 0.0.4. Series: about 30 a device and 18 more of its health, 8 in all, 1 more while a verdict stands;
/// with per_process at most 4 * top_processes + 2 a device more. O(series).
std::string prometheus_text(const View& view, const OwnCost& own, const MetricsOptions& options);

}  // namespace vramtrack
