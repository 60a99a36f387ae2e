// Rest: the reasons why a process does nothing.
#pragma once

#include <cstdint>

#include "core/progress.hpp"

namespace vramtrack {

enum class Rest : std::uint8_t {
  none,
  allowed,  ///< by its nature, since it serves, or because somebody inspects it or has frozen it
  stopped,
  ended,
};

/// The reason for the process at that reading. A hold by a policy explains nothing: the evidence is older. Pure.
Rest rest_of(const ProcessProgress& progress);

}  // namespace vramtrack
