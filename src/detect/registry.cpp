#include <array>

#include "detect/detector.hpp"

namespace vramtrack {

#define VRAMTRACK_DETECTOR(name) extern const DetectorInfo name##_detector;
#include "detect/detectors.def"
#undef VRAMTRACK_DETECTOR

std::span<const DetectorInfo* const> detectors() {
  static const std::array all = {
#define VRAMTRACK_DETECTOR(name) &name##_detector,
#include "detect/detectors.def"
#undef VRAMTRACK_DETECTOR
  };
  return all;
}

const DetectorInfo* find_detector(std::string_view name) {
  for (const DetectorInfo* info : detectors())
    if (info->name == name) return info;
  return nullptr;
}

}  // namespace vramtrack
