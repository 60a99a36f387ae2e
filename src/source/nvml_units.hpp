// The state that the nvml source keeps for each GPU and MIG instance it polls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/series.hpp"
#include "source/nvml_gauges.hpp"
#include "source/nvml_health.hpp"
#include "source/nvml_library.hpp"

namespace vramtrack::nvml {

/// A GPU or MIG instance: a handle whose memory use can be queried.
struct Unit {
  Device handle = nullptr;
  std::string uuid;
  SeriesId used{};
  std::optional<SeriesId> reserved;
  std::size_t watched = 0;      ///< index in the ProcessWatch
  bool warned = false;          ///< warned that its memory cannot be read, or is the host's
  bool has_own_memory = false;  ///< the driver has reported its memory
};

struct MigInstance : Unit {
  std::uint32_t gpu_instance_id = kNoInstance;
  std::uint32_t compute_instance_id = kNoInstance;
};

struct Gpu : Unit {
  bool lost = false;
  int unknown_errors = 0;
  bool has_utilisation = true;
  bool has_mig = true;
  HealthReader health;
  GaugeReader gauges;
  std::vector<MigInstance> instances;
};

/// Whether the driver as a whole has gone, not just one GPU.
inline bool is_driver_gone(int code) {
  return code == kUninitialized || code == kDriverNotLoaded || code == kLibRmVersionMismatch;
}
inline bool is_gpu_gone(int code) {
  return code == kGpuIsLost || code == kResetRequired;
}

}  // namespace vramtrack::nvml
