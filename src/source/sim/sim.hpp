// The simulator: a Source that generates GPUs and processes from a Scenario, the same every time.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "source/sim/scenario.hpp"
#include "source/source.hpp"

namespace vramtrack::sim {

/// Works like a recorded source: `now` is ignored; each poll() appends one tick (nothing for a tick that was dropped or
/// is in a gap) and returns `end` at the last one. Times are the scenario's start (zero, with
/// Catalog::clock_is_relative, if it has none) plus the tick's time. The caller sets the pace. Polls never fail. Times
/// go backward only if the scenario has a clock_step fault. `catalog` must outlive the source; `scenario` is copied.
/// Cost: about 0.1-1 us per series and tick.
std::unique_ptr<Source> make_simulation(const Scenario& scenario, Catalog& catalog);

/// A scenario that ships with the tool.
struct BuiltinScenario {
  std::string_view name;
  std::string_view help;
  std::string_view toml;
};

/// All of them parse; the first is the one to show to newcomers.
std::span<const BuiltinScenario> builtin_scenarios();
/// Returns nullptr for an unknown name.
const BuiltinScenario* find_builtin_scenario(std::string_view name);

}  // namespace vramtrack::sim
