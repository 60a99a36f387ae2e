// The actuator as a program: its server, its rounds, its log.
#pragma once

#include <string>

#include "actuate/actuator.hpp"
#include "core/settings.hpp"

namespace vramtrack::actuate {

struct DaemonOptions {
  LayeredConfig layers;
  std::string folder;  ///< the folder of the state
  Rescan rescan;       ///< empty: alerts of machines without an agent are refused
  act::KubernetesAccess kubernetes;
};

/// Where the actuator of that folder can be asked on this machine.
std::string socket_of(const std::string& folder);

/// Runs until SIGINT or SIGTERM. Writes its log to standard error. The exit code: 0 when it was asked to end, 2 when it
/// could not begin. At most one per process.
int run_actuator(const DaemonOptions& options);

}  // namespace vramtrack::actuate
