// nvtop -s, in a loop, or nvtop -l: one array of objects a reading, one object a GPU, without a time and without the
// number of the GPU:
//
//   [
//     {
//      "device_name": "NVIDIA GeForce RTX 5060 Ti",
//      ...
//      "mem_util": "35%",                       all that 3.2 prints of the memory
//      "mem_total": "21197180928",              from 3.3 on; 3.3.0 and 3.3.1 forget the commas from here on
//      "mem_used": "7585398784",
//      "mem_free": "13611782144",
//      "processes" : [                          from 3.3.2 on, unless with -P
//        { "pid": "4242", "cmdline": "...", "kind": "compute", "user": "ada", "gpu_mem_bytes_alloc": "7340032", ... }
//      ]
//     }
//   ]
#include <fmt/format.h>

#include <array>

#include "source/log/dump_readings.hpp"
#include "source/log/dumps.hpp"
#include "source/log/json.hpp"
#include "source/log/memory_words.hpp"
#include "source/log/recording.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtext::trim;
using Field = DumpReadings::Field;

constexpr std::array<std::pair<std::string_view, Field>, 3> kAmounts = {
    {{"mem_total", Field::total}, {"mem_used", Field::used}, {"mem_free", Field::free}}};
constexpr std::string_view kUsed = "\"mem_used\": \"";

/// The whole number in a string: nvtop puts quotes around every figure. nullopt when absent, null or another text.
std::optional<std::uint64_t> whole_at(const JsonValue& object, std::string_view key) {
  const JsonValue* const value = object.find(key);
  return value == nullptr ? std::nullopt : logtext::whole_number<std::uint64_t>(value->text());
}

std::string text_at(const JsonValue& object, std::string_view key) {
  const JsonValue* const value = object.find(key);
  return value != nullptr && value->is_string() ? value->text() : std::string();
}

/// `object` with a comma wherever a key follows a value on the line before it.
std::string with_commas(std::string_view object) {
  std::string out;
  while (!object.empty()) {
    const std::string_view line = logtext::take_line(object);
    const std::size_t last = out.find_last_not_of(" \t\r\n");
    constexpr std::string_view kNoComma = "{[,:";
    if (trim(line).starts_with('"') && last != std::string::npos && kNoComma.find(out[last]) == std::string_view::npos)
      out.insert(last + 1, 1, ',');
    out += line;
    out += '\n';
  }
  return out;
}

class Nvtop final : public JsonParser {
 public:
  /// `percent_only`: no amount of used memory is in the log.
  Nvtop(DumpClock clock, const LogOptions& options, bool percent_only, std::vector<std::string> assumptions)
      : readings_(std::move(clock)), capacity_(options.capacity_bytes), percent_only_(percent_only) {
    assumptions_ = std::move(assumptions);
  }

  void finish(LogRows& rows) override {
    JsonParser::finish(rows);
    readings_.finish(rows);
  }
  [[nodiscard]] bool clock_is_relative() const override { return readings_.clock().is_relative(); }
  [[nodiscard]] Scale scale() const override { return readings_.clock().scale(); }

 private:
  [[nodiscard]] bool begins_lines() const override { return true; }
  [[nodiscard]] bool is_own(std::string_view object) const override {
    return object.find("\"device_name\"") != std::string_view::npos;
  }
  void read_text(std::string_view text, std::uint64_t line, bool /*whole*/, LogRows& rows) override {
    rows.line = line;
    readings_.take_time(text, rows);  // anything else is ignored
  }
  void end_array(LogRows& rows) override {
    readings_.end_dump(rows);
    place_ = 0;
  }
  [[nodiscard]] std::string mended(std::string_view object) const override { return with_commas(object); }

  void read_object(const JsonValue& object, std::uint64_t line, LogRows& rows) override {
    rows.line = line;
    if (object.find("device_name") == nullptr) return;
    LogDevice gpu;
    gpu.index = place_++;
    gpu.name = text_at(object, "device_name");
    for (const auto& [key, field] : kAmounts)
      if (const auto bytes = whole_at(object, key)) readings_.set(gpu, field, *bytes, rows);
    readings_.set_busy(std::nullopt, gpu, text_at(object, "gpu_util"), rows);
    if (!whole_at(object, "mem_used")) read_percent(gpu, object, line, rows);
    const JsonValue* const processes = object.find("processes");
    if (processes == nullptr || !processes->is_array()) return;
    for (const auto& [ignored, process] : processes->members()) {
      const auto pid = whole_at(process, "pid");
      if (!pid || *pid == 0 || *pid > UINT32_MAX) continue;
      readings_.list_process(gpu, static_cast<std::uint32_t>(*pid), text_at(process, "cmdline"),
                             whole_at(process, "gpu_mem_bytes_alloc"), rows);
    }
    readings_.list_is_complete(gpu, rows);
  }

  /// "mem_util", in whole per cent of the total if that is told.
  void read_percent(const LogDevice& gpu, const JsonValue& object, std::uint64_t line, LogRows& rows) {
    const std::string text = text_at(object, "mem_util");
    if (text.empty()) return;  // null: the driver does not tell
    logtext::Decimal percent;
    if (!logtext::read_decimal(text, percent) || std::string_view(text).substr(percent.length) != "%")
      return rows.skip(line, fmt::format("no percentage in \"mem_util\": '{}'", logtext::excerpt(text)));
    const auto total = whole_at(object, "mem_total");
    if (total && percent.value() <= 100)
      readings_.set(gpu, Field::used, static_cast<std::uint64_t>(percent.value() / 100 * static_cast<double>(*total)),
                    rows);
    else if (percent_only_)
      readings_.set_percent(gpu, percent.value(), capacity_, rows);
  }

  DumpReadings readings_;
  std::optional<std::uint64_t> capacity_;
  bool percent_only_ = false;
  int place_ = 0;  ///< of the next GPU in the present array
};

// The screen of nvtop. GPUs stand side by side where the terminal is wide enough (github.com/Syllo/nvtop/issues/243):
//
//    Device 0 [NVIDIA A10] PCIe GEN 4@16x RX: 7.812 MiB/s TX: 1.953 MiB/s  Device 1 [NVIDIA A10] PCIe ...
//    GPU 210MHz  MEM 405MHz  TEMP  47°C FAN N/A% POW  15 / 150 W           GPU 400MHz ...
//    GPU[                     0%] MEM[|||||          2.486Gi/22.49Gi]      GPU[   0%] MEM[||||   3.721Gi/22.49Gi]
//    ...
//       PID     USER DEV    TYPE  GPU        GPU MEM    CPU  HOST MEM Command
//      4242      ada   0 Compute  87%   2245MiB  10%    99%   2101MiB python train.py
//
// There is no time in it. Only the processes that fit on the screen are listed, so that one that is missing may live
// on.
constexpr std::string_view kDevice = "Device ";
constexpr std::string_view kMemory = "MEM[";

/// "2.486Gi", "2245MiB".
std::optional<std::uint64_t> read_size(std::string_view text) {
  logtext::Decimal number;
  if (!logtext::read_decimal(text, number) || number.negative || number.length == text.size()) return std::nullopt;
  const std::uint64_t unit = written_unit(text.substr(number.length));
  if (unit == 0 || number.whole > (std::uint64_t{1} << 60) / unit) return std::nullopt;
  return static_cast<std::uint64_t>(number.value() * static_cast<double>(unit));
}

class NvtopScreens final : public DumpParser<LineReader> {
 public:
  using DumpParser::DumpParser;

 private:
  void read_line(std::string_view line, std::uint64_t number, bool whole, LogRows& rows) override {
    rows.line = number;
    if (trim(line).starts_with(kDevice)) {
      in_processes_ = false;
      return read_devices(line);
    }
    if (line.find(kMemory) != std::string_view::npos) return read_memory(line, number, rows);
    if (line.find("PID") != std::string_view::npos && line.find("GPU MEM") != std::string_view::npos) {
      in_processes_ = true;
      return;
    }
    if (in_processes_ && whole && read_process(line, rows)) return;
    readings_.take_time(line, rows);  // anything else is ignored
  }

  void read_devices(std::string_view line) {
    devices_.clear();
    for (std::size_t at = line.find(kDevice); at != std::string_view::npos; at = line.find(kDevice, at + 1)) {
      std::string_view rest = line.substr(at + kDevice.size());
      const auto index = logtext::whole_number<int>(logtext::take_word(rest));
      const std::size_t open = rest.find('[');
      const std::size_t close = rest.find(']');
      if (!index || open == std::string_view::npos || close == std::string_view::npos || close < open) continue;
      LogDevice gpu;
      gpu.index = *index;
      gpu.name = rest.substr(open + 1, close - open - 1);
      devices_.push_back(std::move(gpu));
    }
  }

  void read_memory(std::string_view line, std::uint64_t number, LogRows& rows) {
    std::size_t gpu = 0;
    for (std::size_t at = line.find(kMemory); at != std::string_view::npos; at = line.find(kMemory, at + 1), ++gpu) {
      const std::string_view bar = line.substr(at + kMemory.size());
      std::string_view figures = bar.substr(0, bar.find(']'));
      figures.remove_prefix(std::min(figures.find_first_of("0123456789"), figures.size()));
      const std::size_t slash = figures.find('/');
      const auto used = read_size(figures.substr(0, slash));
      const auto total = slash == std::string_view::npos ? std::nullopt : read_size(figures.substr(slash + 1));
      if (gpu >= devices_.size() || !used || !total || bar.find(']') == std::string_view::npos) {
        rows.skip(number, "no device, or no used and total memory, beside 'MEM['");
        return;
      }
      readings_.set(devices_[gpu], Field::used, *used, rows);
      readings_.set(devices_[gpu], Field::total, *total, rows);
    }
  }

  bool read_process(std::string_view line, LogRows& rows) {
    std::string_view rest = line;
    const auto pid = logtext::whole_number<std::uint32_t>(logtext::take_word(rest));
    logtext::take_word(rest);  // the user
    LogDevice gpu;
    gpu.index = logtext::whole_number<int>(logtext::take_word(rest));
    if (!pid || *pid == 0 || !gpu.index) return false;
    // GPU MEM, then HOST MEM, and behind that the command; between them there are percentages or "N/A".
    std::optional<std::uint64_t> bytes;
    for (int sizes = 0; sizes < 2;) {
      const std::string_view word = logtext::take_word(rest);
      if (word.empty()) return false;
      const auto size = read_size(word);
      if (!size) continue;
      if (sizes++ == 0) bytes = size;
    }
    readings_.list_process(gpu, *pid, trim(rest), bytes, rows);
    return true;
  }

  std::vector<LogDevice> devices_;  ///< of the last line of names, in its order
  bool in_processes_ = false;
};

bool has_nvtop_screen(std::string_view head) {
  const std::size_t device = head.find("Device 0 [");
  const std::size_t gpu = device == std::string_view::npos ? device : head.find("GPU[", device);
  return gpu != std::string_view::npos && head.find(kMemory, gpu) != std::string_view::npos;
}

Result<std::unique_ptr<LogParser>> make_nvtop_screens(const LogHead& head) {
  return make_dump_parser<NvtopScreens>(head, dated_text);
}

bool has_objects(std::string_view head) {
  for (const std::string_view key : {"\"device_name\": ", "\"gpu_clock\": ", "\"mem_util\": "})
    if (head.find(key) == std::string_view::npos) return false;
  return true;
}

int recognise(std::string_view head) {
  return has_objects(head) || has_nvtop_screen(head) ? 93 : 0;
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  if (!has_objects(head.text) && has_nvtop_screen(head.text)) return make_nvtop_screens(head);
  std::vector<std::string> assumptions;
  auto clock = DumpClock::detect(head, assumptions);
  if (!clock) return fail(std::move(clock.error()));
  const bool percent_only = head.text.find(kUsed) == std::string_view::npos;
  return std::make_unique<Nvtop>(std::move(*clock), *head.options, percent_only, std::move(assumptions));
}

}  // namespace

extern const LogFormatInfo nvtop_log_format;
const LogFormatInfo nvtop_log_format{"nvtop", "while sleep 5; do date; nvtop -s; done", recognise, make};

}  // namespace vramtrack
