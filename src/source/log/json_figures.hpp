// The figures in a JSON object, at any depth, and their owners: {"gpus": [{"id": 0, "mem_used_mb": 4000}, ...]};
// and which of them are GPU memory, by their names in wandb, MLflow and the logs of users.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.hpp"
#include "source/log/columns.hpp"
#include "source/log/json.hpp"
#include "source/log/roster.hpp"

namespace vramtrack {

/// The owner of a figure, according to the enclosing objects and lists.
struct FigureOwner {
  LogDevice gpu;               ///< within the origin; missing fields stay empty
  std::string origin;          ///< the machine, job or program; several are joined by '/'
  std::string partition;       ///< see OwnerIds
  std::string share;           ///< see OwnerIds
  bool is_gpu = false;         ///< a key names a GPU, or an id is a GPU's
  bool by_position = false;    ///< the index is the position in a list
  std::size_t in_list_of = 0;  ///< the length of that list
  std::string index_key;       ///< the keys that lead to the index
  bool is_unsure = false;      ///< they may also lead to a measure ("gpu")
  std::string index_text;      ///< the text of the index
  std::optional<std::uint32_t> pid;
  bool pid_is_unreadable = false;  ///< a key of a pid has another value
  std::string process;             ///< its name

  /// Whether a key has a pid, even one that cannot be read.
  [[nodiscard]] bool names_process() const { return pid || pid_is_unreadable; }
  /// Takes what is missing from `its`, which describes the same figures.
  void complete(const FigureOwner& its);
  /// The device that all of it names.
  [[nodiscard]] LogDevice device() const;
  /// Whether anything identifies the GPU.
  [[nodiscard]] bool names_gpu() const { return has_id(gpu); }
  /// Whether anything identifies the GPU or its machine, job or program.
  [[nodiscard]] bool names_any() const {
    return names_gpu() || !origin.empty() || !partition.empty() || !share.empty();
  }
};

/// A number in an object.
struct JsonFigure {
  std::string name;   ///< the keys that lead to it: "gpus > memory > used"; positions and ids are not part of it
  std::string above;  ///< the last key but one
  std::string key;    ///< the last one
  double number = 0;
  bool in_bytes = false;  ///< a text such as "4000 MiB", read
  bool is_amount = true;  ///< false: text that is not an amount, or a negative number
  FigureOwner owner;
};

/// What the keys of a log turn out to mean.
struct FigureKeys {
  std::vector<std::string> measures;        ///< the keys that lead to what looks like an index but is a measure
  std::vector<std::string> series;          ///< keys of the outermost object that distinguish programs or machines
  std::vector<std::string> distinguishing;  ///< those that do so by their values, as fields_of() names them
};

/// The writer according to a field of `object`, named as fields_of() does: its text, or the name within it ("host":
/// {"name": "node7"}).
std::string_view series_text(const JsonValue& object, std::string_view name);
/// The last key of such a name.
std::string_view key_of(std::string_view name);

/// Which objects in an object fields_of() looks into.
enum class FieldsOf : std::uint8_t {
  all,
  descriptions,  ///< those that only describe the figures beside them: "labels": {"host": "n1", "gpu": 0}
};

/// The texts and numbers of an object and of objects in it, by name: "labels > host". Views into `object`.
std::vector<std::pair<std::string, std::string_view>> fields_of(const JsonValue& object, FieldsOf of = FieldsOf::all);

/// Finds the figures of one object after another. Not thread-safe.
class FigureReader {
 public:
  explicit FigureReader(FigureKeys keys) : keys_(std::move(keys)) {}

  /// The figures of `object`, in order, valid until the next call. Each element of a list of objects has its own
  /// owner, and so has each number of a list of numbers (also written as text: "[9000, 3997]", "9000;3997"). A
  /// figure without a value (null, "N/A") is left out. `of`: distinguishes the object from others; empty: nothing
  /// does.
  const std::vector<JsonFigure>& read(const JsonValue& object, std::string_view of = {});

 private:
  class Walk;

  FigureKeys keys_;
  std::vector<JsonFigure> found_;
};

/// Beginning of the lines that run_file.cpp writes.
inline constexpr std::string_view kRunFileMark = "{\"run_file\":";

/// Replaces the index of a GPU: the context of the metric identifies the GPU or the process.
inline constexpr int kGpuAround = -1;
inline constexpr int kProcessAround = -2;

/// The number of the GPU in the name of a metric ("gpu1_mem_used_mib", "system.gpu.0.memory"); nullopt: none.
std::optional<int> gpu_number_in(std::string_view name);

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

/// Whose memory counts.
enum class MemoryOf : std::uint8_t {
  gpus,          ///< that of GPUs, by a word or the objects around it
  beside_total,  ///< also used and free memory of nobody: the total of a GPU beside it says whose it is
  anyone         ///< also memory of nobody
};

/// The same for a figure in an object that may identify its owner.
std::optional<ScalarMetric> scalar_metric(const JsonFigure& figure, MemoryOf of = MemoryOf::gpus);

/// A metric as seen at the beginning of a log.
struct ScalarSeen {
  std::string name;
  double most = 0;
  bool has_fraction = false;
  double least = 0;
  std::vector<double> values{};
  std::optional<ScalarMetric> metric{};  ///< unless the name alone determines it
};

/// How the values of a metric are read.
struct ScalarUse {
  int gpu = 0;
  bool is_total = false;
  double unit_bytes = 1;
  bool is_free = false;
  bool is_percent = false;            ///< `unit_bytes` is Scale::kPercentBytes
  bool has_total = false;             ///< another metric gives the total
  bool unit_unknown = false;          ///< `unit_bytes` is a guess: GiB or MiB
  std::optional<Metric> allocator{};  ///< allocated or reserved by the program's allocator
  std::uint64_t capacity_bytes = 0;   ///< of the GPU, if bytes and percentages together determine it
  std::uint64_t most_free_bytes = 0;  ///< see GpuMemory
  bool is_numbered = false;           ///< the name contains `gpu`
};

/// Chooses one used metric per GPU (two if a program's allocator gives both allocated and reserved), or the free memory
/// if the total is given, or a peak if both are missing. `unit_bytes` and `capacity_bytes` are the user's settings (0,
/// nullopt: not given). `assumptions` receives the assumed units and the skipped metrics. An Error if no metric is
/// left.
Result<std::map<std::string, ScalarUse>> choose_scalars(const std::vector<ScalarSeen>& seen, std::uint64_t unit_bytes,
                                                        const std::optional<std::uint64_t>& capacity_bytes,
                                                        std::vector<std::string>& assumptions);

}  // namespace vramtrack
