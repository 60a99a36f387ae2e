// Which metrics of a training run are the memory of a GPU, according to their names as wandb, MLflow and people write
// them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace vramtrack {

/// Beginning of what run_files.cpp writes.
inline constexpr std::string_view kRunFileMark = "{\"run_file\":";

/// A name, understood.
struct ScalarMetric {
  int gpu = 0;
  int rank = 0;  ///< of several used metrics of one GPU, the highest is read
  bool is_total = false;
  bool is_percent = false;
  double unit_bytes = 0;  ///< 0: not said
};

/// nullopt when the metric is not the memory of a GPU: a run also records the memory of its process and of the host,
/// and how busy the memory is.
std::optional<ScalarMetric> scalar_metric(std::string_view name);

/// A metric as seen in the beginning of a log.
struct ScalarSeen {
  std::string name;
  double most = 0;
  bool has_fraction = false;
};

/// How the values of a metric are read.
struct ScalarUse {
  int gpu = 0;
  bool is_total = false;
  double unit_bytes = 1;
};

/// Chooses one used metric per GPU. `unit_bytes` and `capacity_bytes` are the user's settings (0, nullopt: not given).
/// `assumptions` gets the units that were assumed and the metrics that are skipped. An Error when no metric is left.
Result<std::map<std::string, ScalarUse>> choose_scalars(const std::vector<ScalarSeen>& seen, std::uint64_t unit_bytes,
                                                        const std::optional<std::uint64_t>& capacity_bytes,
                                                        std::vector<std::string>& assumptions);

}  // namespace vramtrack
