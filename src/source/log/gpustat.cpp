// gpustat --json: a stream of JSON objects, one per reading, pretty-printed or one per line.
#include <fmt/format.h>

#include "core/units.hpp"
#include "source/log/dumps.hpp"
#include "source/log/json.hpp"

namespace vramtrack {
namespace {

/// The number at `key` as a MiB count; nullopt when absent, null or not a number.
std::optional<std::uint64_t> mib_at(const JsonValue& object, std::string_view key) {
  const JsonValue* const value = object.find(key);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  const double mib = value->number();
  if (!(mib >= 0 && mib < 1e12)) return std::nullopt;
  return static_cast<std::uint64_t>(std::llround(mib * static_cast<double>(kBytesPerMiB)));
}

std::string text_at(const JsonValue& object, std::string_view key) {
  const JsonValue* const value = object.find(key);
  return value != nullptr && value->is_string() ? value->text() : std::string();
}

std::string command_line(const JsonValue& process) {
  std::string out;
  if (const JsonValue* const words = process.find("full_command"))
    for (const auto& [ignored, word] : words->members())
      if (word.is_string() && out.size() < 256) out += (out.empty() ? "" : " ") + word.text();
  return out;
}

class Gpustat final : public JsonParser {
 public:
  Gpustat(StampReader stamp, std::vector<std::string> assumptions) : stamp_(std::move(stamp)) {
    assumptions_ = std::move(assumptions);
  }

  [[nodiscard]] bool clock_is_relative() const override { return stamp_.is_relative(); }
  [[nodiscard]] bool clock_wraps() const override { return stamp_.wraps(); }
  [[nodiscard]] Scale scale() const override { return stamp_.scale(); }

 private:
  void read_object(const JsonValue& object, std::uint64_t line, LogRows& rows) override {
    const JsonValue* const gpus = object.find("gpus");
    if (gpus == nullptr || !gpus->is_array()) return rows.skip(line, "no \"gpus\" list in the object");
    Timestamp time;
    if (stamp_.kind() == StampReader::Kind::none) {
      time = stamp_.at_round(round_);
    } else if (!stamp_.read(text_at(object, "query_time"), time)) {
      return rows.skip(line, "no readable \"query_time\"");
    }
    ++round_;
    for (const auto& [ignored, gpu] : gpus->members()) {
      if (!gpu.is_object()) {
        rows.skip(line, "an entry of \"gpus\" is not an object");
        continue;
      }
      read_gpu(gpu, time, rows);
    }
  }

  void read_gpu(const JsonValue& gpu, Timestamp time, LogRows& rows) {
    LogDevice named;
    named.uuid = text_at(gpu, "uuid");
    named.name = text_at(gpu, "name");
    if (const JsonValue* const index = gpu.find("index"))
      if (const auto number = index->whole(); number && *number >= 0 && *number < 4096)
        named.index = static_cast<int>(*number);
    const std::size_t device = rows.device(named);
    if (const auto total = mib_at(gpu, "memory.total")) rows.total(time, device, *total);
    if (const auto used = mib_at(gpu, "memory.used")) rows.add(time, rows.device_series(device), *used);
    if (const JsonValue* const busy = gpu.find("utilization.gpu"))
      if (const auto percent = busy->whole(); percent && *percent >= 0 && *percent <= 100)
        rows.add(time, rows.further_series(device, Metric::device_busy, 0),
                 static_cast<std::uint64_t>(kBusyWhole / 100) * static_cast<std::uint64_t>(*percent));
    const JsonValue* const processes = gpu.find("processes");
    // null: gpustat could not list the processes, so none of them is taken to have ended.
    if (processes == nullptr || !processes->is_array()) return;
    for (const auto& [ignored, process] : processes->members()) {
      const JsonValue* const pid = process.find("pid");
      const std::int64_t number = pid == nullptr ? 0 : pid->whole().value_or(0);
      if (number <= 0 || number > UINT32_MAX) continue;
      const auto bytes = mib_at(process, "gpu_memory_usage");
      const std::size_t listed =
          rows.process(device, static_cast<std::uint32_t>(number), text_at(process, "command"), {},
                       text_at(process, "username"), command_line(process), bytes.has_value());
      rows.seen(listed, static_cast<double>(round_));
      if (bytes) rows.add(time, rows.process_series(listed), *bytes);
    }
    rows.end_unseen(device, static_cast<double>(round_), time);
  }

  StampReader stamp_;
  std::uint64_t round_ = 0;
};

int recognise(std::string_view head) {
  const std::size_t first = head.find_first_not_of(" \t\r\n[");
  if (first == std::string_view::npos || head[first] != '{') return 0;
  const auto has = [head](std::string_view key) { return head.find(key) != std::string_view::npos; };
  if (!has("\"gpus\"") || !has("\"memory.used\"")) return 0;
  // Other programs list GPUs, too, and some of them borrow its keys: theirs is the clock of the format scalars.
  return has("\"query_time\"") ? 92 : 90;
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  // The time stamps are strings after "query_time": collect enough of them to determine how they are written.
  std::vector<std::string_view> samples;
  constexpr std::string_view kKey = "\"query_time\"";
  std::string_view rest = head.text;
  for (std::size_t at = rest.find(kKey); at != std::string_view::npos && samples.size() < 200; at = rest.find(kKey)) {
    rest.remove_prefix(at + kKey.size());
    const std::size_t open = rest.find('"');
    if (open == std::string_view::npos) break;
    const std::size_t close = rest.find('"', open + 1);
    if (close == std::string_view::npos) break;
    samples.push_back(rest.substr(open + 1, close - open - 1));
  }
  std::vector<std::string> assumptions;
  auto stamp = StampReader::detect(samples, {}, *head.options, *head.zone, assumptions);
  if (!stamp) return fail(std::move(stamp.error()));
  return std::make_unique<Gpustat>(std::move(*stamp), std::move(assumptions));
}

/// In an object printed over several lines, everything inside it is indented.
bool begins_record(std::string_view line, std::string_view /*before*/) {
  return line.starts_with('{');
}

}  // namespace

extern const LogFormatInfo gpustat_log_format;
const LogFormatInfo gpustat_log_format{"gpustat", "while sleep 1; do gpustat --json; done", recognise, make,
                                       begins_record};

}  // namespace vramtrack
