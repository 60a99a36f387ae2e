// The agent: the live loop without a terminal, recorded, and answering on HTTP and a Unix socket (docs/agent.md).
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
  /// Reads the configuration again, at SIGHUP.
  std::function<Result<LayeredConfig>()> reload;
  std::string version;
  std::string scenario;  ///< simulate this built-in scenario or file; empty: watch this machine
  std::optional<std::uint64_t> seed;
  double speed = 0;  ///< simulated seconds a second; 0: 60
  /// Makes the source of the allocations of running programs, for telemetry.enabled.
  std::function<std::unique_ptr<Source>()> telemetry;
  /// Where that source puts what each process holds by what it is for; may be null.
  std::shared_ptr<TracedCategories> traced_categories;
  bool or_simulate = false;  ///< where there is no GPU, simulate a training job that leaks
};

/// Runs until SIGINT or SIGTERM; SIGHUP reloads. Writes its log to standard error. The exit code: 0 when it was asked
/// to end, 2 when it could not begin. At most one a process.
int run_agent(AgentOptions options);

}  // namespace vramtrack::agent
