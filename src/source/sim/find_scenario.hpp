// A scenario by what was typed: a built-in one's name, or a file.
#pragma once

#include <string>

#include "core/result.hpp"
#include "source/sim/scenario.hpp"

namespace vramtrack {

/// The error of an unknown name tells the nearest one.
Result<sim::Scenario> find_scenario(const std::string& name);

}  // namespace vramtrack
