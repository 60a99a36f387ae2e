// The current state of a watched fleet: as JSON for the page, and as metrics. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "fleet/text.hpp"

namespace vramtrack::fleet {

/// The passes of a FleetWatch.
struct PassStatus {
  Timestamp time;  ///< when the last one began
  double took_s = 0;
  double every_s = 30;
  std::uint64_t passes = 0;
  std::uint64_t failed_passes = 0;
  std::uint64_t samples = 0;  ///< the samples of all passes
  std::string trouble;        ///< why the last pass failed; empty: it succeeded
};

/// vramtrack.fleet.v1: one object (docs/fleet.md).
std::string fleet_json(const Scan& scan, const FleetFindings& found, const ScanWords& words, const PassStatus& status);

/// Metrics in Prometheus' text format. The verdicts have the names and labels of the agent's (docs/METRICS.md), and
/// only for GPUs that leak. GPUs that an agent watches are left out, because the agent exports them itself.
std::string fleet_metrics(const Scan& scan, const FleetFindings& found, const PassStatus& status);

}  // namespace vramtrack::fleet
