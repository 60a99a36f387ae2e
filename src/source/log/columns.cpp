#include "source/log/columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <string>
#include <unordered_map>
#include <utility>

#include "source/log/labels.hpp"
#include "source/log/memory_words.hpp"
#include "source/log/text.hpp"
#include "source/log/unit.hpp"

namespace vramtrack {
namespace {

using logtext::is_ascii_letter;
using logtext::is_digit;
using logtext::lower;
using logtext::trim;

/// From this rank on, a title can only be that of an index, not of a measure.
constexpr int kSureIndex = 60;
/// Rank in words.def of the memory that a GPU shares with the host.
constexpr int kShared = 9;
/// Rank of a total that may be a peak.
constexpr int kCapacityOrPeak = 20;

/// A title with one known meaning.
struct KnownTitle {
  std::string_view title;
  ColumnRole role;
  int rank;
};

constexpr KnownTitle kTitles[] = {
#define VRAMTRACK_TITLE(title, role, rank) {title, ColumnRole::role, rank},
#include "core/words.def"
};

const KnownTitle* known_title(const TitleWords& w) {
  const std::string title = w.text();
  const auto* const it = std::find_if(std::begin(kTitles), std::end(kTitles),
                                      [&](const KnownTitle& known) { return known.title == title; });
  return it == std::end(kTitles) ? nullptr : it;
}

/// For titles that are not known as a whole.
int time_rank(const TitleWords& w) {
  if (w.words[0] == "elapsed" || w.words.back() == "elapsed" || w.words[0] == "relative") return 75;
  // "iter_time", "time_per_step": the duration of one iteration.
  if (w.has({"forward", "backward"}) || std::any_of(w.words.begin(), w.words.end(), [](const auto& word) {
        const Meaning meaning = meaning_of(word);
        return meaning == Meaning::step || meaning == Meaning::iteration || meaning == Meaning::batch;
      }))
    return 0;
  return w.words.back() == "timestamp" || w.words.back() == "time" || w.words[0] == "timestamp" ? 40 : 0;
}

/// Role and rank of a title about memory; the role is `other` if it is about something else, or irrelevant memory.
void classify_memory(const TitleWords& w, const Label& label, Column& out) {
  const bool memory = label.memory || label.vram || label.ram;
  const auto [role, role_word] = label.role();
  const bool is_alone = w.words.size() == 1;
  const auto set = [&out](ColumnRole column_role, int rank) {
    out.role = column_role;
    out.rank = rank;
  };
  const auto has_role = [&](Meaning meaning) {
    return std::find(label.roles.begin(), label.roles.end(), meaning) != label.roles.end();
  };
  if (label.measured || label.swap || label.change || label.share || (label.other && !label.is_of_gpu())) return;
  // "vram_start_mib": the value at the start of a run
  if (w.has({"min", "start", "initial", "baseline"})) return;
  constexpr int kMean = 10;  // mean of an interval: used if the readings themselves are missing
  if (w.has({"avg", "mean", "average"}) && memory && !w.percent && role != Meaning::free && role != Meaning::total &&
      role != Meaning::peak)
    set(ColumnRole::used, kMean);
  if (w.has({"avg", "mean", "average"})) return;
  out.counts_things = !label.things.empty() && w.unit_bytes == 0 && (memory || role != Meaning::none);
  if (out.counts_things) return;
  if (role == Meaning::peak && !w.percent) {
    // "Memory Max" is a capacity or a peak: the values decide (csv_plan.cpp).
    const bool is_unsure = label.roles.size() == 1 && w.words.size() <= 3 && w.words.back().starts_with("max");
    if (memory && is_unsure) return set(ColumnRole::total, kCapacityOrPeak);
    // Among several peaks, that of the program's memory is more informative than that of its allocator.
    if (memory || (label.gpu && w.unit_bytes != 0))
      set(ColumnRole::peak, has_role(Meaning::allocated)  ? 60
                            : has_role(Meaning::reserved) ? 30
                            : has_role(Meaning::current)  ? 40
                                                          : 50);
    return;
  }
  // nvidia-smi's utilization.memory is how busy the memory bus is, not how full the memory is.
  const auto first_of = [&](std::initializer_list<Meaning> meanings) {
    return std::find_if(w.words.begin(), w.words.end(), [&](const std::string& word) {
      return std::find(meanings.begin(), meanings.end(), meaning_of(word)) != meanings.end();
    });
  };
  if (label.rate && memory && first_of({Meaning::rate}) < first_of({Meaning::memory, Meaning::vram, Meaning::ram}))
    return;
  if (label.rate && !memory) return;
  if (memory && (w.percent || label.rate)) return set(ColumnRole::percent, 50);
  // "gpu usage %" is how busy the GPU is; "used" or "allocated" refer to memory.
  const bool is_use = role == Meaning::used || role == Meaning::allocated;
  if (w.percent && is_alone && is_use && role_word != "usage") return set(ColumnRole::percent, 40);
  if (w.percent) return;
  const bool is_amount = memory || is_alone || label.gpu;
  if (is_amount && role == Meaning::free) return set(ColumnRole::free, 50);
  if (is_amount && (role == Meaning::total || (role == Meaning::none && label.limit)))
    return set(ColumnRole::total, role_word == "total" ? 60 : 50);
  // wandb's system.gpu.0.memoryAllocated is a percentage; its bytes are memoryAllocatedBytes.
  const std::size_t n = w.words.size();
  if (n >= 5 && w.words[n - 5] == "system" && w.words[n - 4] == "gpu" && w.words[n - 2] == "memory" &&
      w.words[n - 1] == "allocated" && w.unit_bytes == 0)
    return set(ColumnRole::percent, 50);
  if (memory && role == Meaning::used) return set(ColumnRole::used, 90);
  if (role == Meaning::used && role_word == "used" && (is_alone || label.gpu || w.unit_bytes != 0))
    return set(ColumnRole::used, is_alone ? 85 : 80);
  if (label.vram && role == Meaning::none) return set(ColumnRole::used, 70);
  // "gpu0_allocated_gb": amounts of a GPU are memory.
  const bool is_of_gpu = memory || (w.unit_bytes != 0 && (label.gpu || w.has({"torch"})));
  if (is_of_gpu && role == Meaning::allocated) return set(ColumnRole::used, 66);
  if ((is_of_gpu || (is_alone && w.unit_bytes != 0)) && role == Meaning::reserved) return set(ColumnRole::used, 30);
  if (memory && w.words.size() <= 3) return set(ColumnRole::used, 65);
  // "nvidia_smi_mb", "gpu_gb": names only a GPU and a unit.
  const bool is_bare_gpu = label.gpu && std::all_of(w.words.begin(), w.words.end(), [](const std::string& word) {
                             return meaning_of(word) == Meaning::gpu || word == "smi";
                           });
  if (w.unit_bytes != 0 && is_bare_gpu) return set(ColumnRole::used, 67);
  if (is_alone && w.unit_bytes != 0 && is_use) return set(ColumnRole::used, 55);
  if (is_alone && w.words[0].size() > 1 && logtext::unit_bytes(w.words[0]) != 0) return set(ColumnRole::used, 20);
}

/// "utilization.gpu [%]", "gpu_util_pct", "GPU-Util", wandb's system.gpu.0.gpu: how busy a GPU is. The words of memory,
/// encoders and the host's processor name other utilisations.
bool is_busy(const TitleWords& w, const Label& label) {
  const bool of_gpu = std::any_of(w.words.begin(), w.words.end(),
                                  [](const auto& word) { return word.starts_with("gpu") || word == "sm"; });
  const std::size_t n = w.words.size();
  const bool is_wandb = n >= 4 && w.words[n - 4] == "system" && w.words[n - 3] == "gpu" && w.words[n - 1] == "gpu";
  if (is_wandb) return true;
  if (label.memory || label.vram || label.host || label.measured || label.role().first == Meaning::peak ||
      w.has({"min", "disk"}))
    return false;
  return of_gpu && (label.rate || (w.percent && w.has({"usage", "load", "busy"})));
}

/// "gpu0", "GPU 1", "cuda:0", "GPU-8f1c...": the title is only the name of a GPU.
bool names_gpu(std::string_view title, const TitleWords& w) {
  if (title.starts_with("GPU-") && title.size() >= 12) return true;
  if (w.percent || w.unit_bytes != 0) return false;
  const auto kind = [](std::string_view word) { return meaning_of(word) == Meaning::gpu; };
  const auto number = [](std::string_view word) { return logtext::whole_number<unsigned>(word).has_value(); };
  if (w.words.size() == 2) return kind(w.words[0]) && number(w.words[1]);
  if (w.words.size() != 1) return false;
  const std::string_view word = w.words[0];
  const std::size_t digits = word.find_first_of("0123456789");
  return digits != std::string_view::npos && kind(word.substr(0, digits)) && number(word.substr(digits));
}

Column classify_words(std::string_view title);

struct TitleHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view title) const { return std::hash<std::string_view>()(title); }
};

/// The statistic of PyTorch's allocator that a title names, as Lightning's DeviceStatsMonitor writes it:
/// "DeviceStatsMonitor.on_train_batch_start/allocated_bytes.all.current". Empty: none.
std::string_view allocator_statistic(std::string_view title) {
  const std::string_view last = title.substr(title.rfind('/') + 1);
  return title.starts_with("DeviceStatsMonitor") || last.find("_bytes.") != std::string_view::npos ? last
                                                                                                   : std::string_view{};
}

/// Of its many statistics, only the allocated and the reserved bytes are read; those of its pools are parts of them.
Column classify_statistic(std::string_view statistic) {
  Column out;
  out.unit_bytes = 1;
  out.mentions_gpu = true;
  out.metric = statistic.starts_with("reserved") ? Metric::allocator_reserved : Metric::allocator_allocated;
  const bool allocated = statistic.starts_with("allocated_bytes.all.");
  if (!allocated && !statistic.starts_with("reserved_bytes.all.")) return {};
  if (statistic.ends_with(".current")) out.role = ColumnRole::used;
  if (statistic.ends_with(".peak")) out.role = ColumnRole::peak;
  out.rank = allocated ? 66 : 30;
  return out;
}

Column classify_anew(std::string_view title) {
  if (const std::string_view statistic = allocator_statistic(title); !statistic.empty())
    return classify_statistic(statistic);
  // A Prometheus series: the labels identify the owner, the name the measure. Labels without a name identify a series.
  if (const std::size_t brace = title.find('{'); brace != std::string_view::npos) {
    if (brace > 0) return classify_words(title.substr(0, brace));
    Column out;
    if (title.find("gpu=") != std::string_view::npos || title.find("UUID=") != std::string_view::npos)
      out.role = ColumnRole::gpu;
    return out;
  }
  // "run - metric" of Weights & Biases: a run's name may contain any words.
  if (const std::size_t dash = title.rfind(" - "); dash != std::string_view::npos) {
    const Column metric = classify_words(title.substr(dash + 3));
    if (metric.role != ColumnRole::other && metric.role != ColumnRole::gpu) return metric;
  }
  return classify_words(title);
}

}  // namespace

Column classify_column(std::string_view title) {
  constexpr std::size_t kMost = 1U << 14;
  constexpr std::size_t kLongest = 128;
  title = trim(title);
  if (title.size() > kLongest) return classify_anew(title);
  // Each format that is tried, and each object of JSON, asks about the same few titles.
  thread_local std::unordered_map<std::string, Column, TitleHash, std::equal_to<>> known;
  if (const auto it = known.find(title); it != known.end()) return it->second;
  if (known.size() == kMost) known.clear();
  return known.emplace(title, classify_anew(title)).first->second;
}

namespace {

/// Whether a title of this role needs no unit, because it is not an amount.
bool is_bare(ColumnRole role) {
  return role == ColumnRole::time || role == ColumnRole::step || role == ColumnRole::index ||
         role == ColumnRole::device_name || role == ColumnRole::series;
}

Column classify_words(std::string_view title) {
  const TitleWords w = read_title(title);
  Column out;
  out.unit_bytes = w.unit_bytes;
  out.unit_ns = w.unit_ns;
  const auto as = [&out](ColumnRole role, int rank) {
    out.role = role;
    out.rank = rank;
    return out;
  };
  if (w.words.empty()) return out;
  const bool is_plain = !w.percent && w.unit_bytes == 0;
  if (const KnownTitle* const known = known_title(w); known != nullptr && (is_plain || !is_bare(known->role))) {
    out.mentions_gpu = known->role == ColumnRole::used;
    return as(known->role, known->rank);
  }
  if (w.has({"uuid"})) return as(ColumnRole::uuid, 50);
  if (w.has({"bus"}) && w.has({"id"})) return as(ColumnRole::pci, 50);
  if (is_plain) {
    if (const int rank = time_rank(w); rank > 0) return as(ColumnRole::time, rank);
    if (names_gpu(title, w)) return as(ColumnRole::gpu, 50);
  }
  const Label label = w.label();
  if (is_busy(w, label)) {
    out.metric = Metric::device_busy;
    if (label.share) out.unit_bytes = 1;
    return as(ColumnRole::busy, label.rate ? 50 : 40);
  }
  classify_memory(w, label, out);
  out.mentions_gpu = label.gpu || label.vram || is_query_field(title);
  out.mentions_host = !out.mentions_gpu && label.host;
  if (out.role == ColumnRole::used && !w.has({"used"}))
    out.metric = label.role().first == Meaning::allocated  ? Metric::allocator_allocated
                 : label.role().first == Meaning::reserved ? Metric::allocator_reserved
                                                           : Metric::device_used;
  return out;
}

/// Whether a title is only a unit of time. "min" alone may be a minimum.
bool is_unit_of_time(std::string_view title) {
  for (const std::string_view word : {"minutes", "mins", "hours", "hrs"})
    if (logtext::same_letters(trim(title), word)) return true;
  return false;
}

/// What pandas writes for an empty title: "Unnamed: 0".
bool is_pandas_filler(std::string_view title) {
  constexpr std::string_view kUnnamed = "Unnamed: ";
  return title.starts_with(kUnnamed) && logtext::whole_number<unsigned>(title.substr(kUnnamed.size())).has_value();
}

}  // namespace

std::string_view counted_by(std::string_view title) {
  const TitleWords w = read_title(title);
  const KnownTitle* const known = known_title(w);
  if (known == nullptr || (known->role != ColumnRole::step && known->title != "epoch")) return {};
  for (const std::string& word : w.words)
    if (const Meaning meaning = meaning_of(word); meaning >= Meaning::step && meaning <= Meaning::request)
      return count_word(meaning);
  return w.has({"sample", "samples", "id"}) ? "sample" : "step";
}

namespace {

/// Whether a cell is entirely a number, an amount or a time: "6-Pin #1 [W]" and "3VSB [V]" are titles.
bool is_value(std::string_view cell) {
  logtext::Decimal number;
  if (cell.empty() || !(is_digit(cell.front()) || cell.front() == '-') || !logtext::read_decimal(cell, number))
    return false;
  Civil civil;
  if (read_civil(cell, civil)) return true;
  constexpr std::size_t kLongestUnit = 6;
  const std::string_view unit = trim(cell.substr(number.length));
  return unit.size() <= kLongestUnit &&
         std::none_of(unit.begin(), unit.end(), [](char c) { return c == ' ' || c == '[' || c == '(' || c == '#'; });
}

/// Whether a cell is part of a sentence or of a log line, contains an amount or a time, or has only one bracket of a
/// pair: "GPU memory: 8123 MB", "[2026-03-01 10:00:00] avail mem=12.49 GB", "Total VRAM 4096 MB", "memory_seq_rm [512".
/// A title, in contrast, names the content of the cells below it.
bool gives_value(std::string_view cell) {
  constexpr std::size_t kLongestTitle = 1024;  // what stands before each number is read again: O(bytes^2)
  if (cell.size() > kLongestTitle) return true;
  if (cell.front() == '[' && cell.size() > 1 && is_digit(cell[1])) return true;
  const auto count = [&](char c) { return std::count(cell.begin(), cell.end(), c); };
  if (count('[') != count(']') || count('(') != count(')')) return true;
  for (std::size_t i = 1; i + 1 < cell.size() && cell[i] != '{'; ++i) {
    logtext::Decimal number;
    if ((cell[i] != ' ' && cell[i] != '=') || !logtext::read_decimal(cell.substr(i + 1), number)) continue;
    if (cell[i] == ' ' && cell[i - 1] == ':') return true;
    const Label label = read_label(cell.substr(0, i));
    const bool is_amount =
        cell[i] == '=' || cell[i - 1] == '=' || written_unit(trim(cell.substr(i + 1 + number.length))) != 0;
    if (is_amount && (label.memory || label.vram)) return true;
  }
  return false;
}

}  // namespace

bool looks_like_header(std::string_view line, char delimiter) {
  if (trim(line).starts_with('"') && line.find("\":") != std::string_view::npos) return false;  // a member of JSON
  std::vector<std::string_view> fields;
  split_fields(line, delimiter, fields);
  bool used = false;
  bool time = false;
  bool gpus = false;
  for (const std::string_view field : fields) {
    if (is_value(field)) return false;
    if (field.empty() || is_pandas_filler(field)) continue;
    if (gives_value(field)) return false;
    const Column column = classify_column(field);
    const ColumnRole role = column.role;
    used |= role == ColumnRole::used || role == ColumnRole::percent || role == ColumnRole::free ||
            role == ColumnRole::peak || (role == ColumnRole::total && column.rank == kCapacityOrPeak) ||
            column.counts_things;
    time |= role == ColumnRole::time || role == ColumnRole::step;
    gpus |= role == ColumnRole::gpu;
  }
  return used || (time && gpus);
}

namespace {

bool is_memory_in_use(const Column& c) {
  return c.role == ColumnRole::used || c.role == ColumnRole::free || c.role == ColumnRole::percent ||
         c.role == ColumnRole::peak;
}

/// The title of a temperature whose sensor is named alone: AMD's "edge,hotspot,mem"; empty: none.
std::string_view site_among(std::span<const std::string_view> titles) {
  const auto it = std::find_if(titles.begin(), titles.end(), [](std::string_view title) {
    const TitleWords w = read_title(title);
    return w.words.size() == 1 && meaning_of(w.words[0]) == Meaning::site;
  });
  return it == titles.end() ? std::string_view{} : *it;
}

/// Whether a title beside such ones is that of a temperature, too.
bool is_of_sensor(std::string_view title) {
  return logtext::same_letters(trim(title), "mem");
}

/// Whether a title gives how busy an encoder or decoder is. Beside it, the utilization of memory is how busy its
/// controller is: NVML reports the four together.
bool has_engine_rate(std::span<const std::string_view> titles) {
  return std::any_of(titles.begin(), titles.end(), [](std::string_view title) {
    const TitleWords w = read_title(title);
    return w.has({"encoder", "decoder", "enc", "dec"}) && w.label().rate;
  });
}

/// Why titles that name memory are not amounts of it, and what records them; empty: no title does so.
std::string why_no_amounts(std::span<const std::string_view> titles) {
  const std::string_view site = site_among(titles);
  std::string temperature, others;
  for (const std::string_view title : titles) {
    const TitleWords w = read_title(title);
    const Label label = w.label();
    if (!site.empty() && is_of_sensor(title))
      temperature = fmt::format("; '{}' is the temperature of the memory, as '{}' is another one", trim(title), site);
    else if (label.memory && label.measured)
      others += fmt::format("{}'{}'", others.empty() ? "" : ", ", logtext::excerpt(title, 40));
  }
  if (temperature.empty()) return {};
  return fmt::format("{}{}; record the memory with 'amd-smi metric --mem-usage --csv'", temperature,
                     others.empty()                           ? ""
                     : others.find(", ") == std::string::npos ? fmt::format(", and {} is not an amount of it", others)
                                                              : fmt::format(", and {} are no amounts of it", others));
}

/// Resolves what a single title leaves open, by looking at all columns.
void resolve_metrics(std::span<const std::string_view> titles, std::vector<Column>& columns) {
  const bool has_sites = !site_among(titles).empty();
  for (std::size_t i = 0; has_sites && i < titles.size(); ++i)
    if (columns[i].role == ColumnRole::used && is_of_sensor(titles[i])) columns[i].role = ColumnRole::other;
  if (has_engine_rate(titles))
    for (std::size_t i = 0; i < titles.size(); ++i)
      if (columns[i].role == ColumnRole::percent && read_title(titles[i]).label().rate)
        columns[i].role = ColumnRole::other;
  const auto has = [&](const auto& of) { return std::any_of(columns.begin(), columns.end(), of); };
  // Memory that a GPU shares with the host, beside memory of its own.
  const auto is_shared = [](const Column& c) {
    return c.role == ColumnRole::used && c.mentions_gpu && c.rank == kShared;
  };
  if (has([&](const Column& c) { return c.role == ColumnRole::used && c.mentions_gpu && !is_shared(c); }))
    for (Column& column : columns)
      if (is_shared(column)) column.role = ColumnRole::other;
  const auto of_metric = [&](Metric metric) {
    return has([metric](const Column& c) { return c.role == ColumnRole::used && c.metric == metric; });
  };
  // Both columns together are what an allocator reports. "Allocated" alone means memory in use.
  if (!of_metric(Metric::allocator_allocated) || !of_metric(Metric::allocator_reserved))
    for (Column& column : columns)
      if (!is_fact(column.metric)) column.metric = Metric::device_used;
  // If a column names GPU memory, columns of host memory are ignored, and so are columns of plain "memory" with their
  // total and free memory.
  const auto is_memory = [](const Column& c) {
    return c.role == ColumnRole::used || c.role == ColumnRole::free || c.role == ColumnRole::total;
  };
  const bool of_gpu = has([](const Column& c) { return c.role == ColumnRole::used && c.mentions_gpu; });
  const bool of_host = has([](const Column& c) { return c.role == ColumnRole::used && !c.mentions_gpu; });
  if (has([](const Column& c) { return is_memory_in_use(c) && c.mentions_gpu; }))
    for (Column& column : columns)
      if (column.mentions_host) column.role = ColumnRole::other;
  constexpr int kOfGpu = 100;
  if (!of_gpu || !of_host) return;
  for (Column& column : columns) {
    if (column.mentions_gpu && is_memory(column)) column.rank += kOfGpu;
    if (!column.mentions_gpu && (column.role == ColumnRole::free || column.role == ColumnRole::total))
      column.role = ColumnRole::other;
  }
}

/// Determines which memory column `at` reports: an error if no title names a GPU and others name the host. Sets the
/// titles of the host's memory and of a GPU without its own memory.
Status check_owner(std::span<const std::string_view> titles, const std::vector<Column>& columns, std::size_t at,
                   ColumnPlan& plan) {
  std::string of_host;
  bool names_gpu = columns[at].mentions_gpu;
  for (std::size_t i = 0; i < titles.size(); ++i) {
    const TitleWords w = read_title(titles[i]);
    const Label label = w.label();
    const bool is_integrated =
        std::any_of(w.words.begin(), w.words.end(), [](const auto& word) { return word.starts_with("igpu"); });
    if (is_integrated && !columns[at].mentions_gpu && plan.shared_title.empty()) plan.shared_title = titles[i];
    names_gpu |= is_integrated || label.gpu || label.vram || columns[i].mentions_gpu ||
                 columns[i].role == ColumnRole::gpu || columns[i].role == ColumnRole::uuid ||
                 columns[i].role == ColumnRole::pci;
    const bool is_measure = w.percent || w.unit_bytes != 0 || label.rate || !label.roles.empty();
    if (of_host.empty() && label.host && is_measure && i != at) of_host = titles[i];
  }
  if (columns[at].mentions_host) plan.shared_title = titles[at];
  plan.only_host = columns[at].mentions_host && !names_gpu;
  const Meaning role = read_label(titles[at]).role().first;
  plan.of_nobody = !names_gpu && !columns[at].mentions_host && role != Meaning::allocated && role != Meaning::reserved;
  if (columns[at].mentions_host || names_gpu || of_host.empty()) return {};
  return fail(
      fmt::format("column {} '{}' is the memory of the host, not of a GPU, since '{}' is the host's, too, and no title "
                  "names a GPU; record the GPU's, for example with 'vramtrack watch' or 'nvidia-smi "
                  "--query-gpu=timestamp,memory.used,memory.total --format=csv -l 1', or, if it is the GPU's, title it "
                  "gpu_memory_used",
                  at + 1, logtext::excerpt(titles[at]), logtext::excerpt(of_host)));
}

}  // namespace

Result<ColumnPlan> plan_header(std::string_view line, char delimiter) {
  std::vector<std::string_view> titles;
  split_fields(line, delimiter, titles);
  ColumnPlan plan;
  plan.delimiter = delimiter;
  while (titles.size() > 1 && titles.back().empty()) titles.pop_back();  // "a,b,"
  plan.count = titles.size();
  if (plan.count > kMostColumns) return fail(fmt::format("more than {} columns: not a log of memory", kMostColumns));
  plan.header = trim(line);
  std::erase(plan.header, '\r');  // inside a quoted title
  std::vector<Column> columns;
  columns.reserve(titles.size());
  for (const std::string_view title : titles) columns.push_back(classify_column(title));

  resolve_metrics(titles, columns);

  const auto best = [&](ColumnRole role) {
    int at = -1;
    for (std::size_t i = 0; i < columns.size(); ++i)
      if (columns[i].role == role && (at < 0 || columns[i].rank > columns[static_cast<std::size_t>(at)].rank))
        at = static_cast<int>(i);
    return at;
  };
  const auto column = [&](int at) -> const Column& { return columns[static_cast<std::size_t>(at)]; };

  plan.used = best(ColumnRole::used);
  plan.free = best(ColumnRole::free);
  plan.total = best(ColumnRole::total);
  const int percent = best(ColumnRole::percent);
  int peak = best(ColumnRole::peak);
  for (std::size_t i = 0; i < columns.size() && peak < 0; ++i)
    if (columns[i].role == ColumnRole::total && columns[i].rank == kCapacityOrPeak) peak = static_cast<int>(i);
  const InUse from = in_use_from({plan.used >= 0, plan.free >= 0, plan.total >= 0, percent >= 0, peak >= 0});
  plan.percent = from == InUse::percent;
  plan.only_peaks = from == InUse::peak;
  if (plan.percent) plan.used = percent;
  if (plan.only_peaks) plan.used = peak;
  if (plan.only_peaks && peak == plan.total) plan.total = -1;
  if (plan.used < 0 && plan.free < 0) {
    plan.used = best(ColumnRole::gpu);
    plan.unnamed_measure = plan.used >= 0;
  }
  if (plan.used < 0 && plan.free < 0)
    for (std::size_t i = 0; i < columns.size(); ++i)
      if (columns[i].counts_things)
        return fail(
            fmt::format("column {} '{}' does not count bytes, and nothing says how large one of its units is; record "
                        "the memory in bytes or MiB",
                        i + 1, logtext::excerpt(titles[i])));
  if (plan.used < 0 && plan.free < 0)
    if (const auto host = std::find_if(titles.begin(), titles.end(), names_host_memory); host != titles.end())
      return fail(only_host_memory(*host));
  if (plan.used < 0 && plan.free < 0)
    return fail(
        fmt::format("no column of used memory among '{}'{}; expected a title such as memory.used [MiB], mem_used_mib, "
                    "used_bytes or vram_gb",
                    logtext::excerpt(line, 160), why_no_amounts(titles)));
  if (Status ok = check_owner(titles, columns, static_cast<std::size_t>(plan.used >= 0 ? plan.used : plan.free), plan);
      !ok)
    return fail(std::move(ok.error()));
  if (plan.used >= 0)
    plan.of_process = read_title(titles[static_cast<std::size_t>(plan.used)]).text() == "used gpu memory";
  if (plan.used >= 0) plan.used_unit = column(plan.used).unit_bytes;
  if (plan.used >= 0) plan.metric = column(plan.used).metric;
  if (plan.free >= 0) plan.free_unit = column(plan.free).unit_bytes;
  if (plan.total >= 0) plan.total_unit = column(plan.total).unit_bytes;
  plan.total_may_be_peak = plan.total >= 0 && column(plan.total).rank == kCapacityOrPeak;

  plan.time = best(ColumnRole::time);
  plan.date = best(ColumnRole::date);
  if (plan.time < 0 && plan.date >= 0) std::swap(plan.time, plan.date);
  // In the first column it is the time since the start.
  if (plan.time < 0 && is_unit_of_time(titles.front())) plan.time = 0;
  if (plan.time < 0) {
    plan.time = best(ColumnRole::step);
    plan.time_title.step = plan.time >= 0;
  }
  // "epoch" may be seconds since 1970 or the epochs of a training run: the values decide.
  if (plan.time >= 0) plan.time_title.counts = counted_by(titles[static_cast<std::size_t>(plan.time)]);
  if (plan.time >= 0) plan.time_title.unit_ns = column(plan.time).unit_ns;

  plan.index = best(ColumnRole::index);
  plan.index_is_unsure = plan.index >= 0 && column(plan.index).rank < kSureIndex;
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (columns[i].role == ColumnRole::index && static_cast<int>(i) != plan.index)
      plan.other_indexes.push_back(static_cast<int>(i));
  plan.uuid = best(ColumnRole::uuid);
  plan.pci = best(ColumnRole::pci);
  plan.partition = best(ColumnRole::partition);
  plan.device_name = best(ColumnRole::device_name);
  plan.pid = best(ColumnRole::pid);
  plan.user = best(ColumnRole::user);
  if (plan.pid >= 0) {
    plan.process_name = best(ColumnRole::process_name);
    plan.process_kind = best(ColumnRole::process_kind);
    // In "pid, name", the name is the process name, unless the log names GPUs separately ("gpu_name").
    if (plan.process_name < 0 && plan.device_name >= 0 &&
        logtext::same_letters(titles[static_cast<std::size_t>(plan.device_name)], "name"))
      std::swap(plan.process_name, plan.device_name);
  }
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (columns[i].role == ColumnRole::series) plan.series.push_back(static_cast<int>(i));
  if (plan.used >= 0)
    find_wide(titles, columns, plan);
  else if (const int busy = best(ColumnRole::busy); busy >= 0)
    plan.further.push_back({busy, Metric::device_busy, columns[static_cast<std::size_t>(busy)].unit_bytes});
  // In a process log, the column does not identify whose load it reports.
  if (plan.pid >= 0) std::erase_if(plan.further, [](const auto& one) { return is_fact(one.metric); });
  return plan;
}

Status check_runs(std::span<const std::string_view> titles) {
  std::string_view start, end, duration;
  for (const std::string_view title : titles) {
    const TitleWords w = read_title(title);
    const bool is_time = w.unit_bytes == 0 && !w.label().memory && !w.label().vram;
    if (is_time && w.has({"start", "started", "begin"})) start = title;
    if (is_time && w.has({"end", "ended", "finish", "finished"})) end = title;
    if (w.has({"duration", "elapsed", "runtime"})) duration = title;
  }
  if (start.empty() || end.empty() || duration.empty()) return {};
  return fail(fmt::format(
      "each row is a run of its own, with '{}', '{}' and '{}': what a run used at most says nothing about how memory "
      "changed within it, and the runs do not continue one another; record the used memory while a run goes on",
      logtext::excerpt(start), logtext::excerpt(end), logtext::excerpt(duration)));
}

std::vector<std::string_view> titles_of(const ColumnPlan& plan) {
  std::vector<std::string_view> titles;
  split_fields(plan.header, plan.delimiter, titles);
  titles.resize(plan.count);
  return titles;
}

std::string describe(const ColumnPlan& plan) {
  std::vector<std::string_view> titles;
  if (plan.has_header) split_fields(plan.header, plan.delimiter, titles);
  std::string out;
  const auto add = [&](std::string_view what, int at) {
    if (at < 0) return;
    out += fmt::format("{}{} in column {}", out.empty() ? "" : ", ", what, at + 1);
    if (static_cast<std::size_t>(at) < titles.size())
      out += fmt::format(" '{}'", logtext::excerpt(titles[static_cast<std::size_t>(at)]));
  };
  add("time", plan.time);
  add("the GPU", plan.uuid >= 0 ? plan.uuid : plan.pci >= 0 ? plan.pci : plan.index);
  add("the pid", plan.pid);
  add(plan.percent ? "the percentage of used memory" : "used memory", plan.used);
  add("free memory", plan.free);
  add("total memory", plan.total);
  return out;
}

}  // namespace vramtrack
