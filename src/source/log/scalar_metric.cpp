#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/scale.hpp"
#include "core/units.hpp"
#include "source/log/columns.hpp"
#include "source/log/json_figures.hpp"
#include "source/log/labels.hpp"
#include "source/log/text.hpp"
#include "source/log/unit.hpp"

namespace vramtrack {
namespace {

using logtext::is_ascii_letter;
using logtext::is_digit;

/// The number after a word for GPU ("gpu.1.", "cuda:1", "gpu_id: 1", "device1", "GPU 1"); 0 if there is no number,
/// nullopt if the name does not mention a GPU. `is_numbered` is set to whether there is one.
std::optional<int> gpu_in(std::string_view name, bool& is_numbered) {
  std::vector<Word> words;
  cut_words(name, words);
  is_numbered = true;
  bool speaks = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    speaks |= words[i].meaning == Meaning::vram || words[i].meaning == Meaning::gpu;
    if (words[i].meaning != Meaning::gpu) continue;
    const bool is_id = i + 1 < words.size() && (logtext::same_letters(words[i + 1].text, "id") ||
                                                logtext::same_letters(words[i + 1].text, "idx") ||
                                                logtext::same_letters(words[i + 1].text, "index"));
    const std::string_view before = words[is_id ? i + 1 : i].text;
    std::string_view rest = name.substr(static_cast<std::size_t>(before.data() + before.size() - name.data()));
    while (!rest.empty() && !is_digit(rest.front()) && !is_ascii_letter(rest.front())) rest.remove_prefix(1);
    std::size_t digits = 0;
    while (digits < rest.size() && is_digit(rest[digits])) ++digits;
    const auto number = logtext::whole_number<int>(rest.substr(0, digits));
    const bool ends = digits == rest.size() || !is_ascii_letter(rest[digits]);
    if (number && ends && *number < 4096) return number;
  }
  if (!speaks) return std::nullopt;
  // "gpu_mem_used_gb_1"
  std::size_t digits = 0;
  while (digits < name.size() && is_digit(name[name.size() - digits - 1])) ++digits;
  const bool apart = digits > 0 && digits < name.size() && !is_ascii_letter(name[name.size() - digits - 1]);
  const auto number = logtext::whole_number<int>(name.substr(name.size() - digits));
  is_numbered = apart && number && *number < 4096;
  return is_numbered ? *number : 0;
}

/// Sets the fields that a column's role determines; false if it is not GPU memory.
bool take_role(const Column& column, ScalarMetric& out) {
  if (out.unit_bytes == 0) out.unit_bytes = static_cast<double>(column.unit_bytes);
  out.rank = column.rank;
  constexpr int kSureTotal = 50;
  out.is_total = column.role == ColumnRole::total;
  out.may_be_peak = out.is_total && column.rank < kSureTotal;
  out.is_free = column.role == ColumnRole::free;
  out.is_peak = column.role == ColumnRole::peak;
  out.is_percent = column.role == ColumnRole::percent;
  if (out.is_percent) out.rank = 5;
  return out.is_total || out.is_free || out.is_peak || out.is_percent || column.role == ColumnRole::used;
}

/// Whether used and free memory add up to a single total, as their extremes show.
bool add_up(const ScalarSeen& used, const ScalarSeen& free) {
  constexpr double kAlike = 0.05;
  const double sum = used.most + free.least;
  return std::abs(sum - (used.least + free.most)) <= kAlike * sum;
}

/// The capacity of a GPU with used memory given in bytes and in per cent: both maxima were read at the same time.
/// Returns 0 if the percentage is too coarse.
std::uint64_t capacity_of(const ScalarSeen& used, const ScalarMetric& metric, const ScalarSeen& percent) {
  constexpr double kLeastPercent = 0.5;
  constexpr double kLeastTenths = 50;  // MLflow rounds to a tenth; half of that is 1 % of this
  const bool is_of_tenths = std::abs(std::remainder(percent.most, 0.1)) < 1e-9;
  if (metric.is_percent || metric.is_free || metric.unit_bytes <= 0 || !percent.has_fraction ||
      percent.most < (is_of_tenths ? kLeastTenths / 10 : kLeastPercent) || percent.most > 100)
    return 0;
  const double mib = used.most * metric.unit_bytes / percent.most * 100 / static_cast<double>(kBytesPerMiB);
  return static_cast<std::uint64_t>(std::llround(mib)) * kBytesPerMiB;
}

}  // namespace

std::optional<int> gpu_number_in(std::string_view name) {
  bool is_numbered = false;
  const auto gpu = gpu_in(name, is_numbered);
  return is_numbered ? gpu : std::nullopt;
}

std::optional<ScalarMetric> scalar_metric(std::string_view name) {
  JsonFigure figure;
  figure.name = figure.key = name;
  const auto metric = scalar_metric(figure);
  return metric && metric->is_peak ? std::nullopt : metric;
}

std::optional<ScalarMetric> scalar_metric(const JsonFigure& figure, MemoryOf of) {
  const FigureOwner& owner = figure.owner;
  const Label label = read_label(figure.name);
  const Label own = read_label(figure.key);
  const bool is_of_anyone = of != MemoryOf::gpus && own.memory;
  // The share of one process is not the GPU's used memory.
  if (label.measured || label.share || (label.process && !owner.pid && !is_of_anyone)) return std::nullopt;
  ScalarMetric out;
  const auto gpu = gpu_in(figure.name, out.is_numbered);
  const bool is_flat = !owner.names_gpu() && !owner.is_gpu && !owner.pid && figure.above.empty();
  // In wandb, memory is how busy the memory is, and memoryAllocated is a percentage.
  if (is_flat && (figure.key.ends_with(".memory") || figure.key.ends_with("/memory"))) return std::nullopt;
  if (is_flat && gpu && figure.key.ends_with(".memoryAllocated")) {
    out.gpu = *gpu;
    out.is_percent = true;
    out.rank = 10;
    return out;
  }
  Column column = classify_column(figure.key);
  // "memory": {"used": ...}; "reserved" is memory of the driver, or of an allocator.
  if (column.role == ColumnRole::other && !figure.above.empty())
    column = classify_column(figure.above + ' ' + figure.key);
  if (column.mentions_host || !take_role(column, out)) return std::nullopt;
  out.is_reserved = !out.is_peak && own.role().first == Meaning::reserved;
  // The words of PyTorch's allocator, with memory on a GPU even if no word says so.
  const bool is_of_allocator = out.is_peak && own.memory && own.roles.size() > 1;
  if (!gpu && !owner.is_gpu && !is_of_allocator && !is_query_field(figure.key)) {
    const bool is_whole = out.is_total && of == MemoryOf::beside_total;
    if (!is_of_anyone || is_whole || out.is_percent) return std::nullopt;
    out.is_numbered = false;
  }
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
  const auto report_skipped = [&](const ScalarSeen& one, const ScalarMetric& metric) {
    if (metric.is_percent) return;
    const std::string of = metric.gpu >= 0                ? fmt::format("GPU {}", metric.gpu)
                           : metric.gpu == kProcessAround ? std::string("a process")
                                                          : std::string("a GPU");
    assumptions.push_back(
        fmt::format("the metric '{}' may also be the memory of {}; it is not read", logtext::excerpt(one.name), of));
  };
  std::map<int, Best> used, total, free, peak, reserved, unsure, percent;
  for (const ScalarSeen& one : seen) {
    const auto metric = one.metric ? one.metric : scalar_metric(one.name);
    if (!metric) continue;
    auto& of_kind = metric->may_be_peak   ? unsure
                    : metric->is_total    ? total
                    : metric->is_free     ? free
                    : metric->is_peak     ? peak
                    : metric->is_reserved ? reserved
                                          : used;
    Best& best = of_kind[metric->gpu];
    if (metric->is_percent) percent.try_emplace(metric->gpu, Best{&one, *metric});
    const bool is_better = best.seen == nullptr || metric->rank > best.metric.rank;
    const bool is_read = !metric->may_be_peak && !metric->is_free && !metric->is_peak && !metric->is_reserved;
    if (is_better && best.seen != nullptr && is_read) report_skipped(*best.seen, best.metric);
    if (!is_better && is_read) report_skipped(one, *metric);
    if (is_better) best = {&one, *metric};
  }
  for (const auto& [gpu, best] : unsure) {
    const auto in_use = used.find(gpu);
    if (in_use == used.end() && !free.contains(gpu))
      peak.try_emplace(gpu, best);
    else if (in_use != used.end() && best.seen->least == best.seen->most && best.seen->most > in_use->second.seen->most)
      total.try_emplace(gpu, best);
  }
  // A sum or a copy next to the figures of each GPU would be mistaken for the memory of the first GPU.
  if (used.contains(kGpuAround) && used.contains(0) && !used[0].metric.is_numbered) {
    report_skipped(*used[0].seen, used[0].metric);
    used.erase(0);
  }
  // "Available" memory is the total if the percentage refers to it.
  for (const auto& [gpu, share] : percent) {
    const auto in_use = used.find(gpu);
    const auto rest = free.find(gpu);
    if (in_use == used.end() || rest == free.end() || in_use->second.metric.is_percent || total.contains(gpu)) continue;
    const double most = in_use->second.seen->most;
    const auto off = [most, percentage = share.seen->most](double whole) {
      return std::abs(100 * most / whole - percentage);
    };
    if (off(rest->second.seen->most) * 4 < off(most + rest->second.seen->least)) {
      total[gpu] = rest->second;
      free.erase(rest);
    }
  }
  for (const auto& [gpu, best] : free) {
    const auto beside = used.find(gpu);
    const bool has_percent = beside != used.end() && beside->second.metric.is_percent;
    const bool has_amount = beside != used.end() && !has_percent;
    if (in_use_from({has_amount, true, total.contains(gpu), has_percent}) == InUse::free_and_total) used[gpu] = best;
  }
  const InUse from = in_use_from({!used.empty() || !reserved.empty(), !free.empty(), false, false, !peak.empty()});
  if (from == InUse::free) used = free;
  if (from == InUse::peak) {
    used = std::move(peak);
    assumptions.emplace_back(kOnlyPeaks);
  }
  const bool only_reserved = used.empty() && !reserved.empty();
  if (only_reserved) used = std::exchange(reserved, {});
  if (used.empty()) return fail("the metrics have the total memory of a GPU, but not its used memory");

  std::map<std::string, ScalarUse> uses;
  for (const auto& [gpu, best] : total)
    if (used.contains(gpu) && best.metric.unit_bytes > 0) uses[best.seen->name] = {gpu, true, best.metric.unit_bytes};
  for (const auto& [gpu, best] : used) {
    ScalarUse use{gpu, false, best.metric.unit_bytes, best.metric.is_free};
    const auto beside = reserved.find(gpu);
    const bool is_of_program = beside != reserved.end() && !best.metric.is_percent &&
                               beside->second.metric.unit_bytes == best.metric.unit_bytes &&
                               read_label(best.seen->name).role().first == Meaning::allocated;
    if (is_of_program) use.allocator = Metric::allocator_allocated;
    if (const auto share = percent.find(gpu); share != percent.end() && !total.contains(gpu) && gpu >= 0)
      use.capacity_bytes = capacity_of(*best.seen, best.metric, *share->second.seen);
    if (only_reserved) use.allocator = Metric::allocator_reserved;
    if (best.metric.is_percent) {
      use.is_percent = true;
      use.unit_bytes = Scale::kPercentBytes;
      const auto whole = total.find(gpu);
      use.has_total = whole != total.end() && whole->second.metric.unit_bytes > 0;
    } else if (const auto decimal = decimal_unit(best.seen->values, static_cast<std::uint64_t>(use.unit_bytes),
                                                 best.seen->name, assumptions);
               decimal != 0) {
      use.unit_bytes = static_cast<double>(decimal);
      if (const auto whole = total.find(gpu);
          whole != total.end() && whole->second.metric.unit_bytes == best.metric.unit_bytes)
        uses[whole->second.seen->name].unit_bytes = use.unit_bytes;
    } else if (use.unit_bytes == 0 && unit_bytes != 0) {
      use.unit_bytes = static_cast<double>(unit_bytes);
    } else if (use.unit_bytes == 0) {
      const auto whole = total.find(gpu);
      const bool has_total = whole != total.end() && whole->second.metric.unit_bytes == 0;
      const GuessedUnit guessed =
          guess_unit({best.seen->most, best.seen->has_fraction,
                      has_total ? std::optional(whole->second.seen->most) : std::nullopt, best.seen->values},
                     fmt::format("the metric '{}'", logtext::excerpt(best.seen->name)), capacity_bytes, assumptions);
      use.unit_bytes = static_cast<double>(guessed.bytes);
      use.unit_unknown = guessed.is_unknown;
    }
    if (from == InUse::free) {
      constexpr double kMost = 1e18;  // no amount of memory is so large
      const auto most_free = most_free_of(static_cast<std::uint64_t>(std::min(best.seen->most * use.unit_bytes, kMost)),
                                          best.seen->values.size(), capacity_bytes, assumptions);
      if (!most_free) return fail(most_free.error());
      use.most_free_bytes = *most_free;
    }
    uses[best.seen->name] = use;
    const auto rest = free.find(gpu);
    const Meaning role = read_label(best.seen->name).role().first;
    const bool is_whole = gpu != kProcessAround && !use.is_free && !use.is_percent && !best.metric.is_peak &&
                          role != Meaning::allocated && role != Meaning::reserved && !total.contains(gpu);
    if (is_whole && rest != free.end() && rest->second.metric.unit_bytes == best.metric.unit_bytes &&
        add_up(*best.seen, *rest->second.seen))
      uses[rest->second.seen->name] = {gpu, false, use.unit_bytes, true};
    // If neither figure has a unit, the total has the unit of the other one.
    const auto whole = total.find(gpu);
    if (whole != total.end() && whole->second.metric.unit_bytes == 0 && best.metric.unit_bytes == 0 &&
        !best.metric.is_percent && whole->second.seen->most >= best.seen->most)
      uses[whole->second.seen->name] = {gpu, true, use.unit_bytes};
    if (!is_of_program) continue;
    use.allocator = Metric::allocator_reserved;
    uses[beside->second.seen->name] = use;
  }
  return uses;
}

}  // namespace vramtrack
