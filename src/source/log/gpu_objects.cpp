// Objects of tools, one for each GPU: those of `gpustat --json` list the GPUs of a reading, and `nvtop -s` in a loop,
// or nvtop -l, writes arrays of them, without a time and without the number of the GPU.
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
#include "source/log/gpu_objects.hpp"

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

/// An amount, possibly in quotes; nullopt if absent, null or other text.
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

class GpuObjects final : public DumpParser<JsonParser> {
 public:
  /// `percent_only`: the log has no amount of used memory.
  GpuObjects(DumpClock clock, std::vector<std::string> assumptions, const GpuObjectKeys& keys,
             const std::optional<std::uint64_t>& capacity, bool percent_only)
      : DumpParser(std::move(clock), std::move(assumptions)),
        keys_(keys),
        capacity_(capacity),
        percent_only_(percent_only) {}

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
    // null: the processes could not be listed, so none is assumed to have ended.
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

  /// In whole per cent of the total, if the total is given.
  void read_percent(const LogDevice& gpu, const JsonValue& object, LogRows& rows) {
    const std::string text = text_at(object, keys_.percent);
    if (text.empty()) return;  // null: the driver does not report it
    logtext::Decimal percent;
    if (!logtext::read_decimal(text, percent) || std::string_view(text).substr(percent.length) != "%")
      return rows.skip(rows.line, fmt::format("no percentage in \"{}\": '{}'", keys_.percent, logtext::excerpt(text)));
    const auto total = bytes_at(object, keys_.total);
    if (total && percent.value() <= 100)
      readings_.set(gpu, Field::used, static_cast<std::uint64_t>(percent.value() / 100 * static_cast<double>(*total)),
                    rows);
    else if (percent_only_)
      readings_.set_percent(gpu, percent.value(), capacity_, rows);
  }

  GpuObjectKeys keys_;
  std::optional<std::uint64_t> capacity_;
  bool percent_only_ = false;
  int position_ = 0;  ///< of the next GPU in the current array
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

int recognise(std::string_view head) {
  const std::size_t first = head.find_first_not_of(" \t\r\n[");
  if (first == std::string_view::npos || head[first] != '{') return 0;
  const auto has = [head](std::string_view key) { return head.find(key) != std::string_view::npos; };
  if (!has("\"gpus\"") || !has("\"memory.used\"")) return 0;
  // Other programs list GPUs, too, and some borrow these keys: the format scalars then finds the clock.
  return has("\"query_time\"") ? 92 : 90;
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

}  // namespace

Result<std::unique_ptr<LogParser>> make_gpu_objects(const LogHead& head, const GpuObjectKeys& keys) {
  DumpTimes times;
  if (!keys.time.empty())
    times.find = [key = fmt::format("\"{}\"", keys.time)](std::string_view line) { return text_of(line, key); };
  const bool percent_only = head.text.find(fmt::format("\"{}\": \"", keys.used)) == std::string_view::npos;
  return make_dump_parser<GpuObjects>(head, times, keys, head.options->capacity_bytes, percent_only);
}

extern const LogFormatInfo gpustat_log_format;
const LogFormatInfo gpustat_log_format{"gpustat", "while sleep 1; do gpustat --json; done", recognise,
                                       [](const LogHead& head) { return make_gpu_objects(head, kGpustat); },
                                       begins_record};

}  // namespace vramtrack
