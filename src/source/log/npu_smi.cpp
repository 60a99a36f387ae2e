// The table of `npu-smi info` (Ascend), printed in a loop without a time. Two rows per chip, then the processes:
//
//   | NPU   Name    | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
//   | Chip          | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
//   | 0     910B3   | OK            | 96.7        32                0    / 0             |
//   | 0             | 0000:C1:00.0  | 0           0    / 0          60056/ 65536         |
//   | NPU     Chip  | Process id    | Process name                  | Process memory(MB) |
//   | 0       0     | 48988         | python                        | 13330              |
#include <fmt/format.h>

#include <algorithm>

#include "core/units.hpp"
#include "source/log/dump_readings.hpp"

namespace vramtrack {
namespace {

using logtext::take_word;
using logtext::trim;
using logtext::whole_number;

struct Pair {
  std::uint64_t used = 0, total = 0;
};

/// The last "used / total" in a cell with a total that is not zero: a chip has device memory or HBM, and prints 0 / 0
/// for the other.
std::optional<Pair> last_pair(std::string_view cell) {
  while (true) {
    const std::size_t slash = cell.find_last_of('/');
    if (slash == std::string_view::npos) return std::nullopt;
    std::string_view right = trim(cell.substr(slash + 1));
    const auto total = whole_number<std::uint64_t>(take_word(right));
    std::string_view left = trim(cell.substr(0, slash));
    const std::size_t gap = left.find_last_of(" \t");
    const auto used = whole_number<std::uint64_t>(gap == std::string_view::npos ? left : left.substr(gap + 1));
    if (used && total && *total > 0 && *total < (std::uint64_t{1} << 32) && *used <= *total) return Pair{*used, *total};
    cell = cell.substr(0, slash);
  }
}

class NpuSmi final : public DumpParser<LineReader> {
 public:
  using DumpParser::DumpParser;

 private:
  void read_line(std::string_view text, std::uint64_t /*number*/, bool whole, LogRows& rows) override {
    const std::string_view line = trim(text);
    if (line.empty()) return;
    if (line.front() == '+') return end_listing(rows);
    if (line.front() != '|') {
      readings_.take_time(line, rows);
      return;
    }
    if (!whole) return rows.skip(rows.line, "truncated last line");
    if (line.find("npu-smi") != std::string_view::npos) {
      readings_.end_dump(rows);
      npu_.reset();
      chips_.clear();
      listed_npus_.clear();
      in_processes_ = false;
      return;
    }
    if (line.find("Process id") != std::string_view::npos) {
      in_processes_ = true;
      return;
    }
    const auto cells = bar_cells(line);
    if (cells.empty()) return;
    if (in_processes_)
      read_process(cells, rows);
    else if (cells.size() >= 3)
      read_chip(cells, rows);
  }

  /// A separator line closes the list of an NPU's processes.
  void end_listing(LogRows& rows) {
    for (const auto& [npu, device] : chips_)
      if (std::find(listed_npus_.begin(), listed_npus_.end(), npu) != listed_npus_.end())
        readings_.list_is_complete(device, rows);
    listed_npus_.clear();
  }

  /// NPU and chip together identify a chip, because the bus id is not unique on cards with two chips.
  static LogDevice chip(int npu, int chip) {
    LogDevice device;
    if (chip == 0)
      device.index = npu;
    else
      device.text = fmt::format("{}/{}", npu, chip);
    return device;
  }

  void read_chip(const std::vector<std::string_view>& cells, LogRows& rows) {
    std::string_view first = cells[0];
    const auto number = whole_number<int>(take_word(first));
    if (!number || *number < 0 || *number > 4095) return;  // a row of titles
    // The upper row: "OK" or "Warning" where the lower one has a bus id, or "NA".
    if (cells[1].find(':') == std::string_view::npos && !logtext::is_missing(cells[1])) {
      npu_ = number;
      name_ = trim(first);
      return;
    }
    if (!npu_) return rows.skip(rows.line, "a chip without the row above it");
    const int npu = *npu_;
    LogDevice device = chip(npu, *number);
    device.name = name_;
    npu_.reset();
    const auto memory = last_pair(cells[2]);
    if (!memory)
      return rows.skip(rows.line, fmt::format("no memory such as '3416 / 65536' in '{}'", logtext::excerpt(cells[2])));
    chips_.emplace_back(npu, device);
    readings_.set(device, Field::used, memory->used * kBytesPerMiB, rows);
    readings_.set(device, Field::total, memory->total * kBytesPerMiB, rows);
  }

  void read_process(const std::vector<std::string_view>& cells, LogRows& rows) {
    constexpr std::string_view kNone = "No running processes found in NPU ";
    if (cells[0].starts_with(kNone)) {
      const auto npu = whole_number<int>(trim(cells[0].substr(kNone.size())));
      if (npu) listed_npus_.push_back(*npu);
      return;
    }
    if (cells.size() < 4) return;
    std::string_view first = cells[0];
    const auto npu = whole_number<int>(take_word(first));
    const auto chip_number = whole_number<int>(take_word(first));
    const auto pid = whole_number<std::uint32_t>(cells[1]);
    const auto mib = whole_number<std::uint32_t>(cells[3]);
    if (!npu || !chip_number || !pid || *npu < 0 || *chip_number < 0)
      return rows.skip(rows.line, fmt::format("no NPU, chip and pid in '{}'", logtext::excerpt(cells[0])));
    listed_npus_.push_back(*npu);
    DumpedProcess process{*pid, std::string(cells[2]), {}, {}};
    if (mib) process.bytes = *mib * kBytesPerMiB;
    readings_.list_process(chip(*npu, *chip_number), std::move(process), rows);
  }

  std::optional<int> npu_;  ///< NPU of the upper row
  std::string name_;
  std::vector<std::pair<int, LogDevice>> chips_;  ///< chips in this dump, with their NPU
  std::vector<int> listed_npus_;                  ///< NPUs with processes listed since the last separator line
  bool in_processes_ = false;
};

Evidence recognise(std::string_view head) {
  return head.find("| npu-smi ") != std::string_view::npos ? Evidence::own_mark : Evidence::none;
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  return make_dump_parser<NpuSmi>(head, {});
}

}  // namespace

const LogFormatInfo npu_smi_log_format{"npu-smi", "while sleep 5; do date; npu-smi info; done > npu.log", recognise,
                                       make};

}  // namespace vramtrack
