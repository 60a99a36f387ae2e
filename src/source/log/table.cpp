// The plain `nvidia-smi` table dumped in a loop: GPU rows, MIG rows and process rows of every driver from 3xx on.
//
//   Thu Oct  9 23:47:45 2025                     the dump's time (or any line with a date before it)
//   | NVIDIA-SMI 581.29 ...                      a new dump
//   |   0  NVIDIA ...  | 00000000:01:00.0 ... |  a GPU, and on the next row "14502MiB /  16303MiB"
//   |  0    1   0   0  |  38MiB / 40192MiB |     a MIG device: GPU GI CI Dev
//   | Processes: ...                             then one row a process, until the closing +----+
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/units.hpp"
#include "source/log/dumps.hpp"
#include "source/log/line_start.hpp"

namespace vramtrack {
namespace {

using logtext::take_word;
using logtext::trim;
using logtext::whole_number;

/// What nvitop draws its tables with, in groups that nvidia-smi draws as the character before them.
constexpr std::array<std::pair<char, std::array<std::string_view, 4>>, 5> kBoxes = {{
    {'|', {"│", "├", "╞", "┼"}},
    {'+', {"╒", "╘", "╕", "╛"}},
    {'-', {"─", "┬", "┴", "┤"}},
    {'=', {"═", "╪", "╤", "╡"}},
    {' ', {"╧", "║", "╠", "╣"}},
}};
constexpr std::string_view kBoxBegin = "\xe2";  // of all of them in UTF-8

/// `line` as nvidia-smi would have drawn it; the same where it has no box.
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

bool is_of_table(std::string_view line) {
  line = trim(line);
  // nvitop writes the load of the host between its tables.
  return line.starts_with('|') || line.starts_with('+') || line.starts_with("│") || line.starts_with("├") ||
         line.starts_with("╒") || line.starts_with("╘") || line.starts_with("╞") || line.starts_with("[ CPU:") ||
         line.starts_with("[ MEM:");
}

/// Cells of "| a | b | c |".
std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  line = trim(line);
  if (!line.empty() && line.front() == '|') line.remove_prefix(1);
  while (!line.empty() && cells.size() < 8) {
    const std::size_t end = line.find('|');
    cells.push_back(trim(line.substr(0, end)));
    if (end == std::string_view::npos) break;
    line.remove_prefix(end + 1);
  }
  return cells;
}

/// "14502MiB /  16303MiB"; false when the text is not such a pair (missing values make a pair of nullopt).
bool read_pair(std::string_view text, std::optional<std::uint64_t>& used, std::optional<std::uint64_t>& total) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view left = trim(text.substr(0, slash));
  const std::string_view right = trim(text.substr(slash + 1));
  std::uint64_t bytes = 0;
  bool unit = false;
  used.reset();
  total.reset();
  const auto one = [&](std::string_view side, std::optional<std::uint64_t>& out) {
    const logtext::Amount amount = logtext::read_amount(side, kBytesPerMiB, bytes, false, &unit);
    if (amount == logtext::Amount::read && unit) out = bytes;
    return amount == logtext::Amount::missing || out.has_value();
  };
  return one(left, used) && one(right, total);
}

/// The text of a line outside the tables without the marks around it: "==== Sun May  4 04:27:32 AM EDT 2025 ====".
std::string_view stamp_text(std::string_view line) {
  line = trim(line);
  while (!line.empty() && !logtext::is_digit(line.front()) && !logtext::is_alpha(line.front())) line.remove_prefix(1);
  while (!line.empty() && !logtext::is_digit(line.back()) && !logtext::is_alpha(line.back())) line.remove_suffix(1);
  return line;
}

/// Whether `text` begins with a date.
bool has_date(std::string_view text, Civil& civil) {
  return (read_civil(text, DateOrder::month_first, civil) || read_civil(text, DateOrder::day_first, civil)) &&
         civil.has_date;
}

class Table final : public LineParser {
 public:
  /// `in_text`: no line has only a time, so that of the last line before a dump counts, whatever else it says.
  Table(StampReader stamp, bool in_text, std::vector<std::string> assumptions)
      : LineParser(std::move(stamp)), in_text_(in_text) {
    assumptions_ = std::move(assumptions);
  }

  void finish(LogRows& rows) override { close_gpu(rows); }

 private:
  enum class Part : std::uint8_t { outside, gpus, mig, processes };

  void read_line(std::string_view line, std::uint64_t number, bool whole, LogRows& rows) override;
  void read_gpu_row(std::string_view line, std::uint64_t number, LogRows& rows);
  void read_mig_row(std::string_view line, std::uint64_t number, LogRows& rows);
  void read_process_row(std::string_view line, std::uint64_t number, LogRows& rows);
  /// A row of nvitop, whose columns are GPU PID TYPE USER GPU-MEM %SM ... COMMAND.
  void read_nvitop_process(std::string_view row, std::uint64_t number, LogRows& rows);
  void count_columns(std::string_view titles);
  void add_memory(std::optional<std::uint64_t> used, std::optional<std::uint64_t> total, LogRows& rows);
  void begin_dump();
  void close_gpu(LogRows& rows);

  bool in_text_ = false;
  Part part_ = Part::outside;
  bool stamped_ = false;  ///< a time was read since the last dump began
  Timestamp time_{};
  std::uint64_t dump_ = 0;
  bool rows_follow_ = false;      ///< after the "|====" line of the present part
  int nvitop_between_ = 4;        ///< columns of nvitop between the memory and the command
  bool is_nvitop_ = false;        ///< the present dump is nvitop's
  std::string drawn_;             ///< the present line, where its boxes are not plain
  bool has_instances_ = false;    ///< the process table has GI and CI columns
  std::optional<LogDevice> gpu_;  ///< a GPU whose memory row comes next
  std::uint64_t gpu_line_ = 0;
  std::vector<std::size_t> index_device_;  ///< device of each GPU index of this dump; SIZE_MAX: none
  std::vector<LogDevice> index_gpu_;
  struct Mig {
    int gpu, gi, ci;
    std::size_t device;
  };
  std::vector<Mig> migs_;
};

void Table::begin_dump() {
  if (stamp_.kind() == StampReader::Kind::none) time_ = stamp_.at_round(dump_);
  ++dump_;
  part_ = Part::gpus;
  rows_follow_ = false;
  gpu_.reset();
  index_device_.clear();
  index_gpu_.clear();
  migs_.clear();
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
    // The line that closes the process table: the list is complete, and a process that is missing has ended.
    if (text.front() == '+' && part_ == Part::processes && rows_follow_) {
      for (const std::size_t device : index_device_)
        if (device != SIZE_MAX) rows.end_unseen(device, static_cast<double>(dump_), time_);
      for (const Mig& mig : migs_) rows.end_unseen(mig.device, static_cast<double>(dump_), time_);
      part_ = Part::outside;
    }
    return;
  }
  if (text.front() == '|') {
    if (!whole) return rows.skip(number, "truncated last line");
    if (text.find("NVIDIA-SMI") != std::string_view::npos || text.starts_with("| NVITOP ")) {
      close_gpu(rows);
      begin_dump();
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
    if (dump_ > 0 && stamp_.kind() != StampReader::Kind::none && !stamped_) return;
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
  if (stamp_.kind() == StampReader::Kind::none) return;
  Timestamp time;
  const std::string_view said = in_text_ ? find_stamp(text) : stamp_text(text);
  if (!said.empty() && stamp_.read(said, time)) {
    if (!whole) return;
    time_ = time;
    stamped_ = true;
  } else if (text.find("NVIDIA-SMI has failed") != std::string_view::npos || text.starts_with("Unable to determine") ||
             text.starts_with("No devices") || text.starts_with("Failed to initialize")) {
    rows.skip(number, fmt::format("nvidia-smi said: {}", logtext::excerpt(text)));
  }
}

void Table::read_gpu_row(std::string_view line, std::uint64_t number, LogRows& rows) {
  const auto cells = cells_of(line);
  if (cells.size() < 2) return;
  std::string_view first = cells[0];
  std::string_view second = cells[1];
  const auto index = whole_number<int>(take_word(first));
  const std::string bus = normal_pci(take_word(second));
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
  std::optional<std::uint64_t> used;
  std::optional<std::uint64_t> total;
  const bool pair = read_pair(cells[1], used, total);
  if (is_nvitop_ && pair && index && *index >= 0 &&
      *index < 1024) {  // nvitop where there is little room: one row a GPU
    close_gpu(rows);
    gpu_ = LogDevice{};
    gpu_->index = index;
    return add_memory(used, total, rows);
  }
  if (!gpu_) return;
  // Jetson and GB10 print "Not Supported" where others have the pair.
  if (!pair && !logtext::is_missing(cells[1]))
    return rows.skip(number,
                     fmt::format("no memory pair such as '841MiB / 8192MiB' in '{}'", logtext::excerpt(cells[1])));
  add_memory(used, total, rows);
}

/// Adds a sample for the GPU of the current row.
void Table::add_memory(std::optional<std::uint64_t> used, std::optional<std::uint64_t> total, LogRows& rows) {
  const std::size_t device = rows.device(*gpu_);
  const auto at = static_cast<std::size_t>(*gpu_->index);
  if (index_device_.size() <= at) {
    index_device_.resize(at + 1, SIZE_MAX);
    index_gpu_.resize(at + 1);
  }
  index_device_[at] = device;
  index_gpu_[at] = *gpu_;
  gpu_.reset();
  if (total) rows.total(time_, device, *total);
  if (used) rows.add(time_, rows.device_series(device), *used);
}

void Table::read_mig_row(std::string_view line, std::uint64_t number, LogRows& rows) {
  const auto cells = cells_of(line);
  if (cells.size() < 2) return;
  std::string_view first = cells[0];
  if (first.starts_with("No MIG")) return;
  if (first.empty()) return;  // the BAR1 row, and the shared columns' rows
  const auto gpu = whole_number<int>(take_word(first));
  const auto gi = whole_number<int>(take_word(first));
  const auto ci = whole_number<int>(take_word(first));
  std::optional<std::uint64_t> used;
  std::optional<std::uint64_t> total;
  if (!gpu || !gi || !ci || *gpu < 0 || !read_pair(cells[1], used, total))
    return rows.skip(number, fmt::format("no MIG device in '{}'", logtext::excerpt(line)));
  const auto at = static_cast<std::size_t>(*gpu);
  LogDevice mig;
  std::string parent = std::to_string(*gpu);
  if (at < index_device_.size() && index_device_[at] != SIZE_MAX) {
    parent = rows.device_id(index_device_[at]);
    mig.name = index_gpu_[at].name;
  }
  mig.parent_id = parent;
  mig.text = fmt::format("{}/gi{}/ci{}", parent, *gi, *ci);
  mig.name += fmt::format("{}MIG {}/{}", mig.name.empty() ? "" : " ", *gi, *ci);
  const std::size_t device = rows.device(mig);
  migs_.push_back({*gpu, *gi, *ci, device});
  if (total) rows.total(time_, device, *total);
  if (used) rows.add(time_, rows.device_series(device), *used);
}

void Table::read_process_row(std::string_view line, std::uint64_t number, LogRows& rows) {
  const auto cells = cells_of(line);
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
  // The last word is the memory, with a space before it.
  const std::size_t gap = rest.find_last_of(" \t");
  const std::string_view memory = gap == std::string_view::npos ? rest : rest.substr(gap + 1);
  const std::string_view name = gap == std::string_view::npos ? std::string_view{} : trim(rest.substr(0, gap));
  std::uint64_t bytes = 0;
  const logtext::Amount amount = logtext::read_amount(memory, kBytesPerMiB, bytes);
  if (amount == logtext::Amount::bad)
    return rows.skip(number, fmt::format("no memory at the end of the process row '{}'", logtext::excerpt(whole_row)));

  const auto at = static_cast<std::size_t>(*gpu);
  std::size_t device = at < index_device_.size() ? index_device_[at] : SIZE_MAX;
  for (const Mig& mig : migs_)
    if (gi && ci && mig.gpu == *gpu && mig.gi == *gi && mig.ci == *ci) device = mig.device;
  if (device == SIZE_MAX)
    return rows.skip(number, fmt::format("a process on GPU {}, which this dump does not list", *gpu));
  const bool has_bytes = amount == logtext::Amount::read;
  if (!has_bytes)
    rows.warn(
        "nvidia-smi shows N/A for the memory of processes (Windows, or no permission): only the GPUs' use is analysed");
  const std::size_t process =
      rows.process(device, *pid, name, logtext::same_letters(kind, "M+C") ? "MPS" : kind, {}, name, has_bytes);
  rows.seen(process, static_cast<double>(dump_));
  if (has_bytes) rows.add(time_, rows.process_series(process), bytes);
}

/// "GPU PID USER GPU-MEM %SM %CPU %MEM TIME COMMAND": versions differ in what stands before the command.
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
  std::string_view kind = take_word(row);
  const std::string_view user = take_word(row);
  const std::string_view memory = take_word(row);
  for (int i = 0; i < nvitop_between_; ++i) take_word(row);
  std::uint64_t bytes = 0;
  const logtext::Amount amount =
      memory == "WDDM:N/A" ? logtext::Amount::missing : logtext::read_amount(memory, kBytesPerMiB, bytes);
  if (!gpu || *gpu < 0 || !pid || amount == logtext::Amount::bad)
    return rows.skip(number,
                     fmt::format("no GPU, pid and memory in the process row '{}'", logtext::excerpt(whole_row)));
  const auto at = static_cast<std::size_t>(*gpu);
  const std::size_t device = at < index_device_.size() ? index_device_[at] : SIZE_MAX;
  if (device == SIZE_MAX)
    return rows.skip(number, fmt::format("a process on GPU {}, which this dump does not list", *gpu));
  if (kind == "X") kind = "C+G";
  const bool has_bytes = amount == logtext::Amount::read;
  const std::string_view command = trim(row);
  const std::size_t process = rows.process(device, *pid, command, kind, user, command, has_bytes);
  rows.seen(process, static_cast<double>(dump_));
  if (has_bytes) rows.add(time_, rows.process_series(process), bytes);
}

int recognise(std::string_view head) {
  if (head.find("│ NVITOP ") != std::string_view::npos || head.find("| NVITOP ") != std::string_view::npos) return 95;
  if (head.find("Memory-Usage") != std::string_view::npos &&
      (head.find("| NVIDIA-SMI") != std::string_view::npos || head.find("|===") != std::string_view::npos))
    return 95;
  return head.find("| NVIDIA-SMI") != std::string_view::npos ? 80 : 0;
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  constexpr std::size_t kMostSamples = 400;
  std::vector<std::string_view> alone;
  std::vector<std::string_view> in_text;
  std::string_view rest = head.text;
  while (!rest.empty() && alone.size() < kMostSamples) {
    const std::string_view line = trim(logtext::take_line(rest));
    if (line.empty() || is_of_table(line)) continue;
    const std::string_view text = stamp_text(line);
    Civil civil;
    if (has_date(text, civil) && trim(text.substr(civil.length)).empty()) {
      alone.push_back(text);
    } else if (alone.empty() && in_text.size() < kMostSamples) {
      const std::string_view stamp = find_stamp(line);
      if (has_date(stamp, civil)) in_text.push_back(stamp);
    }
  }
  const std::vector<std::string_view>& samples = alone.empty() ? in_text : alone;
  std::vector<std::string> assumptions;
  if (samples.empty()) {
    auto stamp = StampReader::of_readings(*head.options, assumptions);
    return std::make_unique<Table>(std::move(stamp), false, std::move(assumptions));
  }
  auto stamp = StampReader::detect(samples, {}, *head.options, *head.zone, assumptions);
  if (!stamp) return fail(std::move(stamp.error()));
  return std::make_unique<Table>(std::move(*stamp), alone.empty(), std::move(assumptions));
}

/// A dump begins with the first line after the previous tables, usually its time.
bool begins_record(std::string_view line, std::string_view before) {
  return !trim(line).empty() && !is_of_table(line) && (before.empty() || is_of_table(before));
}

}  // namespace

extern const LogFormatInfo table_log_format;
const LogFormatInfo table_log_format{"table", "nvidia-smi -l 10 > gpu.log (the plain table, dumped in a loop)",
                                     recognise, make, begins_record};

}  // namespace vramtrack
