// The plain `nvidia-smi` table printed in a loop: GPU rows, MIG rows and process rows of all drivers since 3xx.
//
//   Thu Oct  9 23:47:45 2025                     the dump's time (or any line with a date before it)
//   | NVIDIA-SMI 581.29 ...                      a new dump
//   |   0  NVIDIA ...  | 00000000:01:00.0 ... |  a GPU, and on the next row "14502MiB /  16303MiB"
//   |  0    1   0   0  |  38MiB / 40192MiB |     a MIG device: GPU GI CI Dev
//   | Processes: ...                             then one row a process, until the closing +----+
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "core/pci_address.hpp"
#include "core/units.hpp"
#include "source/log/dump_readings.hpp"
#include "source/log/line_start.hpp"

namespace vramtrack {
namespace {

using logtext::take_word;
using logtext::trim;
using logtext::whole_number;

/// The characters of nvitop's tables, grouped by the character that nvidia-smi prints in their place.
constexpr std::array<std::pair<char, std::array<std::string_view, 4>>, 5> kBoxes = {{
    {'|', {"│", "├", "╞", "┼"}},
    {'+', {"╒", "╘", "╕", "╛"}},
    {'-', {"─", "┬", "┴", "┤"}},
    {'=', {"═", "╪", "╤", "╡"}},
    {' ', {"╧", "║", "╠", "╣"}},
}};
constexpr std::string_view kBoxBegin = "\xe2";  // the first byte of each of them in UTF-8

/// `line` as nvidia-smi would print it; unchanged if it has no box characters.
std::string_view with_plain_boxes(std::string_view line, std::string& buffer) {
  if (line.find(kBoxBegin) == std::string_view::npos) return line;
  buffer.clear();
  while (!line.empty()) {
    std::size_t length = 1;
    char drawn = line.front();
    if (line.starts_with(kBoxBegin))
      for (const auto& [plain, boxes] : kBoxes)
        for (const std::string_view box : boxes)
          if (line.starts_with(box)) {
            drawn = plain;
            length = box.size();
          }
    buffer += drawn;
    line.remove_prefix(length);
  }
  return buffer;
}

/// The age of a process as nvitop writes it, in seconds: "22:10" or "5:07:00", and "4.3 days" from four days on.
std::optional<std::uint64_t> age_of(std::string_view text, bool is_in_days) {
  if (is_in_days) {
    logtext::Decimal days;
    if (!logtext::read_decimal(text, days) || days.negative) return std::nullopt;
    return static_cast<std::uint64_t>(std::min(days.value(), 1e5) * kSecondsPerDay);
  }
  std::uint64_t age_s = 0;
  for (int parts = 1;; ++parts) {
    const std::size_t colon = text.find(':');
    const auto number = whole_number<std::uint32_t>(text.substr(0, colon));
    if (!number || parts > 3) return std::nullopt;
    age_s = age_s * 60 + *number;
    if (colon == std::string_view::npos) return parts > 1 ? std::optional(age_s) : std::nullopt;
    text.remove_prefix(colon + 1);
  }
}

bool is_of_table(std::string_view line) {
  line = trim(line);
  // nvitop writes the load of the host between its tables.
  return line.starts_with('|') || line.starts_with('+') || line.starts_with("│") || line.starts_with("├") ||
         line.starts_with("╒") || line.starts_with("╘") || line.starts_with("╞") || line.starts_with("[ CPU:") ||
         line.starts_with("[ MEM:");
}

/// The time of a dump, which is outside tables: on its own line, or, if there is none, in the text before it.
std::string_view time_alone(std::string_view line) {
  const std::string_view text = is_of_table(line) ? std::string_view{} : dated_text(line);
  const std::string_view before =
      text.empty() ? text : line.substr(0, static_cast<std::size_t>(text.data() - line.data()));
  const auto is_of_word = [](char c) { return logtext::is_ascii_letter(c) || logtext::is_digit(c); };
  return std::any_of(before.begin(), before.end(), is_of_word) ? std::string_view{} : text;
}

std::string_view time_in_text(std::string_view line) {
  const std::string_view text = is_of_table(line) ? std::string_view{} : find_stamp(line);
  Civil civil;
  return read_civil(text, civil) && civil.has_date ? text : std::string_view{};
}

class Table final : public DumpLines {
 public:
  using DumpLines::DumpLines;

  void finish(LogRows& rows) override {
    close_gpu(rows);
    DumpLines::finish(rows);
  }

 private:
  enum class Part : std::uint8_t { outside, gpus, mig, processes };

  void read_line(std::string_view line, std::uint64_t number, bool whole, LogRows& rows) override;
  void read_gpu_row(std::string_view line, std::uint64_t number, LogRows& rows);
  void read_mig_row(std::string_view line, std::uint64_t number, LogRows& rows);
  void read_process_row(std::string_view line, std::uint64_t number, LogRows& rows);
  /// Reads a row of nvitop, with the columns GPU PID TYPE USER GPU-MEM %SM ... COMMAND.
  void read_nvitop_process(std::string_view row, std::uint64_t number, LogRows& rows);
  void count_columns(std::string_view titles);
  void add_process(int gpu, const LogDevice* device, DumpedProcess process, LogRows& rows);
  void begin_dump(LogRows& rows);
  void close_gpu(LogRows& rows);
  [[nodiscard]] const LogDevice* gpu_at(int index) const {
    const auto gpu = gpus_.find(index);
    return gpu == gpus_.end() ? nullptr : &gpu->second;
  }

  Part part_ = Part::outside;
  bool rows_follow_ = false;      ///< the "|====" line of the current part has been read
  int nvitop_between_ = 4;        ///< number of nvitop's columns between the memory and the command
  bool is_nvitop_ = false;        ///< the current dump is nvitop's
  std::string drawn_;             ///< the current line with plain characters, if its box characters are not plain
  bool has_instances_ = false;    ///< the process table has GI and CI columns
  std::optional<LogDevice> gpu_;  ///< the GPU with its memory in the next row
  std::uint64_t gpu_line_ = 0;
  std::map<int, LogDevice> gpus_;                             ///< GPUs in this dump, by index
  std::map<std::tuple<int, int, int>, LogDevice> instances_;  ///< MIG instances by GPU, GI and CI
};

void Table::begin_dump(LogRows& rows) {
  close_gpu(rows);
  readings_.end_dump(rows);
  part_ = Part::gpus;
  rows_follow_ = false;
  gpus_.clear();
  instances_.clear();
}

void Table::close_gpu(LogRows& rows) {
  if (gpu_) rows.skip(gpu_line_, "a GPU row without its memory row (a truncated dump)");
  gpu_.reset();
}

void Table::read_line(std::string_view line, std::uint64_t number, bool whole, LogRows& rows) {
  line = with_plain_boxes(line, drawn_);
  const std::string_view text = trim(line);
  if (text.empty()) return;
  if (text.front() == '+' || text.starts_with("|--") || text.starts_with("|=") || text.starts_with("|  |")) {
    if (text.starts_with("|=")) rows_follow_ = true;
    // The line that closes the process table: the list is complete, so any other process has ended.
    if (text.front() == '+' && part_ == Part::processes && rows_follow_) {
      for (const auto& [index, gpu] : gpus_) readings_.list_is_complete(gpu, rows);
      for (const auto& [id, instance] : instances_) readings_.list_is_complete(instance, rows);
      part_ = Part::outside;
    }
    return;
  }
  if (text.front() == '|') {
    if (!whole) return rows.skip(number, "truncated last line");
    if (text.find("NVIDIA-SMI") != std::string_view::npos || text.starts_with("| NVITOP ")) {
      begin_dump(rows);
      is_nvitop_ = text.starts_with("| NVITOP ");
      return;
    }
    if (text.find("Processes:") != std::string_view::npos) {
      close_gpu(rows);
      part_ = Part::processes;
      rows_follow_ = false;
      has_instances_ = false;
      return;
    }
    if (text.find("MIG devices:") != std::string_view::npos) {
      close_gpu(rows);
      part_ = Part::mig;
      rows_follow_ = false;
      return;
    }
    if (!rows_follow_) {
      if (part_ == Part::processes && text.find(" GI ") != std::string_view::npos) has_instances_ = true;
      if (part_ == Part::processes && is_nvitop_) count_columns(text);
      return;
    }
    switch (part_) {
      case Part::gpus:
        return read_gpu_row(line, number, rows);
      case Part::mig:
        return read_mig_row(line, number, rows);
      case Part::processes:
        return read_process_row(line, number, rows);
      case Part::outside:
        return;
    }
    return;
  }
  // Outside the tables: a time, or other text, which is ignored.
  if (whole && readings_.take_time(text, rows)) return;
  if (text.find("NVIDIA-SMI has failed") != std::string_view::npos || text.starts_with("Unable to determine") ||
      text.starts_with("No devices") || text.starts_with("Failed to initialize"))
    rows.skip(number, fmt::format("nvidia-smi said: {}", logtext::excerpt(text)));
}

void Table::read_gpu_row(std::string_view line, std::uint64_t number, LogRows& rows) {
  const auto cells = bar_cells(line);
  if (cells.size() < 2) return;
  std::string_view first = cells[0];
  std::string_view second = cells[1];
  const auto index = whole_number<int>(take_word(first));
  const std::string bus = pci_address_of(take_word(second));
  if (index && *index >= 0 && *index < 1024 && !bus.empty()) {
    close_gpu(rows);
    LogDevice gpu;
    gpu.index = index;
    gpu.pci_bus_id = bus;
    // "NVIDIA GeForce RTX 5080 ...  WDDM": the last word, after two or more spaces, is a mode.
    std::string_view name = trim(first);
    if (const std::size_t gap = name.rfind("  "); gap != std::string_view::npos) name = trim(name.substr(0, gap));
    gpu.name = name;
    gpu_ = std::move(gpu);
    gpu_line_ = number;
    return;
  }
  if (is_nvitop_ && index && *index >= 0 && *index < 1024 &&
      cells[1].find("iB") != std::string_view::npos) {  // nvitop in a small terminal has one row per GPU
    close_gpu(rows);
    gpu_ = LogDevice{};
    gpu_->index = index;
  }
  if (!gpu_) return;
  const LogDevice& gpu = gpus_[*gpu_->index] = *gpu_;
  gpu_.reset();
  // Jetson and GB10 print "Not Supported" instead of the pair.
  if (logtext::is_missing(cells[1])) return readings_.see(gpu, rows);
  if (!readings_.set_pair(std::nullopt, gpu, cells[1], rows))
    rows.skip(number, fmt::format("no memory pair such as '841MiB / 8192MiB' in '{}'", logtext::excerpt(cells[1])));
}

void Table::read_mig_row(std::string_view line, std::uint64_t number, LogRows& rows) {
  const auto cells = bar_cells(line);
  if (cells.size() < 2) return;
  std::string_view first = cells[0];
  if (first.starts_with("No MIG")) return;
  if (first.empty()) return;  // the BAR1 row, or the rows of shared columns
  const auto gpu = whole_number<int>(take_word(first));
  const auto gi = whole_number<int>(take_word(first));
  const auto ci = whole_number<int>(take_word(first));
  if (!gpu || !gi || !ci || *gpu < 0)
    return rows.skip(number, fmt::format("no MIG device in '{}'", logtext::excerpt(line)));
  LogDevice mig;
  const LogDevice* const parent = gpu_at(*gpu);
  mig.parent_id = parent != nullptr ? rows.device_id(rows.device(*parent)) : std::to_string(*gpu);
  if (parent != nullptr) mig.name = parent->name;
  mig.text = fmt::format("{}/gi{}/ci{}", mig.parent_id, *gi, *ci);
  mig.name += fmt::format("{}MIG {}/{}", mig.name.empty() ? "" : " ", *gi, *ci);
  if (!readings_.set_pair(std::nullopt, mig, cells[1], rows))
    return rows.skip(number, fmt::format("no MIG device in '{}'", logtext::excerpt(line)));
  instances_[{*gpu, *gi, *ci}] = std::move(mig);
}

void Table::read_process_row(std::string_view line, std::uint64_t number, LogRows& rows) {
  const auto cells = bar_cells(line);
  if (cells.empty() || cells[0].empty()) return;
  std::string_view rest = cells[0];
  if (rest.starts_with("No running") || rest.find("Not Supported") != std::string_view::npos) return;
  const std::string_view whole_row = rest;
  if (is_nvitop_) return read_nvitop_process(rest, number, rows);
  const auto gpu = whole_number<int>(take_word(rest));
  std::optional<int> gi;
  std::optional<int> ci;
  if (has_instances_) {
    gi = whole_number<int>(take_word(rest));
    ci = whole_number<int>(take_word(rest));
  }
  const auto pid = whole_number<std::uint32_t>(take_word(rest));
  if (!gpu || *gpu < 0 || !pid)
    return rows.skip(number, fmt::format("no GPU and pid in the process row '{}'", logtext::excerpt(whole_row)));
  std::string_view after_type = rest;
  const std::string_view type = take_word(after_type);
  std::string_view kind;
  if (!type.empty() && type.size() <= 5 && std::all_of(type.begin(), type.end(), [](char c) {
        return c == 'C' || c == 'G' || c == 'M' || c == '+' || c == 'O';
      })) {
    kind = type;
    rest = after_type;
  }
  rest = trim(rest);
  // The last word, after a space, is the memory.
  const std::size_t gap = rest.find_last_of(" \t");
  const std::string_view memory = gap == std::string_view::npos ? rest : rest.substr(gap + 1);
  const std::string_view name = gap == std::string_view::npos ? std::string_view{} : trim(rest.substr(0, gap));
  std::uint64_t bytes = 0;
  const logtext::Amount amount = logtext::read_amount(memory, kBytesPerMiB, bytes);
  if (amount == logtext::Amount::bad)
    return rows.skip(number, fmt::format("no memory at the end of the process row '{}'", logtext::excerpt(whole_row)));

  const auto instance = instances_.find({*gpu, gi.value_or(-1), ci.value_or(-1)});
  const bool has_bytes = amount == logtext::Amount::read;
  if (!has_bytes)
    rows.warn(
        "nvidia-smi shows N/A for the memory of processes (Windows, or no permission): only the GPUs' use is analysed");
  DumpedProcess process{*pid, std::string(name), std::string(logtext::same_letters(kind, "M+C") ? "MPS" : kind), {}};
  if (has_bytes) process.bytes = bytes;
  add_process(*gpu, instance == instances_.end() ? gpu_at(*gpu) : &instance->second, std::move(process), rows);
}

/// `device`: the GPU with that index, or a part of it; nullptr if the dump does not list it.
void Table::add_process(int gpu, const LogDevice* device, DumpedProcess process, LogRows& rows) {
  if (device == nullptr)
    return rows.skip(rows.line, fmt::format("a process on GPU {}, which this dump does not list", gpu));
  readings_.list_process(*device, std::move(process), rows);
}

/// "GPU PID USER GPU-MEM %SM %CPU %MEM TIME COMMAND": versions differ in the columns before the command.
void Table::count_columns(std::string_view titles) {
  const std::size_t memory = titles.find("GPU-MEM");
  const std::size_t command = titles.find("COMMAND");
  if (memory == std::string_view::npos || command == std::string_view::npos || command < memory) return;
  std::string_view between = titles.substr(memory, command - memory);
  nvitop_between_ = -1;  // the memory itself
  while (!take_word(between).empty()) ++nvitop_between_;
}

void Table::read_nvitop_process(std::string_view row, std::uint64_t number, LogRows& rows) {
  const std::string_view whole_row = row;
  if (row.starts_with("Gathering")) return;
  const auto gpu = whole_number<int>(take_word(row));
  const auto pid = whole_number<std::uint32_t>(take_word(row));
  const std::string_view kind = take_word(row);
  const std::string_view user = take_word(row);
  const std::string_view memory = take_word(row);
  std::string_view time;  // time since the process began; the last column before the command
  for (int i = 0; i < nvitop_between_; ++i) time = take_word(row);
  const bool is_in_days = time.find('.') != std::string_view::npos && trim(row).starts_with("days ");
  if (is_in_days) take_word(row);
  std::uint64_t bytes = 0;
  const logtext::Amount amount =
      memory == "WDDM:N/A" ? logtext::Amount::missing : logtext::read_amount(memory, kBytesPerMiB, bytes);
  if (!gpu || *gpu < 0 || !pid || amount == logtext::Amount::bad)
    return rows.skip(number,
                     fmt::format("no GPU, pid and memory in the process row '{}'", logtext::excerpt(whole_row)));
  DumpedProcess process{*pid, std::string(trim(row)), std::string(kind == "X" ? "C+G" : kind), std::string(user)};
  if (amount == logtext::Amount::read) process.bytes = bytes;
  process.age_s = age_of(time, is_in_days);
  add_process(*gpu, gpu_at(*gpu), std::move(process), rows);
}

Evidence recognise(std::string_view head) {
  if (head.find("│ NVITOP ") != std::string_view::npos || head.find("| NVITOP ") != std::string_view::npos)
    return Evidence::own_mark;
  if (head.find("Memory-Usage") != std::string_view::npos &&
      (head.find("| NVIDIA-SMI") != std::string_view::npos || head.find("|===") != std::string_view::npos))
    return Evidence::own_mark;
  return head.find("| NVIDIA-SMI") != std::string_view::npos ? Evidence::own_rows : Evidence::none;
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  return make_dump_parser<Table>(head, {time_alone, time_in_text});
}

/// A dump begins with the first line after the previous tables, usually its time.
bool begins_record(std::string_view line, std::string_view before) {
  return !trim(line).empty() && !is_of_table(line) && (before.empty() || is_of_table(before));
}

}  // namespace

const LogFormatInfo table_log_format{.name = "table",
                                     .help = "nvidia-smi -l 10 > gpu.log (the plain table, dumped in a loop)",
                                     .recognise = recognise,
                                     .make = make,
                                     .begins_record = begins_record,
                                     .is_screen = true};

}  // namespace vramtrack
