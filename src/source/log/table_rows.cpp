#include "source/log/table_rows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "source/log/columns.hpp"
#include "source/log/memory_words.hpp"
#include "source/log/stamp.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtext::trim;

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
  for (const DateOrder order : {DateOrder::month_first, DateOrder::day_first})
    if (Civil civil;
        read_civil(both, order, civil) && civil.has_date && civil.has_time && civil.length == both.size()) {
      rest = behind;
      return both;
    }
  return word;
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
