#include "source/log/scalar_metric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

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
/// nullopt if the name does not mention a GPU. `is_numbered` is set to whether there is one.
std::optional<int> gpu_in(std::string_view low, bool& is_numbered) {
  is_numbered = true;
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
  is_numbered = apart && number && *number < 4096;
  return is_numbered ? *number : 0;
}

/// Sets what the role of a column says; false if it is not the memory of a GPU.
bool take_role(const Column& column, ScalarMetric& out) {
  if (out.unit_bytes == 0) out.unit_bytes = static_cast<double>(column.unit_bytes);
  out.rank = column.rank;
  out.is_total = column.role == ColumnRole::total;
  out.is_free = column.role == ColumnRole::free;
  out.is_peak = column.role == ColumnRole::peak;
  out.is_percent = column.role == ColumnRole::percent;
  if (out.is_percent) out.rank = 5;
  return out.is_total || out.is_free || out.is_peak || out.is_percent || column.role == ColumnRole::used;
}

/// The words of PyTorch's allocator, whose memory is a GPU's even where no word says so.
bool is_of_allocator(std::string_view low) {
  if (low.find("mem") == std::string_view::npos) return false;
  for (const std::string_view word : {"alloc", "active", "reserved"})
    if (low.find(word) != std::string_view::npos) return true;
  return false;
}

bool has_any(std::string_view low, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return low.find(word) != std::string_view::npos; });
}

/// `name` without the unit that MLflow writes in full (it is memory.used / 1e6), which is put into `out`.
std::string_view without_long_unit(std::string_view name, ScalarMetric& out) {
  const std::string low = logtext::lowered(name);
  for (const std::string_view word : {"_megabytes", "_gigabytes"})
    if (low.ends_with(word)) {
      out.unit_bytes = word == "_megabytes" ? 1e6 : 1e9;
      return name.substr(0, name.size() - word.size());
    }
  return name;
}

}  // namespace

std::optional<ScalarMetric> scalar_metric(std::string_view name) {
  const std::string low = logtext::lowered(name);
  // A process's share or a maximum is not what the GPU holds now.
  if (has_any(low, {"process", "max", "peak", "min_", "cached", "available_host", "fraction", "bandwidth"}))
    return std::nullopt;
  ScalarMetric out;
  const auto gpu = gpu_in(low, out.is_numbered);
  if (!gpu) return std::nullopt;
  out.gpu = *gpu;
  // wandb: memory is how busy the memory is, memoryAllocated a percentage.
  if (low.ends_with(".memory") || low.ends_with("/memory")) return std::nullopt;
  if (name.ends_with(".memoryAllocated")) {
    out.is_percent = true;
    out.rank = 10;
    return out;
  }
  if (!take_role(classify_column(without_long_unit(name, out)), out)) return std::nullopt;
  out.is_reserved = low.find("reserved") != std::string::npos;  // or by the driver
  return out;
}

std::optional<ScalarMetric> scalar_metric(const JsonFigure& figure) {
  const FigureOwner& owner = figure.owner;
  const std::string low = logtext::lowered(figure.name);
  const bool is_flat = !owner.names_gpu() && !owner.is_gpu && !owner.pid && figure.above.empty();
  if (is_flat && !has_any(low, {"peak", "max"})) return scalar_metric(figure.name);
  ScalarMetric out;
  if (has_any(low, {"cached", "fraction", "bandwidth", "min_"}) || (!owner.pid && has_any(low, {"process"})))
    return std::nullopt;
  const auto gpu = gpu_in(low, out.is_numbered);
  Column column = classify_column(without_long_unit(figure.key, out));
  // "memory": {"used": ...}; "reserved" is the driver's, or an allocator's.
  if (column.role == ColumnRole::other && !figure.above.empty())
    column = classify_column(figure.above + ' ' + figure.key);
  if (!take_role(column, out)) return std::nullopt;
  out.is_reserved = !out.is_peak && has_any(logtext::lowered(figure.key), {"reserved"});
  if (!gpu && !owner.is_gpu && !(out.is_peak && is_of_allocator(low))) return std::nullopt;
  out.gpu = owner.pid ? kProcessAround : owner.names_gpu() ? kGpuAround : gpu.value_or(0);
  return out;
}

Result<std::map<std::string, ScalarUse>> choose_scalars(const std::vector<ScalarSeen>& seen, std::uint64_t unit_bytes,
                                                        const std::optional<std::uint64_t>& capacity_bytes,
                                                        std::vector<std::string>& assumptions) {
  struct Best {
    const ScalarSeen* seen = nullptr;
    ScalarMetric metric;
  };
  const auto tell = [&](const ScalarSeen& one, const ScalarMetric& metric) {
    if (metric.is_percent) return;
    const std::string of = metric.gpu >= 0                ? fmt::format("GPU {}", metric.gpu)
                           : metric.gpu == kProcessAround ? std::string("a process")
                                                          : std::string("a GPU");
    assumptions.push_back(
        fmt::format("the metric '{}' may also be the memory of {}; it is not read", logtext::excerpt(one.name), of));
  };
  std::map<int, Best> used, total, free, peak, reserved;
  for (const ScalarSeen& one : seen) {
    const auto metric = one.metric ? one.metric : scalar_metric(one.name);
    if (!metric) continue;
    auto& of_kind = metric->is_total      ? total
                    : metric->is_free     ? free
                    : metric->is_peak     ? peak
                    : metric->is_reserved ? reserved
                                          : used;
    Best& best = of_kind[metric->gpu];
    const bool is_better = best.seen == nullptr || metric->rank > best.metric.rank;
    const bool is_read = !metric->is_free && !metric->is_peak && !metric->is_reserved;
    if (is_better && best.seen != nullptr && is_read) tell(*best.seen, best.metric);
    if (!is_better && is_read) tell(one, *metric);
    if (is_better) best = {&one, *metric};
  }
  // A sum or a copy beside the figures of each GPU would be taken for the memory of the first.
  if (used.contains(kGpuAround) && used.contains(0) && !used[0].metric.is_numbered) {
    tell(*used[0].seen, used[0].metric);
    used.erase(0);
  }
  for (const auto& [gpu, best] : free)
    if (!used.contains(gpu) && total.contains(gpu)) used[gpu] = best;
  if (used.empty() && !peak.empty()) {
    used = std::move(peak);
    assumptions.emplace_back(kOnlyPeaks);
  }
  const bool only_reserved = used.empty() && total.empty();
  if (only_reserved) used = std::exchange(reserved, {});
  if (used.empty()) return fail("the metrics have the total memory of a GPU, but not its used memory");

  std::map<std::string, ScalarUse> uses;
  for (const auto& [gpu, best] : total)
    if (used.contains(gpu) && best.metric.unit_bytes > 0)
      uses[best.seen->name] = {gpu, true, best.metric.unit_bytes, false, {}};
  for (const auto& [gpu, best] : used) {
    ScalarUse use{gpu, false, best.metric.unit_bytes, best.metric.is_free, {}};
    const auto beside = reserved.find(gpu);
    const bool is_of_program = beside != reserved.end() && !best.metric.is_percent &&
                               beside->second.metric.unit_bytes == best.metric.unit_bytes &&
                               has_any(logtext::lowered(best.seen->name), {"alloc"});
    if (is_of_program) use.allocator = Metric::allocator_allocated;
    if (only_reserved) use.allocator = Metric::allocator_reserved;
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
    // Of two figures without a unit, the total has the unit of the other one.
    const auto whole = total.find(gpu);
    if (whole != total.end() && whole->second.metric.unit_bytes == 0 && best.metric.unit_bytes == 0 &&
        !best.metric.is_percent && whole->second.seen->most >= best.seen->most)
      uses[whole->second.seen->name] = {gpu, true, use.unit_bytes, false, {}};
    if (!is_of_program) continue;
    use.allocator = Metric::allocator_reserved;
    uses[beside->second.seen->name] = use;
  }
  return uses;
}

}  // namespace vramtrack
