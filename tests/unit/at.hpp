// The time of a test, as seconds after the epoch.
#pragma once

#include "core/time.hpp"

namespace vramtrack {

inline Timestamp at(double s) {
  return Timestamp{from_seconds(s)};
}

}  // namespace vramtrack
