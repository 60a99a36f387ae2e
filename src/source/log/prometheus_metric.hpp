// The names of Prometheus metrics of GPU memory and related facts, and the labels that identify the GPU: dcgm-exporter,
// nvidia_gpu_exporter, AMD's and Ascend's exporters, vramtrack itself.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
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

/// Which metrics are read.
enum class MetricsOf : std::uint8_t {
  gpus,   ///< memory that a word of their names, or the table of exporters, says is a GPU's
  peaks,  ///< of that memory, peaks in place of the used memory
  anyone  ///< memory of which no word says whose it is
};

/// The meaning of a metric according to its name; nullopt if it is neither such memory nor a related fact, or is a
/// ratio of memory, since its base is unknown.
std::optional<PrometheusMetric> gpu_metric(std::string_view name, MetricsOf of = MetricsOf::gpus);

using PrometheusLabels = std::vector<std::pair<std::string, std::string>>;

/// What the labels of a log mean, by their values in its head.
struct LabelPlan {
  std::vector<std::string> distinguishing;  ///< those that distinguish what nothing else does: see find_owner_fields()
  bool has_pids = true;                     ///< false: numbers under the name of a pid are no pids
  bool are_of_processes = false;            ///< all memory in use is that of processes
};

/// Whose the memory of a sample is.
struct LabelOwner {
  LogDevice gpu;
  std::optional<std::uint32_t> pid{};  ///< if it is that of one process
  std::string process{};               ///< its name
  bool pid_is_unreadable = false;
};

/// What labels say. The GPU is that of device_of(), with the labels of the table of exporters and the titles of
/// words.def. Other labels (such as the pod that uses the GPU at the moment) identify it only if there is nothing else.
/// If no label names a GPU, the number in the name of the metric does ("gpu1_mem_used_mib"). The metrics of known
/// exporters that are read are those of whole GPUs, also if a label names a process.
LabelOwner owner_of_labels(const PrometheusLabels& labels, std::string_view metric = {}, const LabelPlan& plan = {});

/// A sample of memory in use. Views into the text of the log.
struct LabelledSample {
  std::string_view metric;
  const PrometheusLabels* labels = nullptr;
  std::string_view time;  ///< as written, or another text that is the same for the samples of one scrape
  double amount = 0;
};

/// What the labels of these samples mean. `may_have_pids`: see LabelPlan. O(samples x labels).
LabelPlan plan_labels(std::span<const LabelledSample> samples, bool may_have_pids);

}  // namespace vramtrack
