#include "report/scaled.hpp"

#include <string_view>

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
  const std::size_t at = scale.counts_bytes() ? std::string::npos : name.find("bytes");
  if (at == std::string::npos) return {std::move(name), factor, {}};
  std::string in_bytes = name;
  name.replace(at, std::string_view("bytes").size(), scale.unit == AmountUnit::percent ? "percent" : "units");
  return {std::move(name), factor / scale.unit_bytes, std::move(in_bytes)};
}

}  // namespace vramtrack
