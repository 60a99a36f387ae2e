// spike: the SpikeDetector of the documents: a large rise within a short window, and its outcome
// (docs/detectors/spike.md).
#pragma once

#include <memory>

#include "detect/detector.hpp"

namespace vramtrack {

std::unique_ptr<Detector> make_spike(const DetectionConfig& config, const Scale& figures);

}  // namespace vramtrack
