// The agent: runs the live loop without a terminal, records, and answers on HTTP and a Unix socket (docs/agent.md).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/result.hpp"
#include "core/settings.hpp"
#include "core/traced_categories.hpp"
#include "source/source.hpp"

namespace vramtrack::agent {

struct AgentOptions {
  LayeredConfig layers;
  /// Reads the configuration again, on SIGHUP.
  std::function<Result<LayeredConfig>()> reload;
  std::string version;
  std::string scenario;  ///< simulate this built-in scenario or file; empty: watch this machine
  std::optional<std::uint64_t> seed;
  double speed = 0;  ///< simulated seconds per second; 0: 60
  /// Creates the source of running programs' allocations, for telemetry.enabled.
  std::function<std::unique_ptr<Source>()> telemetry;
  /// Where that source puts each process's memory by category; may be null.
  std::shared_ptr<TracedCategories> traced_categories;
  bool or_simulate = false;  ///< if there is no GPU, simulate a training job that leaks
};

/// Runs until SIGINT or SIGTERM; SIGHUP reloads. Writes its log to standard error. The exit code is 0 if it was asked
/// to stop, 2 if it could not start. At most one per process.
int run_agent(AgentOptions options);

}  // namespace vramtrack::agent
