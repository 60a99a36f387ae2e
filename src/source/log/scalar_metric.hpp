// Which metrics of a training run are GPU memory, according to the names used by wandb, MLflow and
// users.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "source/log/json_figures.hpp"

namespace vramtrack {

/// Beginning of the lines that run_file.cpp writes.
inline constexpr std::string_view kRunFileMark = "{\"run_file\":";

/// Replaces the index of a GPU: the context of the metric identifies the GPU or the process.
inline constexpr int kGpuAround = -1;
inline constexpr int kProcessAround = -2;

/// A parsed name.
struct ScalarMetric {
  int gpu = 0;
  bool is_numbered = false;  ///< the name contains the index
  int rank = 0;              ///< of several used metrics of one GPU, the highest-ranked is read
  bool is_total = false;
  bool is_free = false;
  bool is_peak = false;
  bool may_be_peak = false;  ///< "gpu_mem_max": the capacity, or a peak
  bool is_percent = false;
  bool is_reserved = false;  ///< by the program's allocator, if its allocated memory is given, too
  double unit_bytes = 0;     ///< 0: not given
};

/// nullopt if the metric is not GPU memory: a run also records the memory of its process and of the host, and how busy
/// the memory is.
std::optional<ScalarMetric> scalar_metric(std::string_view name);

/// The same for a figure in an object that may identify its owner.
std::optional<ScalarMetric> scalar_metric(const JsonFigure& figure);

/// A metric as seen in the beginning of a log.
struct ScalarSeen {
  std::string name;
  double most = 0;
  bool has_fraction = false;
  double least = 0;
  std::optional<ScalarMetric> metric{};  ///< unless the name alone determines it
};

/// How the values of a metric are read.
struct ScalarUse {
  int gpu = 0;
  bool is_total = false;
  double unit_bytes = 1;
  bool is_free = false;
  bool unit_unknown = false;          ///< `unit_bytes` is a guess: GiB or MiB
  std::optional<Metric> allocator{};  ///< allocated or reserved by the program's allocator
  std::uint64_t capacity_bytes = 0;   ///< of the GPU, if bytes and percentages together determine it
};

/// Chooses one used metric per GPU (two if a program's allocator gives both allocated and reserved), or the free memory
/// if the total is given, or a peak if both are missing. `unit_bytes` and `capacity_bytes` are the user's settings (0,
/// nullopt: not given). `assumptions` receives the assumed units and the skipped metrics. An Error if no metric is
/// left.
Result<std::map<std::string, ScalarUse>> choose_scalars(const std::vector<ScalarSeen>& seen, std::uint64_t unit_bytes,
                                                        const std::optional<std::uint64_t>& capacity_bytes,
                                                        std::vector<std::string>& assumptions);

}  // namespace vramtrack
