// rocm-smi, dumped in a loop. It prints no time. Its JSON is read like any other (scalars). Three layouts:
//
//   GPU[0]  : VRAM Total Memory (B): 17163091968         rocm-smi --showmeminfo vram
//   GPU[0]  : VRAM Total Used Memory (B): 692142080
//   device,VRAM Total Memory (B),VRAM Total Used Memory (B)      ... --csv
//   card0,17163091968,692142080
//   GPU  Temp   AvgPwr  ...  PwrCap  VRAM%  GPU%         rocm-smi: the percentage only
//   0    31.0c  43.0W   ...  300.0W    4%   0%
#include <fmt/format.h>

#include <algorithm>

#include "source/log/columns.hpp"
#include "source/log/dump_readings.hpp"
#include "source/log/recording.hpp"
#include "source/log/text.hpp"

namespace vramtrack {

extern const LogFormatInfo scalars_log_format;

namespace {

using logtext::excerpt;
using logtext::trim;
using Field = DumpReadings::Field;

constexpr std::string_view kVram = "VRAM Total ";
constexpr std::string_view kUsed = "VRAM Total Used Memory (";
/// From rocm-smi --showmemuse. "GPU memory use (%)" of old versions is how busy the memory is.
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

/// "card0", "0".
std::optional<LogDevice> gpu_named(std::string_view name) {
  if (name.starts_with("card")) name.remove_prefix(4);
  return device_numbered(name);
}

class RocmSmi final : public DumpParser<LineReader> {
 public:
  /// `percent_only`: the log has no amount of used memory.
  RocmSmi(DumpClock clock, std::vector<std::string> assumptions, const LogOptions& options, bool percent_only)
      : DumpParser(std::move(clock), std::move(assumptions)),
        capacity_(options.capacity_bytes),
        percent_only_(percent_only) {}

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
      readings_.set_percent(gpu, percent.value(), capacity_, rows);
  }

  /// "GPU[0] : VRAM Total Memory (B): 17163091968"
  void read_figure(std::string_view text, std::uint64_t line, bool whole, LogRows& rows) {
    const std::size_t close = text.find(']');
    const std::size_t colon = text.find(':', std::min(close, text.size()));
    const std::size_t second = colon == std::string_view::npos ? colon : text.find("):", colon + 1);
    if (second == std::string_view::npos) return;
    const std::string_view title = text.substr(colon + 1, second - colon);
    if (!whole) return rows.skip(line, "truncated last line");
    if (const auto gpu = gpu_named(text.substr(4, close - 4))) set(*gpu, title, text.substr(second + 2), line, rows);
  }

  void read_csv_row(std::string_view text, std::uint64_t line, bool whole, LogRows& rows) {
    if (!whole) return rows.skip(line, "truncated last line");
    split_fields(text, ',', fields_);
    if (fields_.size() != titles_.size())
      return rows.skip(line, fmt::format("{} fields where the header has {}", fields_.size(), titles_.size()));
    auto gpu = gpu_named(fields_[0]);
    if (!gpu) return rows.skip(line, fmt::format("no GPU such as card0 in '{}'", excerpt(text)));
    for (std::size_t i = 1; i < titles_.size(); ++i)
      if (logtext::same_letters(titles_[i], "Card Series")) gpu->name = fields_[i];
    for (std::size_t i = 1; i < titles_.size(); ++i) set(*gpu, titles_[i], fields_[i], line, rows);
  }

  /// The values between may contain spaces, so the row is read from both ends.
  bool read_table_row(std::string_view text, bool whole, LogRows& rows) {
    const auto gpu = gpu_named(logtext::take_word(text));
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

  std::optional<std::uint64_t> capacity_;
  bool percent_only_ = false;
  bool in_table_ = false;
  std::vector<std::string> titles_;  ///< of the CSV
  std::vector<std::string_view> fields_;
};

/// Whether the head is not JSON.
bool has_lines(std::string_view head) {
  return head.find("GPU[") != std::string_view::npos || head.find("device,") != std::string_view::npos ||
         head.find(kSystem) != std::string_view::npos;
}

int recognise(std::string_view head) {
  if (head.find(kSystem) != std::string_view::npos) return 93;
  return has_lines(head) &&
                 (head.find(kUsed) != std::string_view::npos || head.find(kPercent) != std::string_view::npos)
             ? 92
             : 0;
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  if (head.text.find(kVram) == std::string_view::npos && head.text.find("VRAM%") == std::string_view::npos)
    return fail("this rocm-smi log does not have the memory; record it with rocm-smi --showmeminfo vram");
  if (!has_lines(head.text)) return scalars_log_format.make(head);
  const bool percent_only = head.text.find(kUsed) == std::string_view::npos;
  return make_dump_parser<RocmSmi>(head, {}, *head.options, percent_only);
}

}  // namespace

extern const LogFormatInfo rocm_smi_log_format;
const LogFormatInfo rocm_smi_log_format{
    "rocm-smi", "while sleep 5; do date; rocm-smi --showmeminfo vram; done (or with --csv or --json)", recognise, make};

}  // namespace vramtrack
