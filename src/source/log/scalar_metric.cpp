#include "source/log/scalar_metric.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/option.hpp"
#include "core/units.hpp"
#include "source/log/columns.hpp"
#include "source/log/text.hpp"
#include "source/log/unit.hpp"

namespace vramtrack {
namespace {

using logtext::is_alpha;
using logtext::is_digit;

/// The number after a word for GPU ("gpu.1.", "cuda:1", "gpu_id: 1", "device1", "GPU 1"); 0 if there is no number,
/// nullopt if the name does not mention a GPU.
std::optional<int> gpu_in(std::string_view low) {
  bool speaks = low.find("vram") != std::string_view::npos;
  for (const std::string_view word : {"gpu", "cuda", "npu", "xpu", "device", "nvidia"}) {
    for (std::size_t at = low.find(word); at != std::string_view::npos; at = low.find(word, at + 1)) {
      if (at > 0 && is_alpha(low[at - 1])) continue;
      if (word != "device") speaks = true;
      std::string_view rest = low.substr(at + word.size());
      for (const std::string_view between : {"_id", "_index", " id", "_idx"})
        if (rest.starts_with(between)) rest.remove_prefix(between.size());
      while (!rest.empty() && !is_digit(rest.front()) && !is_alpha(rest.front())) rest.remove_prefix(1);
      std::size_t digits = 0;
      while (digits < rest.size() && is_digit(rest[digits])) ++digits;
      const auto number = logtext::whole_number<int>(rest.substr(0, digits));
      const bool ends = digits == rest.size() || !is_alpha(rest[digits]);
      if (number && ends && *number < 4096) return number;
    }
  }
  if (!speaks) return std::nullopt;
  // "gpu_mem_used_gb_1"
  std::size_t digits = 0;
  while (digits < low.size() && is_digit(low[low.size() - digits - 1])) ++digits;
  const bool apart = digits > 0 && digits < low.size() && !is_alpha(low[low.size() - digits - 1]);
  const auto number = logtext::whole_number<int>(low.substr(low.size() - digits));
  return apart && number && *number < 4096 ? *number : 0;
}

}  // namespace

std::optional<ScalarMetric> scalar_metric(std::string_view name) {
  const std::string low = logtext::lowered(name);
  // A process's share, a maximum, or the driver's share is not what the GPU holds now.
  for (const std::string_view other :
       {"process", "max", "peak", "min_", "reserved", "cached", "available_host", "fraction", "bandwidth"})
    if (low.find(other) != std::string::npos) return std::nullopt;
  const auto gpu = gpu_in(low);
  if (!gpu) return std::nullopt;
  ScalarMetric out;
  out.gpu = *gpu;
  // wandb: memory is how busy the memory is, memoryAllocated a percentage.
  if (low.ends_with(".memory") || low.ends_with("/memory")) return std::nullopt;
  if (name.ends_with(".memoryAllocated")) {
    out.is_percent = true;
    out.rank = 10;
    return out;
  }
  // MLflow: memory.used / 1e6.
  std::string title(name);
  for (const std::string_view word : {"_megabytes", "_gigabytes"})
    if (low.ends_with(word)) {
      out.unit_bytes = word == "_megabytes" ? 1e6 : 1e9;
      title.resize(title.size() - word.size());
    }
  const Column column = classify_column(title);
  if (out.unit_bytes == 0) out.unit_bytes = static_cast<double>(column.unit_bytes);
  out.rank = column.rank;
  if (column.role == ColumnRole::total)
    out.is_total = true;
  else if (column.role == ColumnRole::percent)
    out.is_percent = true;
  else if (column.role != ColumnRole::used)
    return std::nullopt;
  if (out.is_percent) out.rank = 5;
  return out;
}

Result<std::map<std::string, ScalarUse>> choose_scalars(const std::vector<ScalarSeen>& seen, std::uint64_t unit_bytes,
                                                        const std::optional<std::uint64_t>& capacity_bytes,
                                                        std::vector<std::string>& assumptions) {
  struct Best {
    const ScalarSeen* seen = nullptr;
    ScalarMetric metric;
  };
  std::map<int, Best> used, total;
  for (const ScalarSeen& one : seen) {
    const auto metric = scalar_metric(one.name);
    if (!metric) continue;
    Best& best = (metric->is_total ? total : used)[metric->gpu];
    if (best.seen == nullptr || metric->rank > best.metric.rank) {
      if (best.seen != nullptr && !best.metric.is_percent)
        assumptions.push_back(fmt::format("the metric '{}' also is the memory of GPU {} and is not read",
                                          logtext::excerpt(best.seen->name), metric->gpu));
      best = {&one, *metric};
    } else if (!metric->is_percent) {
      assumptions.push_back(fmt::format("the metric '{}' also is the memory of GPU {} and is not read",
                                        logtext::excerpt(one.name), metric->gpu));
    }
  }
  if (used.empty()) return fail("the metrics have the total memory of a GPU, but not its used memory");

  std::map<std::string, ScalarUse> uses;
  for (const auto& [gpu, best] : total)
    if (used.contains(gpu) && best.metric.unit_bytes > 0) uses[best.seen->name] = {gpu, true, best.metric.unit_bytes};
  for (const auto& [gpu, best] : used) {
    ScalarUse use{gpu, false, best.metric.unit_bytes};
    if (best.metric.is_percent) {
      use.unit_bytes = capacity_bytes ? static_cast<double>(*capacity_bytes) / 100 : static_cast<double>(kBytesPerGiB);
      // A nominal scale cannot be combined with a true total.
      if (!capacity_bytes)
        std::erase_if(uses, [gpu = gpu](const auto& one) { return one.second.gpu == gpu && one.second.is_total; });
      if (!capacity_bytes)
        assumptions.push_back(
            nominal_scale(fmt::format("the metric '{}' is a percentage", logtext::excerpt(best.seen->name))));
    } else if (use.unit_bytes == 0 && unit_bytes != 0) {
      use.unit_bytes = static_cast<double>(unit_bytes);
    } else if (use.unit_bytes == 0) {
      // As in tables: no GPU has 4 TiB, and nobody records less than 512 MiB in fractions of a MiB.
      const bool bytes = best.seen->most >= 4e6;
      const bool gib = best.seen->has_fraction && best.seen->most <= 512;
      use.unit_bytes = bytes ? 1 : static_cast<double>(gib ? kBytesPerGiB : kBytesPerMiB);
      assumptions.push_back(fmt::format(
          "the metric '{}' has no unit: {} are assumed from its values (up to {:.6g}); if that is wrong, give {}",
          logtext::excerpt(best.seen->name),
          bytes ? "bytes"
          : gib ? "GiB"
                : "MiB",
          best.seen->most, name_of(Option::unit)));
    }
    uses[best.seen->name] = use;
  }
  return uses;
}

}  // namespace vramtrack
