// A scan as text for people and as JSON for programs. Pure.
#pragma once

#include <string>

#include "fleet/findings.hpp"

namespace vramtrack::fleet {

struct ScanWords {
  std::string server;  ///< its address
  std::string length;  ///< "24 h"
  std::string path;    ///< "remote-read"
  double took_s = 0;   ///< 0: not shown
  double usd_per_gpu_hour = 0;
  std::size_t most_jobs = 50;
};

/// A ranked table, the findings, and the machines that could not be read.
std::string scan_text(const Scan& scan, const FleetFindings& found, const ScanWords& words);

/// The lines of analyze for every series (if the Scan was made with json), then one vramtrack.fleet_job.v1 per leaking
/// job, one vramtrack.fleet_finding.v1 per finding and one vramtrack.fleet_scan.v1 at the end.
std::string scan_json(const Scan& scan, const FleetFindings& found, const ScanWords& words);

}  // namespace vramtrack::fleet
