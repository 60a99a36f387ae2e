// What Prometheus's metrics of GPU memory, and of the facts beside it, are called and how their labels name the GPU:
// dcgm-exporter, nvidia_gpu_exporter, AMD's and Ascend's exporters, vramtrack itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "source/log/dump_readings.hpp"

namespace vramtrack {

struct PrometheusMetric {
  DumpReadings::Field field = DumpReadings::Field::used;
  std::uint64_t unit_bytes = 0;  ///< 0: the name does not say; of a fact: of its sample
};

/// The meaning of a metric by its name; nullopt when it is neither the memory of a GPU nor a fact beside it, or is a
/// percentage of memory, since it does not say of what.
/// `peaks`: its peak is taken for the used memory, and other metrics of that are left out.
std::optional<PrometheusMetric> gpu_metric(std::string_view name, bool peaks = false);

using PrometheusLabels = std::vector<std::pair<std::string, std::string>>;

/// The GPU that labels name: by UUID, PCI address, or index and host. Other labels (such as the pod that uses the GPU
/// at the moment) do not identify it, unless there is nothing else.
LogDevice gpu_of_labels(const PrometheusLabels& labels);

}  // namespace vramtrack
