// The actuator as a program: its server, its rounds and its log.
#pragma once

#include <string>

#include "actuate/actuator.hpp"
#include "core/settings.hpp"

namespace vramtrack::actuate {

struct DaemonOptions {
  LayeredConfig layers;
  std::string folder;  ///< the folder of the state
  Rescan rescan;       ///< empty: alerts from machines without an agent are refused
  act::KubernetesAccess kubernetes;
};

/// The local socket at which the actuator of that folder answers.
std::string socket_of(const std::string& folder);

/// Runs until SIGINT or SIGTERM. Writes its log to standard error. Returns the exit code: 0 if it was asked to end, 2
/// if it could not start. At most one per process.
int run_actuator(const DaemonOptions& options);

}  // namespace vramtrack::actuate
