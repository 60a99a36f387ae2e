// Finds a scenario by name (a built-in one) or by file.
#pragma once

#include <string>

#include "core/result.hpp"
#include "source/sim/scenario.hpp"

namespace vramtrack {

/// The error for an unknown name suggests one that resembles it.
Result<sim::Scenario> find_scenario(const std::string& name);

}  // namespace vramtrack
