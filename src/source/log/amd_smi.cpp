// amd-smi, run in a loop. Its tables and JSON are read like any others (spaced, csv, scalars); here are the list of
// `amd-smi metric -m`, which has a time if it was run with --watch, and the overview:
//
//   GPU: 0
//       TIMESTAMP: 1740686195
//       MEM_USAGE:
//           TOTAL_VRAM: 30679 MB
//           USED_VRAM: 16 MB
//   |   0       0       7   SPX/NPS1 | 0 %   N/A   283/196592 MB |
#include <array>

#include "core/pci_address.hpp"
#include "source/log/dump_readings.hpp"
#include "source/log/text.hpp"

namespace vramtrack {

extern const LogFormatInfo csv_log_format;
extern const LogFormatInfo spaced_log_format;
extern const LogFormatInfo scalars_log_format;

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

  /// "GPU: 0", "USED_VRAM: 16 MB"; false when the line is not a member of such a list.
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

  /// The overview: a row with the PCI address and the name, and below it one with the index and the memory.
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

  std::optional<LogDevice> gpu_;  ///< of the member "GPU" above
  Box box_ = Box::other;
  std::string box_bus_, box_name_;
};

bool has_list(std::string_view head) {
  return head.find("MEM_USAGE:") != std::string_view::npos && head.find("USED_VRAM:") != std::string_view::npos;
}

int recognise(std::string_view head) {
  const std::string_view start = head.substr(0, 64 * kBytesPerKiB);
  if (start.find("AMD-SMI") != std::string_view::npos && start.find("Mem-Usage") != std::string_view::npos) return 94;
  return has_list(start) ? 93 : 0;
}

/// The time of a list, or that of a line with nothing else.
std::string_view time_in(std::string_view line) {
  constexpr std::string_view kTimestamp = "TIMESTAMP:";
  line = trim(line);
  return line.starts_with(kTimestamp) ? trim(line.substr(kTimestamp.size())) : dated_text(line);
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  if (has_list(head.text) || head.text.find("Mem-Usage") != std::string_view::npos)
    return make_dump_parser<AmdSmi>(head, {time_in});
  for (const LogFormatInfo* const general : {&csv_log_format, &spaced_log_format, &scalars_log_format})
    if (general->recognise(head.text) > 0) return general->make(head);
  return fail("this amd-smi log does not have the memory; record it with amd-smi monitor --vram-usage --watch 1");
}

}  // namespace

extern const LogFormatInfo amd_smi_log_format;
const LogFormatInfo amd_smi_log_format{
    "amd-smi", "amd-smi monitor --vram-usage --watch 1 > gpu.log (or amd-smi metric --mem-usage; --csv or --json)",
    recognise, make};

}  // namespace vramtrack
