// The source of what running programs allocate, for `watch` and `agent` with telemetry.enabled.
#pragma once

#include <memory>

#include "source/source.hpp"

namespace vramtrack::cli {

/// What hinders it is the error of each of its polls; so is that this build has none.
std::unique_ptr<Source> open_telemetry();

}  // namespace vramtrack::cli
