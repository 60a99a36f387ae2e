// The names and figures of a program's output, in the recording's own scale.
#pragma once

#include <string>

#include "core/scale.hpp"

namespace vramtrack {

/// A figure's name, and the factor for its number.
struct ScaledName {
  std::string name;
  double factor = 1;
  std::string null_name{};  ///< its name in bytes, if it is not in bytes: then without a figure
};

/// How `scale` expresses the figure `name`. A log that counts steps has no seconds, and one
/// of percentages, or without a unit, has no bytes: "growth_bytes_per_s" is "growth_bytes_per_step", "oom_in_s" is
/// "oom_in_steps", "used_bytes" is "used_percent" or "used_units". So no program can mistake them for seconds or bytes.
/// Other names stay unchanged.
ScaledName scaled_name(std::string name, const Scale& scale);

}  // namespace vramtrack
