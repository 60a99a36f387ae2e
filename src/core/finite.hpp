// Callers may pass any number; what is shown or counted is a finite figure or none.
#pragma once

#include <cmath>

namespace vramtrack {

/// 0 if it is infinite or not a number.
inline double finite(double value) {
  return std::isfinite(value) ? value : 0.0;
}

}  // namespace vramtrack
