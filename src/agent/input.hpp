// What the agent's loop polls: this machine's GPUs, or a simulated machine at a chosen speed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/config.hpp"
#include "core/result.hpp"
#include "live/loop.hpp"

namespace vramtrack::agent {

struct AgentInput {
  LoopInput input;
  Clock clock;                       ///< in a simulation, faster than this machine's
  std::optional<double> interval_s;  ///< a simulation's own sampling period
  std::string simulated;             ///< the scenario's name; empty: this machine
};

/// This machine's GPUs; with `telemetry`, which may be empty, also the allocations of running programs on them. Error:
/// no GPU can be read, with the reasons.
Result<AgentInput> machine_input(const SourcesConfig& config,
                                 const std::function<std::unique_ptr<Source>()>& telemetry = {});

/// The scenario with that name or in that file, starting now and repeated. Errors: those of find_scenario().
Result<AgentInput> simulated_input(const std::string& scenario, std::optional<std::uint64_t> seed, double speed);

}  // namespace vramtrack::agent
