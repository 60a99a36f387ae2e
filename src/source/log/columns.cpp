#include "source/log/columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "source/log/column_title.hpp"
#include "source/log/memory_words.hpp"
#include "source/log/origin_words.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtext::is_alpha;
using logtext::is_digit;
using logtext::lower;
using logtext::trim;

/// Rank of a total that may be a peak.
constexpr int kCapacityOrPeak = 20;

int time_rank(const TitleWords& w) {
  static constexpr std::array<std::string_view, 5> kDates = {"timestamp", "datetime", "ts", "timestamps", "stamp"};
  if (w.words.size() == 1 && std::find(kDates.begin(), kDates.end(), w.words[0]) != kDates.end()) return 100;
  if (w.is({"date", "time"}) || w.is({"time", "stamp"}) || w.is({"timestamp", "utc"}) || w.is({"time", "utc"}))
    return 98;
  if (w.is({"time"})) return 95;
  if (w.is({"unix", "time"}) || w.is({"unixtime"}) || w.is({"epoch"}) || w.is({"wall", "time"}) || w.is({"walltime"}) ||
      w.is({"created", "at"}) || w.is({"recorded", "at"}) || w.is({"query", "time"}) || w.is({"clock"}) ||
      w.is({"local", "time"}))
    return 90;
  if (w.is({"t"})) return 80;
  if (!w.words.empty() && (w.words[0] == "elapsed" || w.words.back() == "elapsed" || w.words[0] == "relative"))
    return 75;
  if (w.is({"seconds"}) || w.is({"secs"}) || w.is({"sec"}) || w.is({"s"}) || w.is({"ms"})) return 60;
  if (w.is({"runtime"}) || w.is({"uptime"}) || w.is({"duration"})) return 50;
  // "iter_time", "time_per_step": how long one takes. "epoch_time" may also be seconds since 1970.
  if (w.has({"iter", "iteration", "step", "batch", "forward", "backward"})) return 0;
  if (!w.words.empty() && (w.words.back() == "timestamp" || w.words.back() == "time" || w.words[0] == "timestamp"))
    return 40;
  return 0;
}

bool is_step(const TitleWords& w) {
  return w.is({"sample"}) || w.is({"step"}) || w.is({"iteration"}) || w.is({"iter"}) || w.is({"n"}) || w.is({"tick"}) ||
         w.is({"row"}) || w.is({"global", "step"}) || w.is({"sample", "id"}) || w.is({"samples"}) || w.is({"batch"}) ||
         w.is({"request"}) || w.is({"requests"}) || w.is({"epochs"}) || w.is({"global", "steps"}) || w.is({"steps"}) ||
         w.is({"current", "step"}) || w.is({"current", "steps"});
}

/// Role and rank of a title about memory; the role is `other` if it is about something else, or about unwanted memory.
void classify_memory(const TitleWords& w, Column& out) {
  const bool memory = w.has({"mem", "memory", "vram", "ram", "fb", "framebuffer", "gpumem", "hbm", "rss"});
  if (w.has({"clock",  "clocks",    "temp", "temperature", "bandwidth",   "bw",         "bar1", "swap",
             "cached", "protected", "ecc",  "errors",      "power",       "freq",       "mhz",  "speed",
             "read",   "write",     "copy", "util",        "utilization", "utilisation"}) &&
      !(w.has({"util", "utilization", "utilisation"}) && memory))
    return;
  const auto set = [&out](ColumnRole role, int rank) {
    out.role = role;
    out.rank = rank;
  };
  // Of several peaks, that of what the program holds says more than that of what its allocator keeps.
  const bool is_said = w.has({"allocated", "alloc", "used", "usage", "reserved", "active"});
  if (!w.percent && (w.has({"peak"}) || (w.has({"max"}) && memory && is_said))) {
    if (memory)
      set(ColumnRole::peak, w.has({"allocated", "alloc"}) ? 60
                            : w.has({"reserved"})         ? 30
                            : w.has({"active"})           ? 40
                                                          : 50);
    return;
  }
  // nvidia-smi's utilization.memory is how busy the memory bus is, not how full the memory is.
  if (!w.words.empty() && w.words.front().starts_with("utili")) return;
  if (memory && (w.percent || w.has({"util", "utilization", "utilisation"}))) return set(ColumnRole::percent, 50);
  const bool alone = w.words.size() == 1;
  // "gpu usage %" is how busy the GPU is; "used" or "allocated" refers to memory.
  if (w.percent && alone && w.has({"used", "allocated", "occupied"})) return set(ColumnRole::percent, 40);
  if (w.percent) return;
  if ((memory || alone || w.has({"gpu"})) && w.has({"free", "available", "avail"})) return set(ColumnRole::free, 50);
  if ((memory || alone || w.has({"gpu"})) && w.has({"total", "capacity", "limit", "size"}))
    return set(ColumnRole::total, w.has({"total"}) ? 60 : 50);
  // "Memory Max" is a capacity or a peak: the values decide (csv_settle.cpp).
  if (memory && w.words.size() <= 3 && w.words.back() == "max" && !w.has({"used", "usage", "allocated", "reserved"}))
    return set(ColumnRole::total, kCapacityOrPeak);
  if (w.has({"max", "min", "avg", "mean", "limit"})) return;
  // wandb's system.gpu.0.memoryAllocated is a percentage; its bytes are memoryAllocatedBytes.
  const std::size_t n = w.words.size();
  if (n >= 5 && w.words[n - 5] == "system" && w.words[n - 4] == "gpu" && w.words[n - 2] == "memory" &&
      w.words[n - 1] == "allocated" && w.unit_bytes == 0)
    return set(ColumnRole::percent, 50);
  if (memory && w.has({"used", "usage", "use", "inuse", "consumed", "occupied"})) return set(ColumnRole::used, 90);
  if (alone && w.has({"used"})) return set(ColumnRole::used, 85);
  if (w.has({"used"}) && (w.has({"gpu"}) || w.unit_bytes != 0)) return set(ColumnRole::used, 80);
  if (w.has({"vram"})) return set(ColumnRole::used, 70);
  // "gpu0_allocated_gb": amounts of a GPU are memory.
  const bool amount_of_gpu = w.unit_bytes != 0 && std::any_of(w.words.begin(), w.words.end(), [](const auto& word) {
                               return word.starts_with("gpu") || word.starts_with("cuda");
                             });
  if ((memory || amount_of_gpu) && w.has({"allocated", "alloc"})) return set(ColumnRole::used, 66);
  if ((memory || amount_of_gpu || (alone && w.unit_bytes != 0)) && w.has({"reserved"}))
    return set(ColumnRole::used, 30);
  if (w.has({"rss"})) return set(ColumnRole::used, 60);
  if (memory && w.words.size() <= 3) return set(ColumnRole::used, 65);
  if (alone && w.has({"allocated", "usage"}) && w.unit_bytes != 0) return set(ColumnRole::used, 55);
  if (alone && w.has({"bytes", "mib", "mb", "gib", "gb"})) return set(ColumnRole::used, 20);
}

/// "utilization.gpu [%]", "gpu_util_pct", "GPU-Util", wandb's system.gpu.0.gpu: how busy a GPU is. The words of memory,
/// encoders and the host's processor name other utilisations.
bool is_busy(const TitleWords& w) {
  const bool of_gpu = std::any_of(w.words.begin(), w.words.end(),
                                  [](const auto& word) { return word.starts_with("gpu") || word == "sm"; });
  if (w.has({"mem", "memory", "vram", "ram", "fb", "encoder", "decoder", "enc", "dec", "jpeg", "ofa", "cpu", "max",
             "min", "peak", "power", "fan", "disk"}))
    return false;
  const std::size_t n = w.words.size();
  if (n >= 4 && w.words[n - 4] == "system" && w.words[n - 3] == "gpu" && w.words[n - 1] == "gpu") return true;
  return of_gpu && (w.has({"util", "utilization", "utilisation"}) || (w.percent && w.has({"usage", "load", "busy"})));
}

/// "gpu0", "GPU 1", "cuda:0", "GPU-8f1c...": the name of a GPU and nothing else.
bool names_gpu(std::string_view title, const TitleWords& w) {
  if (title.starts_with("GPU-") && title.size() >= 12) return true;
  if (w.percent || w.unit_bytes != 0) return false;
  const auto kind = [](std::string_view word) {
    return word == "gpu" || word == "cuda" || word == "card" || word == "device";
  };
  const auto number = [](std::string_view word) { return logtext::whole_number<unsigned>(word).has_value(); };
  if (w.words.size() == 2) return kind(w.words[0]) && number(w.words[1]);
  if (w.words.size() != 1) return false;
  const std::string_view word = w.words[0];
  const std::size_t digits = word.find_first_of("0123456789");
  return digits != std::string_view::npos && kind(word.substr(0, digits)) && number(word.substr(digits));
}

Column classify_words(std::string_view title);

/// The statistic of PyTorch's allocator that a title names, as Lightning's DeviceStatsMonitor writes it:
/// "DeviceStatsMonitor.on_train_batch_start/allocated_bytes.all.current". Empty: none.
std::string_view allocator_statistic(std::string_view title) {
  const std::string_view last = title.substr(title.rfind('/') + 1);
  return title.starts_with("DeviceStatsMonitor") || last.find("_bytes.") != std::string_view::npos ? last
                                                                                                   : std::string_view{};
}

/// Of its many statistics, what it has handed out and what it keeps are read; those of its pools are parts of them.
Column classify_statistic(std::string_view statistic) {
  Column out;
  out.unit_bytes = 1;
  out.says_gpu = true;
  out.metric = statistic.starts_with("reserved") ? Metric::allocator_reserved : Metric::allocator_allocated;
  const bool allocated = statistic.starts_with("allocated_bytes.all.");
  if (!allocated && !statistic.starts_with("reserved_bytes.all.")) return {};
  if (statistic.ends_with(".current")) out.role = ColumnRole::used;
  if (statistic.ends_with(".peak")) out.role = ColumnRole::peak;
  out.rank = allocated ? 66 : 30;
  return out;
}

}  // namespace

Column classify_column(std::string_view title) {
  title = trim(title);
  if (const std::string_view statistic = allocator_statistic(title); !statistic.empty())
    return classify_statistic(statistic);
  // Prometheus' series: the labels say whose value it is, the name what it is. Labels without a name name a series.
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

namespace {

/// Whether a title is one of machines, programs or runs.
bool tells_series_apart(const TitleWords& w) {
  std::string title;
  for (const std::string& word : w.words) title += title.empty() ? word : ' ' + word;
  const OriginWord* found = origin_word([&](std::string_view words) { return words == title; });
  return found != nullptr && found->where == OriginWordIn::titles_and_lines;
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
  if (w.is({"pid"}) || w.is({"process", "id"})) return as(ColumnRole::pid, 50);
  if (w.is({"process", "name"}) || w.is({"process"}) || w.is({"command"}) || w.is({"cmd"}) || w.is({"comm"}) ||
      w.is({"cmdline"}) || w.is({"proc", "name"}) || w.is({"app"}))
    return as(ColumnRole::process_name, 50);
  if (w.is({"type"}) || w.is({"kind"})) return as(ColumnRole::process_kind, 50);
  if (w.is({"user"}) || w.is({"username"})) return as(ColumnRole::user, 50);
  if (w.has({"uuid"})) return as(ColumnRole::uuid, 50);
  if ((w.has({"bus"}) && w.has({"id"})) || w.is({"busid"}) || w.is({"pci"}) || w.is({"bdf"}))
    return as(ColumnRole::pci, 50);
  if (w.is({"date"}) || w.is({"day"})) return as(ColumnRole::date, 50);
  if (!w.percent && w.unit_bytes == 0) {
    if (const int rank = time_rank(w); rank > 0) return as(ColumnRole::time, rank);
    if (is_step(w)) return as(ColumnRole::step, 50);
    if (w.is({"gpu"}) || w.is({"index"}) || w.is({"idx"}) || w.is({"gpu", "id"}) || w.is({"gpu", "index"}) ||
        w.is({"gpu", "idx"}) || w.is({"device"}) || w.is({"device", "id"}) || w.is({"device", "index"}) ||
        w.is({"minor", "number"}) || w.is({"card"}) || w.is({"gpu", "number"}))
      return as(ColumnRole::index, w.is({"gpu"}) || w.is({"device"}) || w.is({"card"}) ? 50 : 60);
    if (tells_series_apart(w)) return as(ColumnRole::series, 50);
    if (w.is({"name"}) || w.is({"gpu", "name"}) || w.is({"model"}) || w.is({"device", "name"}) ||
        w.is({"product", "name"}))
      return as(ColumnRole::device_name, 50);
    if (names_gpu(title, w)) return as(ColumnRole::gpu, 50);
  }
  if (is_busy(w)) {
    out.metric = Metric::device_busy;
    if (w.has({"ratio", "fraction"})) out.unit_bytes = 1;
    return as(ColumnRole::busy, w.has({"utilization", "utilisation", "util"}) ? 50 : 40);
  }
  classify_memory(w, out);
  out.says_gpu = std::any_of(w.words.begin(), w.words.end(), [](const auto& word) {
    return word.starts_with("gpu") || word.starts_with("cuda") || word.starts_with("vram") || word == "hbm" ||
           word == "fb" || word == "framebuffer" || word == "nvidia" || word == "device" || word == "card";
  });
  out.says_host = !out.says_gpu && w.has({"ram", "rss", "host"});
  if (out.role == ColumnRole::used && !w.has({"used"}))
    out.metric = w.has({"allocated", "alloc"}) ? Metric::allocator_allocated
                 : w.has({"reserved"})         ? Metric::allocator_reserved
                                               : Metric::device_used;
  return out;
}

/// Whether a title is a unit of time and nothing else. "min" alone may be a minimum.
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
  const bool is_only_count = is_step(w) || w.is({"epoch"});
  if (!is_only_count) return {};
  for (const std::string& word : w.words)
    if (const Meaning meaning = meaning_of(word); meaning >= Meaning::step && meaning <= Meaning::request)
      return count_word(meaning);
  return w.has({"sample", "samples", "id"}) ? "sample" : "step";
}

namespace {

/// Whether a cell is a number, an amount or a time, all of it: "6-Pin #1 [W]" and "3VSB [V]" are titles.
bool is_value(std::string_view cell) {
  logtext::Decimal number;
  if (cell.empty() || !(is_digit(cell.front()) || cell.front() == '-') || !logtext::read_decimal(cell, number))
    return false;
  Civil civil;
  if (read_civil(cell, DateOrder::month_first, civil) || read_civil(cell, DateOrder::day_first, civil)) return true;
  constexpr std::size_t kLongestUnit = 6;
  const std::string_view unit = trim(cell.substr(number.length));
  return unit.size() <= kLongestUnit &&
         std::none_of(unit.begin(), unit.end(), [](char c) { return c == ' ' || c == '[' || c == '(' || c == '#'; });
}

}  // namespace

bool looks_like_header(std::string_view line, char delimiter) {
  std::vector<std::string_view> fields;
  split_fields(line, delimiter, fields);
  bool used = false;
  bool time = false;
  bool gpus = false;
  for (const std::string_view field : fields) {
    if (is_value(field)) return false;
    if (is_pandas_filler(field)) continue;
    if (const std::size_t colon = field.find(": ");
        colon != std::string_view::npos && colon + 2 < field.size() && is_digit(field[colon + 2]))
      return false;  // "GPU memory: 8123 MB" says its value
    const ColumnRole role = classify_column(field).role;
    used |=
        role == ColumnRole::used || role == ColumnRole::percent || role == ColumnRole::free || role == ColumnRole::peak;
    time |= role == ColumnRole::time || role == ColumnRole::step;
    gpus |= role == ColumnRole::gpu;
  }
  return used || (time && gpus);
}

namespace {

/// Decides by all columns what one title leaves open.
void settle_metrics(std::vector<Column>& columns) {
  const auto has = [&](const auto& of) { return std::any_of(columns.begin(), columns.end(), of); };
  const auto of_metric = [&](Metric metric) {
    return has([metric](const Column& c) { return c.role == ColumnRole::used && c.metric == metric; });
  };
  // Both together are what an allocator reports. "Allocated" alone is what is in use.
  if (!of_metric(Metric::allocator_allocated) || !of_metric(Metric::allocator_reserved))
    for (Column& column : columns)
      if (!is_fact(column.metric)) column.metric = Metric::device_used;
  // Beside a column that is said to be a GPU's, one of just memory is the host's, and so are its total and what is
  // free.
  const auto is_memory = [](const Column& c) {
    return c.role == ColumnRole::used || c.role == ColumnRole::free || c.role == ColumnRole::total;
  };
  const bool of_gpu = has([](const Column& c) { return c.role == ColumnRole::used && c.says_gpu; });
  const bool of_host = has([](const Column& c) { return c.role == ColumnRole::used && !c.says_gpu; });
  constexpr int kOfGpu = 100;
  if (!of_gpu || !of_host) return;
  for (Column& column : columns) {
    if (column.says_gpu && is_memory(column)) column.rank += kOfGpu;
    if (!column.says_gpu && (column.role == ColumnRole::free || column.role == ColumnRole::total))
      column.role = ColumnRole::other;
  }
}

}  // namespace

Result<ColumnPlan> plan_header(std::string_view line, char delimiter) {
  std::vector<std::string_view> titles;
  split_fields(line, delimiter, titles);
  ColumnPlan plan;
  plan.delimiter = delimiter;
  while (titles.size() > 1 && titles.back().empty()) titles.pop_back();  // "a,b,"
  plan.count = titles.size();
  plan.header = trim(line);
  std::erase(plan.header, '\r');  // within a quoted title
  std::vector<Column> columns;
  columns.reserve(titles.size());
  for (const std::string_view title : titles) columns.push_back(classify_column(title));

  settle_metrics(columns);

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
  if (plan.used < 0 && !(plan.free >= 0 && plan.total >= 0)) {
    plan.used = best(ColumnRole::percent);
    plan.percent = plan.used >= 0;
  }
  if (plan.used < 0 && plan.free < 0) {
    plan.used = best(ColumnRole::peak);
    plan.only_peaks = plan.used >= 0;
  }
  if (plan.used < 0 && plan.free < 0) {
    plan.used = best(ColumnRole::gpu);
    plan.unnamed_measure = plan.used >= 0;
  }
  if (plan.used < 0 && (plan.free < 0 || plan.total < 0))
    return fail(
        fmt::format("no column of used memory among '{}'; expected a title such as memory.used [MiB], "
                    "mem_used_mib, used_bytes or vram_gb",
                    logtext::excerpt(line, 160)));
  if (plan.used >= 0 && column(plan.used).says_host) plan.host_title = titles[static_cast<std::size_t>(plan.used)];
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
  plan.index_is_unsure = plan.index >= 0 && column(plan.index).rank < 60;
  plan.uuid = best(ColumnRole::uuid);
  plan.pci = best(ColumnRole::pci);
  plan.device_name = best(ColumnRole::device_name);
  plan.pid = best(ColumnRole::pid);
  plan.user = best(ColumnRole::user);
  if (plan.pid >= 0) {
    plan.process_name = best(ColumnRole::process_name);
    plan.process_kind = best(ColumnRole::process_kind);
    // "pid, name": the name of the process, unless the log names GPUs separately ("gpu_name").
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
  // Beside a process it does not say whose work it is.
  if (plan.pid >= 0) std::erase_if(plan.further, [](const auto& one) { return is_fact(one.metric); });
  return plan;
}

std::string describe(const ColumnPlan& plan) {
  std::vector<std::string_view> titles;
  if (plan.has_header) split_fields(plan.header, plan.delimiter, titles);
  std::string out;
  const auto tell = [&](std::string_view what, int at) {
    if (at < 0) return;
    out += fmt::format("{}{} in column {}", out.empty() ? "" : ", ", what, at + 1);
    if (static_cast<std::size_t>(at) < titles.size())
      out += fmt::format(" '{}'", logtext::excerpt(titles[static_cast<std::size_t>(at)]));
  };
  tell("time", plan.time);
  tell("the GPU", plan.uuid >= 0 ? plan.uuid : plan.pci >= 0 ? plan.pci : plan.index);
  tell("the pid", plan.pid);
  tell(plan.percent ? "the percentage of used memory" : "used memory", plan.used);
  tell("free memory", plan.free);
  tell("total memory", plan.total);
  return out;
}

}  // namespace vramtrack
