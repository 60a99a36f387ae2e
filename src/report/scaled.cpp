#include "report/scaled.hpp"

#include "core/scale.hpp"

namespace vramtrack {

ScaledName scaled_name(std::string name) {
  const Scale& by = scale();
  double factor = 1;
  if (by.counts_steps() && name.ends_with("_per_s")) {
    name.replace(name.size() - 1, 1, by.step);
    factor *= by.step_s;
  } else if (by.counts_steps() && name.ends_with("_s")) {
    name.replace(name.size() - 1, 1, by.step + 's');
    factor /= by.step_s;
  }
  if (const std::size_t at = name.find("bytes"); !by.has_unit && at != std::string::npos) {
    name.replace(at, 5, "units");
    factor /= by.unit_bytes;
  }
  return {std::move(name), factor};
}

}  // namespace vramtrack
