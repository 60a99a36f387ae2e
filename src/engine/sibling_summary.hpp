// SiblingSummary: the data that engines on several machines exchange about the ranks and replicas of one job.
#pragma once

#include <cstdint>
#include <string>

#include "detect/siblings.hpp"

namespace vramtrack {

/// One process on one device: which group it belongs to, and how its memory developed. Under 4 KiB.
struct SiblingSummary {
  std::string group;  ///< the same for all ranks of a job: see Engine::share_siblings
  std::string host;   ///< the host that it runs on; never empty when sent
  std::string device_id;
  std::uint32_t pid = 0;
  std::uint64_t pid_start_ticks = 0;
  FloorCurve curve;
};

}  // namespace vramtrack
