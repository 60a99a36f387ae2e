// The names of Prometheus metrics of GPU memory and related facts, and the labels that identify the GPU: dcgm-exporter,
// nvidia_gpu_exporter, AMD's and Ascend's exporters, vramtrack itself.
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
  std::uint64_t unit_bytes = 0;  ///< 0: not in the name; for a fact: of its sample
};

/// The meaning of a metric according to its name; nullopt if it is neither GPU memory nor a related fact, or is a ratio
/// of memory, since its base is unknown. `peaks`: reads peaks as the used memory, and ignores other metrics
/// of it.
std::optional<PrometheusMetric> gpu_metric(std::string_view name, bool peaks = false);

using PrometheusLabels = std::vector<std::pair<std::string, std::string>>;

/// The GPU that labels name: by UUID, PCI address, or index and host. Other labels (such as the pod that uses the GPU
/// at the moment) identify it only if there is nothing else. If no label names a GPU, the number in the name of the
/// metric does ("gpu1_mem_used_mib").
LogDevice gpu_of_labels(const PrometheusLabels& labels, std::string_view metric = {});

}  // namespace vramtrack
