#include "agent/input.hpp"

#include <fmt/format.h>

#include <utility>

#include "source/sim/find_scenario.hpp"
#include "source/sim/sim.hpp"

namespace vramtrack::agent {

Result<AgentInput> machine_input(const SourcesConfig& config,
                                 const std::function<std::unique_ptr<Source>()>& telemetry) {
  AgentInput input{.clock = machine_clock()};
  input.input.catalog = std::make_unique<Catalog>();
  std::string reasons;
  input.input.sources = open_live_sources(config, *input.input.catalog, reasons);
  if (input.input.sources.empty()) return fail(reasons);
  if (telemetry) input.input.sources.push_back({.name = kTelemetrySource, .source = telemetry()});
  return input;
}

Result<AgentInput> simulated_input(const std::string& scenario, std::optional<std::uint64_t> seed, double speed) {
  auto found = find_scenario(scenario);
  if (!found) return fail(found.error());
  if (seed) found->seed = *seed;
  AgentInput input{
      .clock = compressed(machine_clock(), speed), .interval_s = found->period_s, .simulated = found->name};
  input.input.catalog = std::make_unique<Catalog>();
  input.input.sources.push_back({.name = "simulation"});
  // Use dates, not seconds since a start: the page and the store need the time.
  input.input.again = [scenario = std::move(*found)](Timestamp start, Catalog& catalog) mutable {
    scenario.start = start;
    return sim::make_simulation(scenario, catalog);
  };
  return input;
}

}  // namespace vramtrack::agent
