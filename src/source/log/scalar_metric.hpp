// Which of the metrics of a training run are the memory of a GPU: by their names, as wandb, MLflow and people write
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
  int rank = 0;  ///< among the used metrics of one GPU the highest is read
  bool is_total = false;
  bool is_percent = false;
  double unit_bytes = 0;  ///< 0: not said
};

/// nullopt when the metric is not the memory of a GPU: a run has the memory of its process and of the host, too, and
/// how busy the memory is.
std::optional<ScalarMetric> scalar_metric(std::string_view name);

/// A metric as met in the beginning of a log.
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

/// Chooses one used metric a GPU. `unit_bytes` and `capacity_bytes` are what the user said (0, nullopt: nothing).
/// `assumptions` names units that were assumed, and metrics that are passed over. An Error when no metric is left.
Result<std::map<std::string, ScalarUse>> choose_scalars(const std::vector<ScalarSeen>& seen, std::uint64_t unit_bytes,
                                                        const std::optional<std::uint64_t>& capacity_bytes,
                                                        std::vector<std::string>& assumptions);

}  // namespace vramtrack
