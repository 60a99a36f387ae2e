// Reads what is at hand of the health of this machine's GPUs: the sources, the driver's library, the kernel log.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "health/checkup.hpp"

namespace vramtrack {

struct HealthRequest {
  bool reads_log = true;
  std::string log_path;        ///< a file, "-" for standard input, or a device as /dev/kmsg; empty: /dev/kmsg
  double since_s = 24 * 3600;  ///< how far back /dev/kmsg is read; a file is read whole
  double until_s = 0;          ///< how long ago what is read of it ends; less than since_s
  bool expects_empty = false;  ///< nothing may use the GPUs now
  std::vector<int> gpus;       ///< these alone, by index; empty: all
};

/// Opens and polls the live sources once, and reads the rest. Never fails: what could not be read is in the facts.
/// Never waits for a message of the kernel. Cost: some hundred ms, seconds where the driver has to start its GPUs.
HealthFacts gather_health(const SourcesConfig& config, const HealthRequest& request);

/// Reads the kernel log at `path`, as HealthRequest has it. Up to 64 MiB of a file.
HealthFacts::Log read_kernel_log(const std::string& path, double since_s, double until_s = 0);

}  // namespace vramtrack
