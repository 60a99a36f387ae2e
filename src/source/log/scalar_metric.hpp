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
#include "source/log/json_figures.hpp"

namespace vramtrack {

/// Beginning of what run_files.cpp writes.
inline constexpr std::string_view kRunFileMark = "{\"run_file\":";

/// In place of the index of a GPU: what stands around the metric says which GPU it is of, or which process.
inline constexpr int kGpuAround = -1;
inline constexpr int kProcessAround = -2;

/// A name, understood.
struct ScalarMetric {
  int gpu = 0;
  bool is_numbered = false;  ///< the name gives the index
  int rank = 0;              ///< of several used metrics of one GPU, the highest is read
  bool is_total = false;
  bool is_free = false;
  bool is_peak = false;
  bool may_be_peak = false;  ///< "gpu_mem_max": the capacity, or a peak
  bool is_percent = false;
  bool is_reserved = false;  ///< by the program's allocator, if what it has allocated is given, too
  double unit_bytes = 0;     ///< 0: not said
};

/// nullopt when the metric is not the memory of a GPU: a run also records the memory of its process and of the host,
/// and how busy the memory is.
std::optional<ScalarMetric> scalar_metric(std::string_view name);

/// The same of a figure in an object, with what the object says of whose it is.
std::optional<ScalarMetric> scalar_metric(const JsonFigure& figure);

/// A metric as seen in the beginning of a log.
struct ScalarSeen {
  std::string name;
  double most = 0;
  bool has_fraction = false;
  double least = 0;
  std::optional<ScalarMetric> metric{};  ///< unless the name alone says it
};

/// How the values of a metric are read.
struct ScalarUse {
  int gpu = 0;
  bool is_total = false;
  double unit_bytes = 1;
  bool is_free = false;
  bool unit_unknown = false;          ///< `unit_bytes` is a guess: GiB or MiB
  std::optional<Metric> allocator{};  ///< allocated or reserved by the program's allocator
  std::uint64_t capacity_bytes = 0;   ///< of the GPU, if bytes and percentages together give it
};

/// Chooses one used metric per GPU (two if a program's allocator gives what is allocated and what is reserved), or the
/// free memory where the total is given, or a peak for want of both. `unit_bytes` and `capacity_bytes` are the user's
/// settings (0, nullopt: not given). `assumptions` gets the units that were assumed and the metrics that are skipped.
/// An Error when no metric is left.
Result<std::map<std::string, ScalarUse>> choose_scalars(const std::vector<ScalarSeen>& seen, std::uint64_t unit_bytes,
                                                        const std::optional<std::uint64_t>& capacity_bytes,
                                                        std::vector<std::string>& assumptions);

}  // namespace vramtrack
