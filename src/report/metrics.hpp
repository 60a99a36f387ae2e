// The View as Prometheus text: docs/METRICS.md names every metric and is checked against this output.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/view.hpp"

namespace vramtrack {

/// The cost and failures of one live source.
struct SourceCost {
  std::string name;
  std::uint64_t polls = 0;
  std::uint64_t failed_polls = 0;
  double poll_s = 0;  ///< in total
};

/// The agent's own cost: it also monitors itself.
struct OwnCost {
  double cpu_s = 0;  ///< user and system, since the start
  std::uint64_t resident_bytes = 0;
  std::uint64_t polls = 0;
  std::uint64_t late_polls = 0;  ///< polls that began more than half a period late
  double observe_s = 0;          ///< in total: store, detectors and the View
  std::uint64_t samples = 0;
  std::uint64_t looks = 0;     ///< rounds over the processes that hold memory, checking whether they make progress
  double look_s = 0;           ///< in total
  bool recording = false;      ///< whether there is a store
  bool store_failing = false;  ///< whether it currently cannot be written
  std::uint64_t store_bytes = 0;
  std::vector<SourceCost> sources;
  std::uint64_t requests = 0;
  std::uint64_t refused_connections = 0;
  std::uint64_t streams = 0;
  /// Processes that the kernel killed because the host's memory ran out since the start, by "cgroup" or "machine", and
  /// by whether they held GPU memory.
  std::map<std::pair<std::string, bool>, std::uint64_t> host_kills;
  /// Results of policy steps, by action and outcome, since the start.
  std::map<std::pair<std::string, std::string>, std::uint64_t> acts;
};

/// Kubernetes' names for a container; empty: unknown.
struct PodName {
  std::string space;  ///< its namespace
  std::string pod;
  std::string container;
};

/// "weights": bytes.
using CategoryBytesByName = std::vector<std::pair<std::string, double>>;

struct MetricsOptions {
  std::string host;  ///< label Hostname for this machine's own metrics
  std::string version;
  bool per_process = false;
  std::size_t top_processes = 10;  ///< per device, by memory and by growth each
  /// Whether the active alert of this series is silenced; empty: no alert is silenced.
  std::function<bool(const View& view, const SeriesView& series)> silenced = {};
  /// The names of a container by its pod's UID and its id; empty: none are known.
  std::function<PodName(const std::string& pod_uid, const std::string& container_id)> pod_name = {};
  /// The launch that a process of this machine belongs to, "torchrun pid 4242" (host/launch.hpp); empty: unknown.
  std::function<std::string(const ProcessKey& process)> launch = {};
  /// Memory of a process by category; empty if none is known.
  std::function<CategoryBytesByName(const SeriesView& process)> categories = {};
};

/// Text format 0.0.4. Series: about 33 per device and 18 more for its health, 10 overall, 1 more while a verdict
/// stands; with per_process at most 6 * top_processes + 2 more per device; if allocations are traced, top_processes
/// more, and 10 more for each process that is watched by category. O(series).
std::string prometheus_text(const View& view, const OwnCost& own, const MetricsOptions& options);

}  // namespace vramtrack
