// Rest: what explains that a process does nothing.
#pragma once

#include <cstdint>

#include "core/progress.hpp"

namespace vramtrack {

enum class Rest : std::uint8_t {
  none,
  allowed,  ///< by its nature, since it serves, or because somebody looks into it or has frozen it
  stopped,
  ended,
};

/// Of the process at that reading. That a policy holds it explains nothing: the evidence is older. Pure.
Rest rest_of(const ProcessProgress& progress);

}  // namespace vramtrack
