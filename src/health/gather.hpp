// Reads the available facts about the health of this machine's GPUs: the sources, the driver's library, the kernel log.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "health/checkup.hpp"

namespace vramtrack {

struct HealthRequest {
  bool reads_log = true;
  std::string log_path;        ///< a file, "-" for standard input, or a device such as /dev/kmsg; empty: /dev/kmsg
  double since_s = 24 * 3600;  ///< how far back /dev/kmsg is read; a file is read completely
  double until_s = 0;          ///< how long ago the part to read ends; less than since_s
  bool expects_empty = false;  ///< whether nothing may use the GPUs now
  std::vector<int> gpus;       ///< only these, by index; empty: all
};

/// Opens and polls the live sources once, and reads the rest. Never fails: the facts include what could not be read.
/// Never waits for a message of the kernel. Cost: some hundred ms, or seconds if the driver has to start its GPUs.
HealthFacts gather_health(const SourcesConfig& config, const HealthRequest& request);

/// Reads the kernel log at `path`, as HealthRequest describes it. Up to 64 MiB of a file.
HealthFacts::Log read_kernel_log(const std::string& path, double since_s, double until_s = 0);

}  // namespace vramtrack
