// Cuts lines of free text: by --line-pattern, whose groups are the figures, their time and their owner; and rows of
// tables, which are rewritten as text.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/option.hpp"
#include "source/log/columns.hpp"
#include "source/log/line_pattern.hpp"
#include "source/log/line_start.hpp"
#include "source/log/memory_words.hpp"
#include "source/log/stamp.hpp"
#include "source/log/text.hpp"
#include "source/log/text_plan.hpp"

namespace vramtrack {
namespace {

using logtext::trim;

/// Reads `text`, a part of `line`, as people write amounts: see find_figures(). False: it is none.
bool read_figure(std::string_view line, std::string_view text, Grouping grouping, MemoryFigure& out) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789.,"), text.size());
  const std::string_view unit = trim(text.substr(digits));
  out.begin = static_cast<std::size_t>(text.data() - line.data());
  out.digits_end = out.begin + digits;
  out.end = out.begin + text.size();
  out.percent = out.role == Meaning::used && unit == "%";
  out.unit_bytes = written_unit(unit);
  if (logtext::Decimal plain; out.unit_bytes == 0 && !out.percent && digits < text.size()) {  // "1.2e9"
    if (!logtext::read_decimal(text, plain) || plain.length != text.size()) return false;
    out.number = plain.value();
    return out.number >= 0;
  }
  const std::string_view number = text.substr(0, digits);
  out.number = read_number(number, out.unit_bytes, grouping);
  out.is_open =
      (out.unit_bytes != 0 || grouping == Grouping::by_dot) && is_open_number(number, out.unit_bytes) && !out.percent;
  return out.number >= 0;
}

std::string_view first_of(std::string_view a, std::string_view b) {
  return trim(a.empty() ? b : a);
}

}  // namespace

void LineCutter::cut_by_pattern(std::string_view line, Grouping grouping, LineFigures& out) {
  out = {};
  fault_ = {};
  matches_ = pattern_->read(line, groups_);
  if (!pattern_->has_time() && !pattern_->has_step())
    out.stamp = find_stamp(line);
  else if (matches_)
    out.stamp = first_of(groups_.time, groups_.step);
  if (!matches_) return;
  out.tag = first_of(groups_.uuid, groups_.gpu);
  out.pid = logtext::whole_number<std::uint32_t>(trim(groups_.pid));
  if (!groups_.pid.empty() && !out.pid) fault_ = "no readable pid";
  for (const auto& [role, group] : {std::pair(Meaning::used, groups_.used),
                                    {Meaning::total, groups_.total},
                                    {Meaning::free, groups_.free},
                                    {Meaning::allocated, groups_.allocated},
                                    {Meaning::reserved, groups_.reserved}}) {
    const std::string_view text = trim(group);
    if (text.empty() || logtext::is_missing(text)) continue;
    MemoryFigure& f = out.figures.emplace_back();
    f.role = role;
    f.has_role_word = f.is_of_gpu = f.is_memory = true;
    f.word = line;  // whose language shows how its numbers are grouped
    if (read_figure(line, text, grouping, f)) continue;
    fault_ = "no readable amount";
    out.figures.pop_back();
  }
}

void LineCutter::name(TextFigures& out) const {
  constexpr int kMostGpus = 4096;
  out.pid = logtext::whole_number<std::uint32_t>(trim(groups_.pid));
  out.is_named = !groups_.gpu.empty() || !groups_.uuid.empty();
  out.gpu.uuid = trim(groups_.uuid);
  const std::string_view text = trim(groups_.gpu);
  const auto index = logtext::whole_number<int>(text);
  if (index && *index >= 0 && *index < kMostGpus)
    out.gpu.index = *index;
  else if (text.empty())
    out.gpu.index = 0;
  else
    out.gpu.text = text;
  out.name = trim(groups_.name);
  out.user = trim(groups_.user);
  if (!out.pid) out.gpu.name = out.name;
}

namespace {

using Group = std::string_view TextReading::*;

constexpr std::array<std::pair<std::string_view, Group>, 12> kGroups = {{{"time", &TextReading::time},
                                                                         {"step", &TextReading::step},
                                                                         {"used", &TextReading::used},
                                                                         {"total", &TextReading::total},
                                                                         {"free", &TextReading::free},
                                                                         {"allocated", &TextReading::allocated},
                                                                         {"reserved", &TextReading::reserved},
                                                                         {"gpu", &TextReading::gpu},
                                                                         {"uuid", &TextReading::uuid},
                                                                         {"pid", &TextReading::pid},
                                                                         {"name", &TextReading::name},
                                                                         {"user", &TextReading::user}}};

std::string group_names() {
  std::string names;
  for (const auto& [name, group] : kGroups) names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

}  // namespace

std::string quoted_for_pattern(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("\\^$.|?*+()[]{}/").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

Result<LinePattern> LinePattern::compile(const std::string& text) {
  const auto wrong = [&](const std::string& why) {
    return fail(
        fmt::format("{}: {}; an example is '(?<used>\\d+) / (?<total>\\d+) MiB'", name_of(Option::line_pattern), why));
  };
  auto regex = Regex::compile(text);
  if (!regex) return wrong(regex.error().message);
  LinePattern pattern(std::move(*regex));
  bool used = false;
  bool free = false;
  bool total = false;
  for (const std::string& name : pattern.regex_.group_names()) {
    const auto known = std::find_if(kGroups.begin(), kGroups.end(), [&](const auto& g) { return g.first == name; });
    if (known == kGroups.end() && !name.empty())
      return wrong(fmt::format("group '{}' is not known; the groups are {}", name, group_names()));
    const Group group = known == kGroups.end() ? nullptr : known->second;
    pattern.groups_.push_back(group);
    used |= group == &TextReading::used || group == &TextReading::allocated || group == &TextReading::reserved;
    free |= group == &TextReading::free;
    total |= group == &TextReading::total;
    pattern.has_time_ |= group == &TextReading::time;
    pattern.has_step_ |= group == &TextReading::step;
    pattern.has_pid_ |= group == &TextReading::pid;
  }
  if (!used && !(free && total)) return wrong("it has no group named used, allocated or reserved, nor free and total");
  return pattern;
}

bool LinePattern::read(std::string_view line, TextReading& out) {
  if (line.size() > kLongestLine || !regex_.find(line, found_)) return false;
  out = {};
  for (std::size_t i = 0; i < groups_.size(); ++i)  // a name may occur in several alternatives
    if (groups_[i] != nullptr && !found_[i + 1].empty()) out.*groups_[i] = found_[i + 1];
  return true;
}

namespace {

bool is_epoch_like(std::string_view cell) {
  const std::size_t digits = std::min(cell.find_first_not_of("0123456789"), cell.size());
  return (digits == 10 || digits == 13) && cell.front() == '1' && (digits == cell.size() || cell[digits] == '.');
}

bool is_minute_like(std::string_view cell) {
  return (cell.size() == 4 || cell.size() == 5) && cell[cell.size() - 3] == ':' &&
         std::count_if(cell.begin(), cell.end(), logtext::is_digit) + 1 == static_cast<std::ptrdiff_t>(cell.size());
}

/// The next word of a row; a date and the following time count as one.
std::string_view take_cell(std::string_view& rest) {
  const std::string_view word = logtext::take_word(rest);
  std::string_view behind = rest;
  const std::string_view next = logtext::take_word(behind);
  if (next.empty()) return word;
  const std::string_view both(word.data(), static_cast<std::size_t>(next.data() + next.size() - word.data()));
  const auto civil = whole_civil(both);
  if (!civil || !civil->has_date || !civil->has_time) return word;
  rest = behind;
  return both;
}

void cut(std::string_view text, std::vector<std::string>& cells) {
  cells.clear();
  text.remove_prefix(1);
  if (text.ends_with('|')) text.remove_suffix(1);
  while (true) {
    const std::size_t bar = text.find('|');
    cells.emplace_back(trim(text.substr(0, bar)));
    if (bar == std::string_view::npos) return;
    text.remove_prefix(bar + 1);
  }
}

}  // namespace

std::string_view TableRows::line(std::string_view line) {
  const std::string_view text = trim(line);
  if (!text.starts_with('|')) {
    if (const std::string_view row = gpustat_row(line); !row.empty()) return row;
    titles_.clear();
    before_.clear();
    in_summary_ = false;
    return spaced(line, text);
  }
  spaced_titles_.clear();
  in_spaced_ = false;
  in_summary_ |= text.find("PyTorch CUDA memory summary") != std::string_view::npos;
  if (in_summary_) return summary_row(text);
  if (!before_.empty() && text.find_first_not_of("|-: ") == std::string_view::npos &&
      text.find('-') != std::string_view::npos) {
    cut(before_, titles_);
    // "Chip", "Device": a column that numbers GPUs, in the word that lines use for it.
    constexpr int kNumbersRows = 60;  // "index", "idx"
    for (std::string& title : titles_)
      if (const Column column = classify_column(title); column.role == ColumnRole::index && column.rank < kNumbersRows)
        title = "GPU";
    return {};
  }
  before_ = text;
  if (titles_.empty()) return line;
  cut(text, cells_);
  row_.clear();
  // Seconds since 1970, or hours and minutes, are a time only at the start of the line.
  const auto time = std::find_if(cells_.begin(), cells_.end(),
                                 [](const std::string& cell) { return is_epoch_like(cell) || is_minute_like(cell); });
  if (time != cells_.end()) row_ = *time + ", ";
  write_row(titles_);
  return row_;
}

/// "[0] NVIDIA A10G | 54'C, 97 % | 4000 / 24576 MB |", possibly after a time.
std::string_view TableRows::gpustat_row(std::string_view line) {
  const std::size_t cells = line.find(" | ");
  if (cells == std::string_view::npos) return {};
  const std::size_t open = line.substr(0, cells).rfind('[');
  if (open == std::string_view::npos) return {};
  const std::size_t close = line.find(']', open);
  const std::size_t memory = line.find(" | ", cells + 1);
  if (close > cells || memory == std::string_view::npos || line.find("'C", cells) > memory) return {};
  const std::string_view amounts = line.substr(memory + 3, line.find('|', memory + 3) - memory - 3);
  const std::string_view index = line.substr(open + 1, close - open - 1);
  if (index.find_first_not_of("0123456789") != std::string_view::npos || amounts.find(" / ") == std::string_view::npos)
    return {};
  row_ = fmt::format("{}GPU {} memory used: {}", line.substr(0, open), index, trim(amounts));
  return row_;
}

std::string_view TableRows::summary_row(std::string_view text) {
  constexpr std::string_view kDevice = "device ID ";
  row_.clear();
  if (const std::size_t at = text.find(kDevice); at != std::string_view::npos) {
    const std::string_view digits = text.substr(at + kDevice.size());
    row_ = fmt::format("GPU {}", digits.substr(0, digits.find_first_not_of("0123456789")));
    return row_;
  }
  cut(text, cells_);
  // Columns: metric, current, peak, total allocated, total freed.
  if (cells_.size() != 5) return row_;
  if (cells_[0] == "Allocated memory") row_ = "allocated GPU memory: " + cells_[1];
  if (cells_[0] == "GPU reserved memory") row_ = "reserved GPU memory: " + cells_[1];
  return row_;
}

void TableRows::write_row(const std::vector<std::string>& titles) {
  for (std::size_t i = 0; i < cells_.size() && i < titles.size(); ++i)
    row_ += fmt::format("{}{}: {}", i == 0 ? "" : ", ", titles[i], cells_[i]);
}

/// Titles and rows with spaces between the columns, as ultralytics prints them. A row may continue after its columns,
/// and other lines may stand before it and between the rows: titles hold until the next ones.
std::string_view TableRows::spaced(std::string_view line, std::string_view text) {
  in_spaced_ = false;
  if (text.empty()) return line;
  if (!spaced_titles_.empty() && (logtext::is_digit(text.front()) || text.front() == '-')) {
    std::string_view rest = text;
    cells_.clear();
    while (cells_.size() < spaced_titles_.size()) {
      const std::string_view word = take_cell(rest);
      const std::string_view digits = word.substr(word.starts_with('-') ? 1 : 0);
      if (digits.empty() || !logtext::is_digit(digits.front())) break;
      cells_.emplace_back(word);
    }
    if (cells_.size() == spaced_titles_.size()) {
      row_.clear();
      write_row(spaced_titles_);
      row_ += rest;
      in_spaced_ = true;
      return row_;
    }
  }
  in_spaced_ = read_spaced_titles(text);
  return line;
}

/// Whether `text` is a line of titles, one of them of a GPU's memory.
bool TableRows::read_spaced_titles(std::string_view text) {
  constexpr std::size_t kLeast = 3;
  std::string_view rest = text;
  for (std::string_view word = logtext::take_word(rest); !word.empty(); word = logtext::take_word(rest))
    if (!logtext::is_ascii_letter(word.front()) || word.find_first_of(":=,.") != std::string_view::npos) return false;
  spaced_titles_.clear();
  bool has_memory = false;
  while (true) {
    const std::string_view word = logtext::take_word(text);
    if (word.empty()) break;
    has_memory |= is_title_of_gpu_memory(word);
    spaced_titles_.emplace_back(word);
  }
  if (!has_memory || spaced_titles_.size() < kLeast) spaced_titles_.clear();
  return !spaced_titles_.empty();
}

}  // namespace vramtrack
