#include "source/log/columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtext::is_alpha;
using logtext::is_digit;
using logtext::lower;
using logtext::trim;

/// A title cut into lower-case words, its unit apart.
struct Words {
  std::vector<std::string> words;
  std::uint64_t unit_bytes = 0;
  std::int64_t unit_ns = 0;
  bool percent = false;

  [[nodiscard]] bool has(std::initializer_list<std::string_view> any) const {
    for (const std::string_view w : any)
      if (std::find(words.begin(), words.end(), w) != words.end()) return true;
    return false;
  }
  /// Exactly these words in this order.
  [[nodiscard]] bool is(std::initializer_list<std::string_view> all) const {
    return std::equal(words.begin(), words.end(), all.begin(), all.end());
  }
};

std::int64_t time_unit_ns(std::string_view word) {
  if (word == "s" || word == "sec" || word == "secs" || word == "second" || word == "seconds") return 1'000'000'000;
  if (word == "ms" || word == "msec" || word == "millis" || word == "milliseconds") return 1'000'000;
  if (word == "us" || word == "usec" || word == "micros" || word == "microseconds") return 1'000;
  if (word == "ns" || word == "nsec" || word == "nanos" || word == "nanoseconds") return 1;
  if (word == "min" || word == "mins" || word == "minutes") return 60'000'000'000;
  if (word == "h" || word == "hr" || word == "hours") return 3'600'000'000'000;
  return 0;
}

/// Takes `word` for a unit; false when it is none.
bool take_unit(Words& out, std::string_view word) {
  if (word == "%" || word == "pct" || word == "percent" || word == "percentage" || word == "perc") {
    out.percent = true;
    return true;
  }
  if (const std::uint64_t bytes = logtext::unit_bytes(word); bytes != 0) {
    out.unit_bytes = bytes;
    return true;
  }
  if (const std::int64_t ns = time_unit_ns(word); ns != 0) {
    out.unit_ns = ns;
    return true;
  }
  return false;
}

Words read_title(std::string_view title) {
  Words out;
  std::string word;
  const auto flush = [&] {
    if (!word.empty()) out.words.push_back(std::move(word));
    word.clear();
  };
  title = trim(title);
  for (std::size_t i = 0; i < title.size(); ++i) {
    const char c = title[i];
    if (c == '[' || c == '(') {
      const std::size_t close = title.find(c == '[' ? ']' : ')', i);
      const std::string inner =
          logtext::lowered(trim(title.substr(i + 1, close == std::string_view::npos ? close : close - i - 1)));
      flush();
      take_unit(out, inner);
      if (close == std::string_view::npos) break;
      i = close;
    } else if (c == '%') {
      flush();
      out.percent = true;
    } else if (is_alpha(c) || is_digit(c)) {
      // "memoryAllocatedBytes" is three words; "MiB" and "DCGM" are one.
      if (!word.empty() && c >= 'A' && c <= 'Z' && title[i - 1] >= 'a' && title[i - 1] <= 'z' && word != "mi" &&
          word != "gi" && word != "ki")
        flush();
      word += lower(c);
    } else {
      flush();
    }
  }
  flush();
  // A unit as the last word: mem_used_mib, t_s, host_mem_util_pct. "min" there is a minimum more often than minutes.
  const bool of_time =
      out.words.size() == 2 && (out.words[0] == "t" || out.words[0] == "time" || out.words[0] == "elapsed");
  // "mem_used_mib_0": the unit before the GPU's number.
  if (out.words.size() > 2 && is_digit(out.words.back().front()) && take_unit(out, out.words[out.words.size() - 2]))
    out.words.erase(out.words.end() - 2);
  if (out.words.size() > 1 && out.unit_bytes == 0 &&
      (of_time || (out.words.back() != "min" && out.words.back() != "h")) && take_unit(out, out.words.back()))
    out.words.pop_back();
  else if (out.words.size() == 1 && out.unit_ns == 0)
    out.unit_ns = time_unit_ns(out.words[0]);  // a column titled "seconds" or "ms"
  return out;
}

int time_rank(const Words& w) {
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
  if (!w.words.empty() && (w.words.back() == "timestamp" || w.words.back() == "time" || w.words[0] == "timestamp"))
    return 40;
  return 0;
}

bool is_step(const Words& w) {
  return w.is({"sample"}) || w.is({"step"}) || w.is({"iteration"}) || w.is({"iter"}) || w.is({"n"}) || w.is({"tick"}) ||
         w.is({"row"}) || w.is({"global", "step"}) || w.is({"sample", "id"}) || w.is({"samples"}) || w.is({"batch"});
}

/// Role and rank of a title that speaks of memory; role other when it does not, or of none that is wanted.
void classify_memory(const Words& w, Column& out) {
  const bool memory = w.has({"mem", "memory", "vram", "ram", "fb", "framebuffer", "gpumem", "hbm", "rss"});
  if (w.has({"clock",  "clocks", "temp",      "temperature", "bandwidth", "bw",          "bar1",       "swap",
             "cached", "peak",   "protected", "ecc",         "errors",    "power",       "freq",       "mhz",
             "speed",  "read",   "write",     "copy",        "util",      "utilization", "utilisation"}) &&
      !(w.has({"util", "utilization", "utilisation"}) && memory))
    return;
  const auto set = [&out](ColumnRole role, int rank) {
    out.role = role;
    out.rank = rank;
  };
  // nvidia-smi's utilization.memory is how busy the memory bus is, not how full the memory is.
  if (!w.words.empty() && w.words.front().starts_with("utili")) return;
  if (memory && (w.percent || w.has({"util", "utilization", "utilisation"}))) return set(ColumnRole::percent, 50);
  const bool alone = w.words.size() == 1;
  // "gpu usage %" is how busy it is; what is used or allocated is memory.
  if (w.percent && alone && w.has({"used", "allocated", "occupied"})) return set(ColumnRole::percent, 40);
  if (w.percent) return;
  if ((memory || alone || w.has({"gpu"})) && w.has({"free", "available", "avail"})) return set(ColumnRole::free, 50);
  if ((memory || alone || w.has({"gpu"})) && w.has({"total", "capacity", "limit", "size"}))
    return set(ColumnRole::total, w.has({"total"}) ? 60 : 50);
  if (w.has({"max", "min", "avg", "mean", "limit"})) return;
  if (memory && w.has({"used", "usage", "use", "inuse", "consumed", "occupied"})) return set(ColumnRole::used, 90);
  if (alone && w.has({"used"})) return set(ColumnRole::used, 85);
  if (w.has({"used"}) && (w.has({"gpu"}) || w.unit_bytes != 0)) return set(ColumnRole::used, 80);
  if (w.has({"vram"})) return set(ColumnRole::used, 70);
  if (memory && w.has({"allocated", "alloc"})) return set(ColumnRole::used, 66);
  if (memory && w.has({"reserved"})) return set(ColumnRole::used, 30);
  if (w.has({"rss"})) return set(ColumnRole::used, 60);
  if (memory && w.words.size() <= 3) return set(ColumnRole::used, 65);
  if (alone && w.has({"allocated", "usage"}) && w.unit_bytes != 0) return set(ColumnRole::used, 55);
  if (alone && w.has({"bytes", "mib", "mb", "gib", "gb"})) return set(ColumnRole::used, 20);
}

/// The one number in a title, and the title without it; -1 when there is none, or several.
int number_in(std::string_view title, std::string& rest) {
  int number = -1;
  rest.clear();
  for (std::size_t i = 0; i < title.size();) {
    if (!is_digit(title[i])) {
      rest += title[i++];
      continue;
    }
    std::size_t end = i;
    while (end < title.size() && is_digit(title[end])) ++end;
    const auto value = logtext::whole_number<int>(title.substr(i, end - i));
    if (number >= 0 || !value || *value > 1023) return -1;
    number = *value;
    rest += '#';
    i = end;
  }
  return number;
}

/// Whether the used columns are one a GPU: alike but for a number.
void find_wide(std::span<const std::string_view> titles, std::span<const Column> columns, ColumnPlan& plan) {
  const Column& used = columns[static_cast<std::size_t>(plan.used)];
  std::string pattern;
  std::string other;
  const bool numbered = number_in(titles[static_cast<std::size_t>(plan.used)], pattern) >= 0;
  std::string total_pattern;
  if (plan.total >= 0) number_in(titles[static_cast<std::size_t>(plan.total)], total_pattern);
  std::vector<ColumnPlan::Wide> wide;
  for (std::size_t i = 0; i < titles.size(); ++i) {
    if (columns[i].role != used.role) continue;
    const int gpu = number_in(titles[i], other);
    if (numbered && gpu >= 0 && other == pattern && columns[i].unit_bytes == used.unit_bytes) {
      ColumnPlan::Wide column{static_cast<int>(i), -1, gpu};
      for (std::size_t t = 0; t < titles.size(); ++t)
        if (columns[t].role == ColumnRole::total && number_in(titles[t], other) == gpu && other == total_pattern)
          column.total = static_cast<int>(t);
      wide.push_back(column);
    } else if (static_cast<int>(i) != plan.used) {
      plan.passed_over.emplace_back(titles[i]);
    }
  }
  const bool one_row_a_gpu =
      plan.index >= 0 || plan.uuid >= 0 || plan.pci >= 0 || plan.pid >= 0 || !plan.series.empty();
  if (wide.size() > 1 && !one_row_a_gpu && !plan.percent) plan.wide = std::move(wide);
}

}  // namespace

Column classify_column(std::string_view title) {
  const Words w = read_title(title);
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
    if (w.is({"series"}) || w.is({"run"}) || w.is({"run", "id"}) || w.is({"run", "name"}) || w.is({"host"}) ||
        w.is({"hostname"}) || w.is({"node"}) || w.is({"instance"}) || w.is({"container"}) || w.is({"pod"}) ||
        w.is({"job"}) || w.is({"job", "id"}) || w.is({"rank"}) || w.is({"worker"}))
      return as(ColumnRole::series, 50);
    if (w.is({"name"}) || w.is({"gpu", "name"}) || w.is({"model"}) || w.is({"device", "name"}) ||
        w.is({"product", "name"}))
      return as(ColumnRole::device_name, 50);
  }
  classify_memory(w, out);
  return out;
}

void split_fields(std::string_view line, char delimiter, std::vector<std::string_view>& fields) {
  fields.clear();
  while (true) {
    while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    std::size_t end = std::string_view::npos;
    if (!line.empty() && line.front() == '"') {
      const std::size_t close = line.find('"', 1);
      if (close != std::string_view::npos) {
        end = line.find(delimiter, close);
        fields.push_back(line.substr(1, close - 1));
      } else {
        end = line.find(delimiter);
        fields.push_back(trim(line.substr(0, end)));
      }
    } else {
      end = line.find(delimiter);
      fields.push_back(trim(line.substr(0, end)));
    }
    if (end == std::string_view::npos) return;
    line.remove_prefix(end + 1);
  }
}

char find_delimiter(std::string_view line) {
  char best = '\0';
  std::ptrdiff_t most = 0;
  for (const char c : {',', ';', '\t'}) {
    const auto n = std::count(line.begin(), line.end(), c);
    if (n > most) {
      most = n;
      best = c;
    }
  }
  return best;
}

bool looks_like_header(std::string_view line, char delimiter) {
  std::vector<std::string_view> fields;
  split_fields(line, delimiter, fields);
  bool used = false;
  for (const std::string_view field : fields) {
    logtext::Decimal number;
    if (!field.empty() && (is_digit(field.front()) || field.front() == '-') && logtext::read_decimal(field, number))
      return false;
    const ColumnRole role = classify_column(field).role;
    used |= role == ColumnRole::used || role == ColumnRole::percent || role == ColumnRole::free;
  }
  return used;
}

Result<ColumnPlan> plan_header(std::string_view line, char delimiter) {
  std::vector<std::string_view> titles;
  split_fields(line, delimiter, titles);
  ColumnPlan plan;
  plan.delimiter = delimiter;
  plan.count = titles.size();
  plan.header = trim(line);
  std::vector<Column> columns;
  columns.reserve(titles.size());
  for (const std::string_view title : titles) columns.push_back(classify_column(title));

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
  if (plan.used < 0 && (plan.free < 0 || plan.total < 0))
    return fail(
        fmt::format("no column of used memory among '{}'; expected a title such as memory.used [MiB], "
                    "mem_used_mib, used_bytes or vram_gb",
                    logtext::excerpt(line, 160)));
  if (plan.used >= 0) plan.used_unit = column(plan.used).unit_bytes;
  if (plan.free >= 0) plan.free_unit = column(plan.free).unit_bytes;
  if (plan.total >= 0) plan.total_unit = column(plan.total).unit_bytes;

  plan.time = best(ColumnRole::time);
  plan.date = best(ColumnRole::date);
  if (plan.time < 0 && plan.date >= 0) std::swap(plan.time, plan.date);
  if (plan.time < 0) {
    plan.time = best(ColumnRole::step);
    plan.time_title.step = plan.time >= 0;
  }
  if (plan.time >= 0) plan.time_title.unit_ns = column(plan.time).unit_ns;

  plan.index = best(ColumnRole::index);
  plan.uuid = best(ColumnRole::uuid);
  plan.pci = best(ColumnRole::pci);
  plan.device_name = best(ColumnRole::device_name);
  plan.pid = best(ColumnRole::pid);
  plan.user = best(ColumnRole::user);
  if (plan.pid >= 0) {
    plan.process_name = best(ColumnRole::process_name);
    plan.process_kind = best(ColumnRole::process_kind);
    // "pid, name": the process's, unless the log names GPUs apart ("gpu_name").
    if (plan.process_name < 0 && plan.device_name >= 0 &&
        logtext::same_letters(titles[static_cast<std::size_t>(plan.device_name)], "name"))
      std::swap(plan.process_name, plan.device_name);
  }
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (columns[i].role == ColumnRole::series) plan.series.push_back(static_cast<int>(i));
  if (plan.used >= 0) find_wide(titles, columns, plan);
  return plan;
}

}  // namespace vramtrack
