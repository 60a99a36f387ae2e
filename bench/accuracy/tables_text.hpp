// How the tables write figures. For bench/accuracy/tables*.cpp alone.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace vramtrack::accuracy {

/// A dash for NaN.
inline std::string number(double value, int digits = 2) {
  return std::isnan(value) ? "-" : fmt::format("{:.{}f}", value, digits);
}

/// A dash of nothing.
inline double share(double part, double whole) {
  return whole > 0 ? part / whole : std::nan("");
}

}  // namespace vramtrack::accuracy
