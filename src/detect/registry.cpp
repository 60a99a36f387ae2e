#include "core/registry.hpp"

#include <array>
#include <vector>

#include "detect/detector.hpp"

namespace vramtrack {

#define VRAMTRACK_DETECTOR(name, dissent) extern const DetectorInfo name##_detector;
#include "detect/detectors.def"

namespace {

enum class Dissent : bool { none, kept };

std::vector<const DetectorInfo*> list_dissenters() {
  std::vector<const DetectorInfo*> kept;
#define VRAMTRACK_DETECTOR(name, dissent) \
  if (Dissent::dissent == Dissent::kept) kept.push_back(&name##_detector);
#include "detect/detectors.def"
  return kept;
}

}  // namespace

std::span<const DetectorInfo* const> detectors() {
  static const std::array all = {
#define VRAMTRACK_DETECTOR(name, dissent) &name##_detector,
#include "detect/detectors.def"
  };
  return all;
}

std::span<const DetectorInfo* const> dissenters() {
  static const std::vector<const DetectorInfo*> kept = list_dissenters();
  return kept;
}

const DetectorInfo* find_detector(std::string_view name) {
  return find_named(detectors(), name);
}

}  // namespace vramtrack
