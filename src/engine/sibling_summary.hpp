// SiblingSummary: what engines on several machines tell each other of the ranks and replicas of one job.
#pragma once

#include <cstdint>
#include <string>

#include "detect/siblings.hpp"

namespace vramtrack {

/// One process on one device: whose rank it is, and how its memory went. Under 4 KiB.
struct SiblingSummary {
  std::string group;  ///< the same for all ranks of a job: see Engine::share_siblings
  std::string host;   ///< of which it is; where it is sent, never empty
  std::string device_id;
  std::uint32_t pid = 0;
  std::uint64_t pid_start_ticks = 0;
  FloorCurve curve;
};

}  // namespace vramtrack
