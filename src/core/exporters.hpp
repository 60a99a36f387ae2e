// Mapping: which metrics hold GPU memory, and which labels name the GPU and its user, for `fleet` and for
// scrapes read as logs. Data, not code: exporters.toml, and a file of the user's own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/metric_labels.hpp"
#include "core/result.hpp"

namespace vramtrack::exporters {

using Names = std::vector<std::string>;

/// The metrics and labels of one exporter. The lists are in order of preference.
struct Exporter {
  std::string name;
  Names used, free, reserved, total;
  Names process;  ///< memory of one process; may be empty
  Names busy;     ///< share of time during which the GPU works; may be empty
  double busy_unit = 0.01;
  Names received;         ///< bytes per second that the GPU receives over its bus; may be empty
  double unit_bytes = 1;  ///< for metrics whose names do not state a unit; also for processes
  double process_unit_bytes = 1;
  Names device_labels, index_labels, partition_labels, host_labels, model_labels, driver_labels;
};

/// The labels that name the user of a GPU, whichever exporter reports it.
struct WorkloadLabels {
  Names job, job_name, user, name_space, pod, container, image, framework, pid, process_name;
};

/// Metrics that describe the user of a GPU.
struct ContextMetrics {
  Names pods;   ///< metrics whose labels name a pod, its container and its image
  Names cache;  ///< the share of a key-value cache in use, 0 to 1
  Names cache_host_labels;
};

enum class Role : std::uint8_t { used, free, reserved, total, process, busy, received };

/// The meaning of a metric.
struct MetricMeaning {
  const Exporter* exporter = nullptr;
  Role role = Role::used;
  std::size_t rank = 0;       ///< the rank of the exporter: the lower one is preferred
  std::size_t name_rank = 0;  ///< the rank of the name among those of its role, likewise
  double unit_bytes = 1;      ///< the size of one unit of its values: a share of time as a ratio,
                              ///< received data in bytes per second
};

/// Immutable once made; may be read by several threads.
class Mapping {
 public:
  /// The exporters that vramtrack knows; the text `user_toml` of `file` replaces some and adds others (empty: none).
  /// Errors name the file, the line and what was expected.
  static Result<Mapping> read(std::string_view user_toml = {}, std::string_view file = {});

  Mapping(Mapping&&) = default;
  Mapping& operator=(Mapping&&) = default;

  /// The exporters that vramtrack knows; read once. Lives as long as the program; any thread may call it.
  static const Mapping& known();

  [[nodiscard]] const std::vector<Exporter>& exporters() const { return exporters_; }
  [[nodiscard]] const WorkloadLabels& workload() const { return workload_; }
  [[nodiscard]] const ContextMetrics& context() const { return context_; }
  /// nullopt if the metric is none of these. O(1).
  [[nodiscard]] std::optional<MetricMeaning> find(const std::string& metric) const;
  /// The text of exporters.toml.
  static std::string_view built_in();

 private:
  Mapping() = default;
  void index_metrics();

  std::vector<Exporter> exporters_;
  WorkloadLabels workload_;
  ContextMetrics context_;
  struct Known {
    std::size_t exporter = 0, name_rank = 0;
    Role role = Role::used;
    double unit_bytes = 1;
  };
  std::unordered_map<std::string, Known> metrics_;
};

}  // namespace vramtrack::exporters
