// Tools' JSON objects, one per GPU: those of `gpustat --json` list the GPUs of a reading; `nvtop -s` in a loop, or
// nvtop -l, writes arrays of them, without a time and without the GPU's number.
//
//   {"query_time": "2026-03-01T10:00:00", "gpus": [{"index": 0, "uuid": "GPU-...", "memory.used": 4845, ...}]}
//
//   [
//     {
//      "device_name": "NVIDIA GeForce RTX 5060 Ti",
//      "mem_util": "35%",                       all that nvtop 3.2 prints of the memory
//      "mem_total": "21197180928",              from 3.3 on; 3.3.0 and 3.3.1 forget the commas from here on
//      "mem_used": "7585398784",
//      "processes" : [                          from 3.3.2 on, unless with -P
//        { "pid": "4242", "cmdline": "...", "kind": "compute", "user": "ada", "gpu_mem_bytes_alloc": "7340032", ... }
//      ]
//     }
//   ]
#include <fmt/format.h>

#include <cmath>

#include "core/units.hpp"
#include "source/log/dump_readings.hpp"
#include "source/log/json.hpp"
#include "source/log/recording.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtext::trim;

/// An amount, possibly in quotes; nullopt if it is absent, null or other text.
std::optional<double> number_at(const JsonValue& object, std::string_view key) {
  const JsonValue* const value = object.find(key);
  if (value == nullptr) return std::nullopt;
  constexpr double kMost = 1e18;
  if (value->is_number())
    return value->number() >= 0 && value->number() < kMost ? std::optional(value->number()) : std::nullopt;
  const auto whole = logtext::whole_number<std::uint64_t>(value->text());
  return whole ? std::optional(static_cast<double>(*whole)) : std::nullopt;
}

/// A text or a number as written, or the words of a list.
std::string text_at(const JsonValue& object, std::string_view key) {
  constexpr std::size_t kLongest = 256;
  const JsonValue* const value = object.find(key);
  if (value == nullptr) return {};
  std::string out = value->text();
  if (value->is_array())
    for (const auto& [ignored, word] : value->members())
      if (word.is_string() && out.size() < kLongest) out += (out.empty() ? "" : " ") + word.text();
  return out;
}

/// `object` with a comma inserted wherever a key follows a value on the previous line.
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

/// The names of the members in a tool's JSON; empty if it lacks one.
struct GpuObjectKeys {
  std::string_view gpus;  ///< the list of GPUs in a reading; empty: the objects are in arrays
  std::string_view time;  ///< a sibling of that list
  std::string_view name, uuid, index, used, total, free, busy;
  std::string_view percent;                               ///< used memory in per cent, if there is no amount
  std::string_view process, user, command, process_used;  ///< in the list "processes"
  double unit_bytes = 1;
};

class GpuObjects final : public DumpParser<JsonParser> {
 public:
  /// `percent_only`: the log has no amount of used memory.
  GpuObjects(DumpClock clock, std::vector<std::string> assumptions, const GpuObjectKeys& keys, bool percent_only)
      : DumpParser(std::move(clock), std::move(assumptions)), keys_(keys), percent_only_(percent_only) {}

 private:
  [[nodiscard]] bool begins_lines() const override { return keys_.gpus.empty(); }
  [[nodiscard]] bool is_own(std::string_view object) const override {
    return !keys_.gpus.empty() || object.find(keys_.name) != std::string_view::npos;
  }
  void read_text(std::string_view text, std::uint64_t line, bool whole, LogRows& rows) override {
    if (!keys_.gpus.empty()) return JsonParser::read_text(text, line, whole, rows);
    readings_.take_time(text, rows);  // anything else is ignored
  }
  void end_array(LogRows& rows) override {
    readings_.end_dump(rows);
    position_ = 0;
  }
  [[nodiscard]] std::string mended(std::string_view object) const override { return with_commas(object); }

  void read_object(const JsonValue& object, std::uint64_t line, LogRows& rows) override {
    rows.line = line;
    if (keys_.gpus.empty()) return object.find(keys_.name) != nullptr ? read_gpu(object, rows) : void();
    const JsonValue* const gpus = object.find(keys_.gpus);
    if (gpus == nullptr || !gpus->is_array())
      return rows.skip(line, fmt::format("no \"{}\" list in the object", keys_.gpus));
    if (Timestamp time; !readings_.clock().counts()) {
      if (!readings_.read_time(text_at(object, keys_.time), time))
        return rows.skip(line, fmt::format("no readable \"{}\"", keys_.time));
      readings_.begin_at(time, rows);
    }
    for (const auto& [ignored, gpu] : gpus->members()) {
      if (gpu.is_object())
        read_gpu(gpu, rows);
      else
        rows.skip(line, fmt::format("an entry of \"{}\" is not an object", keys_.gpus));
    }
    end_array(rows);
  }

  [[nodiscard]] std::optional<std::uint64_t> bytes_at(const JsonValue& object, std::string_view key) const {
    const auto number = number_at(object, key);
    if (!number || *number * keys_.unit_bytes >= 1e18) return std::nullopt;
    return static_cast<std::uint64_t>(std::llround(*number * keys_.unit_bytes));
  }

  void read_gpu(const JsonValue& object, LogRows& rows) {
    constexpr double kMostIndex = 4095;
    LogDevice gpu;
    gpu.name = text_at(object, keys_.name);
    gpu.uuid = text_at(object, keys_.uuid);
    if (keys_.index.empty())
      gpu.index = position_++;
    else if (const auto index = number_at(object, keys_.index); index && *index <= kMostIndex)
      gpu.index = static_cast<int>(*index);
    readings_.see(gpu, rows);
    for (const auto& [key, field] :
         {std::pair(keys_.total, Field::total), std::pair(keys_.used, Field::used), std::pair(keys_.free, Field::free)})
      if (const auto bytes = bytes_at(object, key)) readings_.set(gpu, field, *bytes, rows);
    readings_.set_busy(std::nullopt, gpu, text_at(object, keys_.busy), rows);
    if (!bytes_at(object, keys_.used)) read_percent(gpu, object, rows);
    // null: the processes could not be listed, so none of them is assumed to have ended.
    const JsonValue* const processes = object.find("processes");
    if (processes == nullptr || !processes->is_array()) return;
    for (const auto& [ignored, listed] : processes->members()) {
      const auto pid = number_at(listed, "pid");
      if (!pid || *pid < 1 || *pid > UINT32_MAX) continue;
      readings_.list_process(gpu,
                             {static_cast<std::uint32_t>(*pid),
                              text_at(listed, keys_.process),
                              {},
                              text_at(listed, keys_.user),
                              text_at(listed, keys_.command),
                              bytes_at(listed, keys_.process_used)},
                             rows);
    }
    readings_.list_is_complete(gpu, rows);
  }

  /// Reads it in whole per cent.
  void read_percent(const LogDevice& gpu, const JsonValue& object, LogRows& rows) {
    const std::string text = text_at(object, keys_.percent);
    if (text.empty()) return;  // null: the driver does not report it
    logtext::Decimal percent;
    if (!logtext::read_decimal(text, percent) || std::string_view(text).substr(percent.length) != "%")
      return rows.skip(rows.line, fmt::format("no percentage in \"{}\": '{}'", keys_.percent, logtext::excerpt(text)));
    if (percent_only_ || bytes_at(object, keys_.total)) readings_.set_percent(gpu, percent.value(), rows);
  }

  GpuObjectKeys keys_;
  bool percent_only_ = false;
  int position_ = 0;  ///< position of the next GPU in the current array
};

constexpr GpuObjectKeys kGpustat = [] {
  GpuObjectKeys keys;
  keys.gpus = "gpus";
  keys.time = "query_time";
  keys.name = "name";
  keys.uuid = "uuid";
  keys.index = "index";
  keys.used = "memory.used";
  keys.total = "memory.total";
  keys.busy = "utilization.gpu";
  keys.process = "command";
  keys.user = "username";
  keys.command = "full_command";
  keys.process_used = "gpu_memory_usage";
  keys.unit_bytes = kBytesPerMiB;
  return keys;
}();

Evidence recognise(std::string_view head) {
  const std::size_t first = head.find_first_not_of(" \t\r\n[");
  if (first == std::string_view::npos || head[first] != '{') return Evidence::none;
  const auto has = [head](std::string_view key) { return head.find(key) != std::string_view::npos; };
  if (!has("\"gpus\"") || !has("\"memory.used\"")) return Evidence::none;
  // Other programs list GPUs, too, and some borrow these keys: the format scalars then finds the clock.
  return has("\"query_time\"") ? Evidence::own_names : Evidence::named_rows;
}

/// The text of `key` in a line of JSON.
std::string_view text_of(std::string_view line, const std::string& key) {
  const std::size_t at = line.find(key);
  const std::size_t open = at == std::string_view::npos ? at : line.find('"', at + key.size());
  const std::size_t close = open == std::string_view::npos ? open : line.find('"', open + 1);
  return close == std::string_view::npos ? std::string_view{} : line.substr(open + 1, close - open - 1);
}

/// In an object printed over several lines, everything inside is indented.
bool begins_record(std::string_view line, std::string_view /*before*/) {
  return line.starts_with('{');
}

Result<std::unique_ptr<LogParser>> make_gpu_objects(const LogHead& head, const GpuObjectKeys& keys) {
  DumpTimes times;
  if (!keys.time.empty())
    times.find = [key = fmt::format("\"{}\"", keys.time)](std::string_view line) { return text_of(line, key); };
  const bool percent_only = head.text.find(fmt::format("\"{}\": \"", keys.used)) == std::string_view::npos;
  return make_dump_parser<GpuObjects>(head, times, keys, percent_only);
}

}  // namespace

const LogFormatInfo gpustat_log_format{"gpustat", "while sleep 1; do gpustat --json; done", recognise,
                                       [](const LogHead& head) { return make_gpu_objects(head, kGpustat); },
                                       begins_record};

// nvtop: its objects (see gpu_objects.cpp), and its screen. It shows GPUs side by side if the terminal is wide enough
// (github.com/Syllo/nvtop/issues/243):
//
//    Device 0 [NVIDIA A10] PCIe GEN 4@16x RX: 7.812 MiB/s TX: 1.953 MiB/s  Device 1 [NVIDIA A10] PCIe ...
//    GPU 210MHz  MEM 405MHz  TEMP  47°C FAN N/A% POW  15 / 150 W           GPU 400MHz ...
//    GPU[                     0%] MEM[|||||          2.486Gi/22.49Gi]      GPU[   0%] MEM[||||   3.721Gi/22.49Gi]
//    ...
//       PID     USER DEV    TYPE  GPU        GPU MEM    CPU  HOST MEM Command
//      4242      ada   0 Compute  87%   2245MiB  10%    99%   2101MiB python train.py
//
// It has no time. It lists only the processes that fit on the screen, so that one that is not listed may still
// exist.
namespace {

constexpr std::string_view kDevice = "Device ";
constexpr std::string_view kMemory = "MEM[";

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
      if (gpu >= devices_.size() || bar.find(']') == std::string_view::npos ||
          !readings_.set_pair(std::nullopt, devices_[gpu], figures, rows))
        return rows.skip(number, "no device, or no used and total memory, beside 'MEM['");
    }
  }

  bool read_process(std::string_view line, LogRows& rows) {
    std::string_view rest = line;
    const auto pid = logtext::whole_number<std::uint32_t>(logtext::take_word(rest));
    logtext::take_word(rest);  // skips the user
    LogDevice gpu;
    gpu.index = logtext::whole_number<int>(logtext::take_word(rest));
    if (!pid || *pid == 0 || !gpu.index) return false;
    // The columns are GPU MEM, HOST MEM and the command, with percentages or "N/A" between them.
    std::optional<std::uint64_t> bytes;
    for (int sizes = 0; sizes < 2;) {
      const std::string_view word = logtext::take_word(rest);
      if (word.empty()) return false;
      std::uint64_t size = 0;
      bool has_unit = false;
      if (logtext::read_amount(word, 1, size, false, &has_unit) != logtext::Amount::read || !has_unit) continue;
      if (sizes++ == 0) bytes = size;
    }
    readings_.list_process(gpu, {*pid, std::string(trim(rest)), {}, {}, {}, bytes}, rows);
    return true;
  }

  std::vector<LogDevice> devices_;  ///< GPUs in the last line of names, in its order
  bool in_processes_ = false;
};

bool has_nvtop_screen(std::string_view head) {
  const std::size_t device = head.find("Device 0 [");
  const std::size_t gpu = device == std::string_view::npos ? device : head.find("GPU[", device);
  return gpu != std::string_view::npos && head.find(kMemory, gpu) != std::string_view::npos;
}

constexpr GpuObjectKeys kObjects = [] {
  GpuObjectKeys keys;
  keys.name = "device_name";
  keys.used = "mem_used";
  keys.total = "mem_total";
  keys.free = "mem_free";
  keys.busy = "gpu_util";
  keys.percent = "mem_util";
  keys.process = "cmdline";
  keys.user = "user";
  keys.process_used = "gpu_mem_bytes_alloc";
  return keys;
}();

bool has_objects(std::string_view head) {
  for (const std::string_view key : {"\"device_name\": ", "\"gpu_clock\": ", "\"mem_util\": "})
    if (head.find(key) == std::string_view::npos) return false;
  return true;
}

Evidence recognise_nvtop(std::string_view head) {
  return has_objects(head) || has_nvtop_screen(head) ? Evidence::own_mark : Evidence::none;
}

Result<std::unique_ptr<LogParser>> make_nvtop(const LogHead& head) {
  if (!has_objects(head.text) && has_nvtop_screen(head.text)) return make_dump_parser<NvtopScreens>(head, {});
  return make_gpu_objects(head, kObjects);
}

}  // namespace

const LogFormatInfo nvtop_log_format{.name = "nvtop",
                                     .help = "while sleep 5; do date; nvtop -s; done",
                                     .recognise = recognise_nvtop,
                                     .make = make_nvtop,
                                     .is_screen = true};

}  // namespace vramtrack
