#include "report/scaled.hpp"

namespace vramtrack {

ScaledName scaled_name(std::string name, const Scale& scale) {
  double factor = 1;
  if (scale.counts_steps() && name.ends_with("_per_s")) {
    name.replace(name.size() - 1, 1, scale.step);
    factor *= scale.step_s;
  } else if (scale.counts_steps() && name.ends_with("_s")) {
    name.replace(name.size() - 1, 1, scale.step + 's');
    factor /= scale.step_s;
  }
  if (const std::size_t at = name.find("bytes"); !scale.has_unit && at != std::string::npos) {
    name.replace(at, 5, "units");
    factor /= scale.unit_bytes;
  }
  return {std::move(name), factor};
}

}  // namespace vramtrack
