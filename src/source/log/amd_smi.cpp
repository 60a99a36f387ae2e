// amd-smi, run with --watch or in a loop. With --watch each row has a time, in seconds since 1970.
//
//   TIMESTAMP  GPU  POWER  GPU_T  ...  VRAM_USED  VRAM_TOTAL       amd-smi monitor -v -w 1
//  1740686195    0    8 W  28 °C  ...      16 MB    30679 MB
//   timestamp,gpu,vram_used,vram_free,vram_total                   ... --csv;  amd-smi metric -m --csv has
//   1740686195,0,16,30663,30679                                    gpu,total_vram,used_vram,free_vram
//   [{"gpu": 0, "mem_usage": {"used_vram": {"value": 16, "unit": "MB"}, ...}}]      amd-smi metric -m --json
//   GPU: 0                                                         amd-smi metric -m
//       MEM_USAGE:
//           TOTAL_VRAM: 30679 MB
//           USED_VRAM: 16 MB
//   |   0       0       7   SPX/NPS1 | 0 %   N/A   283/196592 MB |        amd-smi
#include <fmt/format.h>

#include <algorithm>

#include "core/pci_address.hpp"
#include "source/log/columns.hpp"
#include "source/log/dump_readings.hpp"
#include "source/log/json.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtext::excerpt;
using logtext::take_word;
using logtext::trim;
using Field = DumpReadings::Field;

/// "VRAM_USED", "used_vram", ...: monitor and metric name them differently.
std::optional<Field> field_named(std::string_view title) {
  const std::string name = logtext::lower(title);
  if (name == "vram_used" || name == "used_vram") return Field::used;
  if (name == "vram_free" || name == "free_vram") return Field::free;
  if (name == "vram_total" || name == "total_vram") return Field::total;
  return std::nullopt;
}

/// A unit written after a value as a separate word, as in "8 W" and "N/A Mb/s".
bool is_unit(std::string_view word) {
  static constexpr std::string_view kUnits[] = {"W", "mW", "C",  "\u00b0C", "%",    "MHz",  "GHz",  "mV",  "V",
                                                "J", "KB", "MB", "GB",      "TB",   "KiB",  "MiB",  "GiB", "RPM",
                                                "s", "ms", "ns", "Mb/s",    "Gb/s", "GB/s", "MB/s", "GT/s"};
  return std::find(std::begin(kUnits), std::end(kUnits), word) != std::end(kUnits);
}

class AmdSmi final : public DumpParser<JsonParser> {
 public:
  using DumpParser::DumpParser;

 private:
  void read_text(std::string_view text, std::uint64_t line, bool whole, LogRows& rows) override {
    rows.line = line;
    if (text.front() == '|' || text.front() == '+') return read_box_row(text, whole, rows);
    if (read_header(text)) return;
    if (delimiter_ == ',' && text.find(',') != std::string_view::npos) return read_csv_row(text, whole, line, rows);
    if (read_member(text, whole, rows)) return;
    if (delimiter_ == ' ' && logtext::is_digit(text.front()) && text.find(' ') != std::string_view::npos &&
        dated_text(text).empty())
      return read_table_row(text, whole, line, rows);
    readings_.take_time(text, rows);
  }

  /// The titles of a table or of a CSV.
  bool read_header(std::string_view text) {
    const char delimiter = text.find(',') != std::string_view::npos ? ',' : ' ';
    std::vector<std::string_view> fields;
    if (delimiter == ',')
      split_fields(text, ',', fields);
    else
      for (std::string_view word = take_word(text); !word.empty(); word = take_word(text)) fields.push_back(word);
    const auto is = [](std::string_view name) {
      return [name](std::string_view field) { return logtext::same_letters(field, name); };
    };
    if (std::none_of(fields.begin(), fields.end(), is("gpu")) || fields.size() < 2) return false;
    if (std::none_of(fields.begin(), fields.end(),
                     [](std::string_view f) { return field_named(f) || logtext::same_letters(f, "vram_usage"); }))
      return false;
    titles_.clear();
    for (const std::string_view field : fields) titles_.push_back(logtext::lower(field));
    delimiter_ = delimiter;
    return true;
  }

  /// The values of one row, under these titles.
  void read_values(std::string_view text, std::uint64_t line, LogRows& rows) {
    std::optional<LogDevice> gpu;
    std::optional<Timestamp> time;
    for (std::size_t i = 0; i < titles_.size(); ++i) {
      if (titles_[i] == "gpu") gpu = device_numbered(values_[i]);
      if (titles_[i] == "timestamp") time = read_epoch(values_[i]);
    }
    // Each partition of a GPU has its own rows.
    const auto xcp = std::find(titles_.begin(), titles_.end(), "xcp");
    if (gpu && xcp != titles_.end()) {
      const std::string& partition = values_[static_cast<std::size_t>(xcp - titles_.begin())];
      if (partition != "0" && !logtext::is_missing(partition)) {
        gpu->text = fmt::format("{}/xcp{}", *gpu->index, partition);
        gpu->index.reset();
      }
    }
    if (!gpu) return rows.skip(line, fmt::format("no index of a GPU in '{}'", excerpt(text)));
    if (own_times_ && !time) return rows.skip(line, fmt::format("no timestamp in '{}'", excerpt(text)));
    for (std::size_t i = 0; i < titles_.size(); ++i) {
      if (titles_[i] == "vram_usage")
        readings_.set_pair(own_times_ ? time : std::nullopt, *gpu, values_[i], rows);
      else if (const auto field = field_named(titles_[i]))
        set(*gpu, time, *field, values_[i], line, rows);
    }
  }

  void read_csv_row(std::string_view text, bool whole, std::uint64_t line, LogRows& rows) {
    if (!whole) return rows.skip(line, "truncated last line");
    std::vector<std::string_view> fields;
    split_fields(text, ',', fields);
    if (fields.size() != titles_.size())
      return rows.skip(line, fmt::format("{} fields where the header has {}", fields.size(), titles_.size()));
    values_.assign(fields.begin(), fields.end());
    read_values(text, line, rows);
  }

  /// A value is a word and possibly its unit; "0.3/ 192.0 GB" is one value.
  void read_table_row(std::string_view text, bool whole, std::uint64_t line, LogRows& rows) {
    if (!whole) return rows.skip(line, "truncated last line");
    values_.clear();
    std::string_view rest = text;
    std::string_view word = take_word(rest);
    while (!word.empty() && values_.size() < titles_.size()) {
      std::string value(word);
      word = take_word(rest);
      if (value.back() == '/' || (!word.empty() && word.front() == '/')) {
        value += word;
        word = take_word(rest);
      }
      if (is_unit(word)) {
        value += ' ';
        value += word;
        word = take_word(rest);
      }
      values_.push_back(std::move(value));
    }
    if (values_.size() != titles_.size() || !word.empty())
      return rows.skip(line, fmt::format("'{}' does not fit the {} titles above it", excerpt(text), titles_.size()));
    read_values(text, line, rows);
  }

  /// "GPU: 0", "USED_VRAM: 16 MB"; false when the line is not a member of such a list.
  bool read_member(std::string_view text, bool whole, LogRows& rows) {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) return false;
    const std::string_view name = text.substr(0, colon);
    const std::string_view value = trim(text.substr(colon + 1));
    if (name == "GPU") {
      member_gpu_ = device_numbered(value);
      member_time_.reset();
      return true;
    }
    if (name == "TIMESTAMP") {
      member_time_ = read_epoch(value);
      return true;
    }
    const auto field = field_named(name);
    if (!field || !member_gpu_) return false;
    if (!whole)
      rows.skip(rows.line, "truncated last line");
    else
      set(*member_gpu_, member_time_, *field, value, rows.line, rows);
    return true;
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

  void read_object(const JsonValue& object, std::uint64_t line, LogRows& rows) override {
    // Newer versions put the list of GPUs into an object.
    const JsonValue* const list = object.find("gpu_data");
    if (list == nullptr) return read_gpu(object, object, line, rows);
    for (const auto& [ignored, gpu] : list->members()) read_gpu(gpu, object, line, rows);
  }

  void read_gpu(const JsonValue& object, const JsonValue& around, std::uint64_t line, LogRows& rows) {
    const JsonValue* const index = object.find("gpu");
    if (index == nullptr || !index->whole()) return;  // the CPU part
    const auto gpu = device_numbered(index->text());
    if (!gpu) return rows.skip(line, "\"gpu\" is not the index of a GPU");
    std::optional<Timestamp> time;
    for (const JsonValue* level : {&object, &around})
      if (const JsonValue* const stamp = level->find("timestamp"); !time && stamp != nullptr)
        time = read_epoch(stamp->text());
    if (own_times_ && !time) return rows.skip(line, "no \"timestamp\" in the object");
    const JsonValue* const nested = object.find("mem_usage");
    const JsonValue& values = nested != nullptr && nested->is_object() ? *nested : object;
    for (const auto& [name, value] : values.members()) {
      const auto field = field_named(name);
      if (!field) continue;
      const JsonValue* const wrapped = value.find("value");
      const JsonValue* const unit = value.find("unit");
      std::string text = wrapped != nullptr ? wrapped->text() : value.text();
      if (wrapped != nullptr && wrapped->is_number() && unit != nullptr) text += " " + unit->text();
      set(*gpu, time, *field, text, line, rows);
    }
  }

  static std::optional<Timestamp> read_epoch(std::string_view text) {
    const auto seconds = logtext::whole_number<std::int64_t>(trim(text));
    if (!seconds || *seconds < 900'000'000 || *seconds > 4'100'000'000) return std::nullopt;
    return Timestamp{std::chrono::seconds{*seconds}};
  }

  /// MB is 2^20 bytes here, too: the tool divides the driver's bytes by 1024 twice.
  void set(const LogDevice& gpu, const std::optional<Timestamp>& time, Field field, std::string_view value,
           std::uint64_t line, LogRows& rows) {
    readings_.set_text(own_times_ ? time : std::nullopt, gpu, field, value, kBytesPerMiB, line, rows);
  }

  enum class Box : std::uint8_t { other, gpus };

  char delimiter_ = '\0';
  std::vector<std::string> titles_;
  std::vector<std::string> values_;
  std::optional<LogDevice> member_gpu_;
  std::optional<Timestamp> member_time_;
  Box box_ = Box::other;
  std::string box_bus_, box_name_;
};

/// The names of used memory in all layouts but the overview.
bool names_used(std::string_view head) {
  for (const std::string_view name : {"VRAM_USED", "vram_used", "USED_VRAM", "used_vram", "VRAM_USAGE", "vram_usage"})
    if (head.find(name) != std::string_view::npos) return true;
  return false;
}

/// A header that any tool could have written is amd-smi's if the rows have whole MB, the total and a time since 1970.
bool is_csv_of_it(std::string_view header, std::string_view rest) {
  std::vector<std::string_view> titles, fields;
  split_fields(header, ',', titles);
  bool has_used = false;
  std::size_t total = titles.size();
  for (std::size_t i = 0; i < titles.size(); ++i) {
    const auto field = field_named(titles[i]);
    has_used |= field == Field::used;
    if (field == Field::total) total = i;
  }
  if (!has_used || total == titles.size()) return false;
  std::uint64_t most = 0;
  for (int rows = 0; rows < 64 && !rest.empty();) {
    const std::string_view line = trim(logtext::take_line(rest));
    if (line.find(',') == std::string_view::npos || line == trim(header)) continue;
    split_fields(line, ',', fields);
    if (fields.size() != titles.size()) return false;
    if (titles[0] == "timestamp" && (fields[0].size() != 10 || !logtext::whole_number<std::uint64_t>(fields[0])))
      return false;
    const auto mb = logtext::whole_number<std::uint64_t>(fields[total]);
    if (!mb && !logtext::is_missing(fields[total])) return false;
    most = std::max(most, mb.value_or(0));
    ++rows;
  }
  // Smaller numbers would be GB, larger ones bytes.
  return most >= 512 && most < 4'000'000;
}

int recognise(std::string_view head) {
  const std::string_view start = head.substr(0, 64 * kBytesPerKiB);
  if (start.find("AMD-SMI") != std::string_view::npos && start.find("Mem-Usage") != std::string_view::npos) return 94;
  if (start.find("MEM_USAGE:") != std::string_view::npos && start.find("USED_VRAM:") != std::string_view::npos)
    return 93;
  if (start.find("\"mem_usage\"") != std::string_view::npos && start.find("\"used_vram\"") != std::string_view::npos)
    return 93;
  // A table or CSV of amd-smi: its own names for the GPU and used-memory columns.
  for (std::string_view rest = start; !rest.empty();) {
    const std::string_view line = trim(logtext::take_line(rest));
    if (!names_used(line)) continue;
    const std::string low = logtext::lower(line);
    if ((line.starts_with("gpu,") || line.starts_with("timestamp,gpu,")) && is_csv_of_it(line, rest)) return 92;
    const bool has_units = rest.find(" MB") != std::string_view::npos || rest.find(" GB") != std::string_view::npos;
    if (has_units &&
        (line.starts_with("GPU ") || (line.starts_with("TIMESTAMP ") && line.find(" GPU ") != std::string_view::npos)))
      return 92;
    if (low.find("\"vram_used\":") != std::string::npos && start.find("\"gpu\":") != std::string_view::npos) return 92;
  }
  return 0;
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  if (!names_used(head.text) && head.text.find("Mem-Usage") == std::string_view::npos)
    return fail("this amd-smi log does not have the memory; record it with amd-smi monitor --vram-usage --watch 1");
  // A title or a member, before the values.
  const bool own_times = head.text.find("TIMESTAMP") != std::string_view::npos ||
                         head.text.find("timestamp,gpu") != std::string_view::npos ||
                         head.text.find("\"timestamp\"") != std::string_view::npos;
  return make_dump_parser<AmdSmi>(head, {}, own_times);
}

}  // namespace

extern const LogFormatInfo amd_smi_log_format;
const LogFormatInfo amd_smi_log_format{
    "amd-smi", "amd-smi monitor --vram-usage --watch 1 > gpu.log (or amd-smi metric --mem-usage; --csv or --json)",
    recognise, make};

}  // namespace vramtrack
