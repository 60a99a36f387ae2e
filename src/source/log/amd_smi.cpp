// amd-smi, run in a loop. Its tables and JSON are read like any others (spaced, csv, scalars); this file reads the list
// of `amd-smi metric -m`, which has a time if it was run with --watch, and the overview:
//
//   GPU: 0
//       TIMESTAMP: 1740686195
//       MEM_USAGE:
//           TOTAL_VRAM: 30679 MB
//           USED_VRAM: 16 MB
//   |   0       0       7   SPX/NPS1 | 0 %   N/A   283/196592 MB |
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/pci_address.hpp"
#include "source/log/columns.hpp"
#include "source/log/dump_readings.hpp"
#include "source/log/recording.hpp"
#include "source/log/text.hpp"

namespace vramtrack {

namespace {

using logtext::take_word;
using logtext::trim;

class AmdSmi final : public DumpParser<LineReader> {
 public:
  using DumpParser::DumpParser;

 private:
  void read_line(std::string_view line, std::uint64_t number, bool whole, LogRows& rows) override {
    const std::string_view text = trim(line);
    if (text.starts_with('|')) return read_box_row(text, whole, rows);
    if (!read_member(text, number, whole, rows)) readings_.take_time(text, rows);
  }

  /// "GPU: 0", "USED_VRAM: 16 MB"; returns false if the line is not a member of such a list.
  bool read_member(std::string_view text, std::uint64_t line, bool whole, LogRows& rows) {
    static constexpr std::array<std::pair<std::string_view, Field>, 3> kFields = {
        {{"USED_VRAM", Field::used}, {"FREE_VRAM", Field::free}, {"TOTAL_VRAM", Field::total}}};
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) return false;
    const std::string_view name = text.substr(0, colon);
    const std::string_view value = trim(text.substr(colon + 1));
    if (name == "GPU") {
      gpu_ = device_numbered(value);
      return true;
    }
    if (name == "TIMESTAMP") return readings_.take(value, rows);
    for (const auto& [known, field] : kFields)
      if (gpu_ && name == known) {
        whole ? readings_.set_text(std::nullopt, *gpu_, field, value, kBytesPerMiB, line, rows)
              : rows.skip(line, "truncated last line");
        return true;
      }
    return false;
  }

  /// Reads the overview: a row with the PCI address and the name, then one with the index and the memory.
  void read_box_row(std::string_view text, bool whole, LogRows& rows) {
    if (text.find("AMD-SMI") != std::string_view::npos) {
      readings_.end_dump(rows);
      box_ = Box::gpus;
      return;
    }
    if (text.find("Processes:") != std::string_view::npos) box_ = Box::other;
    if (box_ == Box::other || text.size() < 2 || text.front() == '+' || !whole) return;
    const auto cells = bar_cells(text);
    if (cells.size() < 2) return;
    std::string_view left = cells[0];
    const std::string_view right = cells[1];
    const std::string_view first = take_word(left);
    if (std::string bus = pci_address_of(first); !bus.empty()) {
      box_bus_ = std::move(bus);
      box_name_ = trim(left);
      return;
    }
    auto gpu = device_numbered(first);
    if (!gpu || box_bus_.empty()) return;
    gpu->pci_bus_id = std::exchange(box_bus_, {});
    gpu->name = box_name_;
    // "0 %   N/A   283/196592 MB": the last value and its unit
    const std::size_t unit = right.find_last_of(' ');
    const std::size_t gap = unit == std::string_view::npos ? unit : right.find_last_of(' ', unit - 1);
    if (unit != std::string_view::npos && unit > 0)
      readings_.set_pair(std::nullopt, *gpu, right.substr(gap == std::string_view::npos ? 0 : gap + 1), rows);
  }

  enum class Box : std::uint8_t { other, gpus };

  std::optional<LogDevice> gpu_;  ///< from the member "GPU" above
  Box box_ = Box::other;
  std::string box_bus_, box_name_;
};

bool has_list(std::string_view head) {
  return head.find("MEM_USAGE:") != std::string_view::npos && head.find("USED_VRAM:") != std::string_view::npos;
}

Evidence recognise(std::string_view head) {
  const std::string_view start = head.substr(0, 64 * kBytesPerKiB);
  if (start.find("AMD-SMI") != std::string_view::npos && start.find("Mem-Usage") != std::string_view::npos)
    return Evidence::own_mark;
  return has_list(start) ? Evidence::own_mark : Evidence::none;
}

/// The time of a list, or of a line that has nothing else.
std::string_view time_in(std::string_view line) {
  constexpr std::string_view kTimestamp = "TIMESTAMP:";
  line = trim(line);
  return line.starts_with(kTimestamp) ? trim(line.substr(kTimestamp.size())) : dated_text(line);
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  if (has_list(head.text) || head.text.find("Mem-Usage") != std::string_view::npos)
    return make_dump_parser<AmdSmi>(head, {time_in});
  for (const LogFormatInfo* const general : {&csv_log_format, &spaced_log_format, &scalars_log_format})
    if (general->recognise(head.text) != Evidence::none) return general->make(head);
  return fail("this amd-smi log does not have the memory; record it with amd-smi monitor --vram-usage --watch 1");
}

}  // namespace

const LogFormatInfo amd_smi_log_format{
    "amd-smi", "amd-smi monitor --vram-usage --watch 1 > gpu.log (or amd-smi metric --mem-usage; --csv or --json)",
    recognise, make};

// rocm-smi, dumped in a loop. It prints no time. Its JSON is read like any other (scalars). Three layouts:
//
//   GPU[0]  : VRAM Total Memory (B): 17163091968         rocm-smi --showmeminfo vram
//   GPU[0]  : VRAM Total Used Memory (B): 692142080
//   device,VRAM Total Memory (B),VRAM Total Used Memory (B)      ... --csv
//   card0,17163091968,692142080
//   GPU  Temp   AvgPwr  ...  PwrCap  VRAM%  GPU%         rocm-smi: the percentage only
//   0    31.0c  43.0W   ...  300.0W    4%   0%
namespace {

using logtext::excerpt;
using Field = DumpReadings::Field;

constexpr std::string_view kVram = "VRAM Total ";
constexpr std::string_view kUsed = "VRAM Total Used Memory (";
/// In rocm-smi --showmemuse. "GPU memory use (%)" of old versions is how busy the memory is.
constexpr std::string_view kPercent = "GPU Memory Allocated (VRAM%)";
constexpr std::string_view kSystem = "ROCm System Management Interface";

/// "VRAM Total Used Memory (B)": whether it is the total or the used memory, and its unit. The visible part of the
/// memory ("VIS_VRAM Total ...") and the machine's memory ("GTT Total ...") are ignored.
std::optional<Field> read_title(std::string_view title, std::uint64_t& unit) {
  title = trim(title);
  const std::size_t open = title.find('(');
  const std::size_t close = title.find(')', std::min(open, title.size()));
  if (close == std::string_view::npos) return std::nullopt;
  unit = logtext::unit_bytes(title.substr(open + 1, close - open - 1));
  const std::string_view words = trim(title.substr(0, open));
  if (unit == 0) return std::nullopt;
  if (words == "VRAM Total Used Memory") return Field::used;
  return words == "VRAM Total Memory" ? std::optional(Field::total) : std::nullopt;
}

class RocmSmi final : public DumpParser<LineReader> {
 public:
  /// `percent_only`: the log has no amount of used memory.
  RocmSmi(DumpClock clock, std::vector<std::string> assumptions, bool percent_only)
      : DumpParser(std::move(clock), std::move(assumptions)), percent_only_(percent_only) {}

 private:
  void read_line(std::string_view written, std::uint64_t line, bool whole, LogRows& rows) override {
    const std::string_view text = trim(written);
    if (text.starts_with("GPU[")) return read_figure(text, line, whole, rows);
    if (text.starts_with("device,")) {
      split_fields(text, ',', fields_);
      titles_.assign(fields_.begin(), fields_.end());
      return;
    }
    if (text.starts_with("card") && text.find(',') != std::string_view::npos)
      return read_csv_row(text, line, whole, rows);
    if (text.find("VRAM%") != std::string_view::npos) {
      in_table_ = text.ends_with("GPU%");
      if (!in_table_) rows.skip(line, "the columns VRAM% and GPU% are not the last ones of the table");
      return;
    }
    if (text.find(kSystem) != std::string_view::npos || text.find("End of ROCm SMI Log") != std::string_view::npos) {
      readings_.end_dump(rows);
      in_table_ = false;
      return;
    }
    if (in_table_ && read_table_row(text, whole, rows)) return;
    readings_.take_time(text, rows);  // anything else is ignored
  }

  void set(const LogDevice& gpu, std::string_view title, std::string_view value, std::uint64_t line, LogRows& rows) {
    if (trim(title) == kPercent) return set_percent(gpu, value, rows);
    std::uint64_t unit = 0;
    if (const auto field = read_title(title, unit))
      readings_.set_text(std::nullopt, gpu, *field, value, unit, line, rows);
  }

  void set_percent(const LogDevice& gpu, std::string_view text, LogRows& rows) {
    text = trim(text);
    logtext::Decimal percent;
    if (percent_only_ && logtext::read_decimal(text, percent) &&
        (percent.length == text.size() || text.substr(percent.length) == "%"))
      readings_.set_percent(gpu, percent.value(), rows);
  }

  /// "GPU[0] : VRAM Total Memory (B): 17163091968"
  void read_figure(std::string_view text, std::uint64_t line, bool whole, LogRows& rows) {
    const std::size_t close = text.find(']');
    const std::size_t colon = text.find(':', std::min(close, text.size()));
    const std::size_t second = colon == std::string_view::npos ? colon : text.find("):", colon + 1);
    if (second == std::string_view::npos) return;
    const std::string_view title = text.substr(colon + 1, second - colon);
    if (!whole) return rows.skip(line, "truncated last line");
    if (const auto gpu = device_named(text.substr(4, close - 4))) set(*gpu, title, text.substr(second + 2), line, rows);
  }

  void read_csv_row(std::string_view text, std::uint64_t line, bool whole, LogRows& rows) {
    if (!whole) return rows.skip(line, "truncated last line");
    split_fields(text, ',', fields_);
    if (fields_.size() != titles_.size())
      return rows.skip(line, fmt::format("{} fields where the header has {}", fields_.size(), titles_.size()));
    auto gpu = device_named(fields_[0]);
    if (!gpu) return rows.skip(line, fmt::format("no GPU such as card0 in '{}'", excerpt(text)));
    for (std::size_t i = 1; i < titles_.size(); ++i)
      if (logtext::same_letters(titles_[i], "Card Series")) gpu->name = fields_[i];
    for (std::size_t i = 1; i < titles_.size(); ++i) set(*gpu, titles_[i], fields_[i], line, rows);
  }

  /// The values in between may contain spaces, so the row is read from both ends.
  bool read_table_row(std::string_view text, bool whole, LogRows& rows) {
    const auto gpu = device_named(logtext::take_word(text));
    const auto take_last = [&text] {
      text = trim(text);
      const std::size_t gap = text.find_last_of(" \t");
      const std::string_view word = gap == std::string_view::npos ? std::string_view{} : text.substr(gap + 1);
      text = text.substr(0, gap == std::string_view::npos ? 0 : gap);
      return word;
    };
    const std::string_view busy = take_last();
    const std::string_view held = take_last();
    if (!gpu || !whole || (!busy.ends_with('%') && !logtext::is_missing(busy))) return false;
    set_percent(*gpu, held, rows);
    return true;
  }

  bool percent_only_ = false;
  bool in_table_ = false;
  std::vector<std::string> titles_;  ///< titles of the CSV
  std::vector<std::string_view> fields_;
};

/// Whether the head is not JSON.
bool has_lines(std::string_view head) {
  return head.find("GPU[") != std::string_view::npos || head.find("device,") != std::string_view::npos ||
         head.find(kSystem) != std::string_view::npos;
}

Evidence recognise_rocm(std::string_view head) {
  if (head.find(kSystem) != std::string_view::npos) return Evidence::own_mark;
  return has_lines(head) &&
                 (head.find(kUsed) != std::string_view::npos || head.find(kPercent) != std::string_view::npos)
             ? Evidence::own_names
             : Evidence::none;
}

Result<std::unique_ptr<LogParser>> make_rocm(const LogHead& head) {
  if (head.text.find(kVram) == std::string_view::npos && head.text.find("VRAM%") == std::string_view::npos)
    return fail("this rocm-smi log does not have the memory; record it with rocm-smi --showmeminfo vram");
  if (!has_lines(head.text)) return scalars_log_format.make(head);
  const bool percent_only = head.text.find(kUsed) == std::string_view::npos;
  return make_dump_parser<RocmSmi>(head, {}, percent_only);
}

}  // namespace

const LogFormatInfo rocm_smi_log_format{
    .name = "rocm-smi",
    .help = "while sleep 5; do date; rocm-smi --showmeminfo vram; done (or with --csv or --json)",
    .recognise = recognise_rocm,
    .make = make_rocm,
    .is_screen = true};

}  // namespace vramtrack
