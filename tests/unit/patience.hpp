// How long tests wait for events that should come soon. A single factor for all: VRAMTRACK_TEST_PATIENCE, 5 by default;
// the sanitized builds use a larger one.
#pragma once

#include <chrono>
#include <cstdlib>

namespace vramtrack {

/// The deadline for something that an idle machine does within `time`.
inline std::chrono::steady_clock::duration patience(std::chrono::steady_clock::duration time) {
  const char* factor = std::getenv("VRAMTRACK_TEST_PATIENCE");
  return time * (factor != nullptr ? std::atoi(factor) : 5);
}

}  // namespace vramtrack
