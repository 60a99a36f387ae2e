// gpustat --json: a stream of JSON objects, each one reading, pretty-printed or one a line.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/units.hpp"
#include "source/log/dumps.hpp"
#include "source/log/json_parser.hpp"

namespace vramtrack {
namespace {

using nlohmann::json;

/// The number at `key` as a MiB count; nullopt when absent, null or not a number.
std::optional<std::uint64_t> mib_at(const json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number()) return std::nullopt;
  const double mib = it->get<double>();
  if (!(mib >= 0 && mib < 1e12)) return std::nullopt;
  return static_cast<std::uint64_t>(std::llround(mib * static_cast<double>(kBytesPerMiB)));
}

std::string text_at(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

std::string command_line(const json& process) {
  const auto it = process.find("full_command");
  std::string out;
  if (it != process.end() && it->is_array())
    for (const json& word : *it)
      if (word.is_string() && out.size() < 256) out += (out.empty() ? "" : " ") + word.get<std::string>();
  return out;
}

class Gpustat final : public JsonParser {
 public:
  Gpustat(StampReader stamp, std::vector<std::string> assumptions) : stamp_(std::move(stamp)) {
    assumptions_ = std::move(assumptions);
  }

  [[nodiscard]] bool clock_is_relative() const override { return stamp_.is_relative(); }

 private:
  void read_object(std::string_view text, std::uint64_t line, LogRows& rows) override {
    const json object = json::parse(text, nullptr, false);
    if (object.is_discarded() || !object.is_object()) return rows.skip(line, "not valid JSON");
    const auto gpus = object.find("gpus");
    if (gpus == object.end() || !gpus->is_array()) return rows.skip(line, "no \"gpus\" list in the object");
    Timestamp time;
    if (stamp_.kind() == StampReader::Kind::none) {
      time = stamp_.at_round(round_);
    } else if (!stamp_.read(text_at(object, "query_time"), time)) {
      return rows.skip(line, "no readable \"query_time\"");
    }
    ++round_;
    for (const json& gpu : *gpus) {
      if (!gpu.is_object()) {
        rows.skip(line, "an entry of \"gpus\" is not an object");
        continue;
      }
      read_gpu(gpu, time, rows);
    }
  }

  void read_gpu(const json& gpu, Timestamp time, LogRows& rows) {
    LogDevice named;
    named.uuid = text_at(gpu, "uuid");
    named.name = text_at(gpu, "name");
    const auto index = gpu.find("index");
    if (index != gpu.end() && index->is_number_integer()) {
      const auto number = index->get<std::int64_t>();
      if (number >= 0 && number < 4096) named.index = static_cast<int>(number);
    }
    const std::size_t device = rows.device(named);
    if (const auto total = mib_at(gpu, "memory.total")) rows.total(time, device, *total);
    if (const auto used = mib_at(gpu, "memory.used")) rows.add(time, rows.device_series(device), *used);
    const auto processes = gpu.find("processes");
    // null: gpustat could not list them, which ends none.
    if (processes == gpu.end() || !processes->is_array()) return;
    for (const json& process : *processes) {
      if (!process.is_object()) continue;
      const auto pid = process.find("pid");
      if (pid == process.end() || !pid->is_number_integer()) continue;
      const auto number = pid->get<std::int64_t>();
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
  return head.find("\"gpus\"") != std::string_view::npos ? 92 : 0;
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  // The stamps stand in strings after "query_time": enough of them to settle how they are written.
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
  if (samples.empty()) {
    auto stamp = StampReader::without_clock(*head.options, assumptions);
    return std::make_unique<Gpustat>(std::move(stamp), std::move(assumptions));
  }
  auto stamp = StampReader::detect(samples, {}, *head.options, *head.zone, assumptions);
  if (!stamp) return fail(std::move(stamp.error()));
  return std::make_unique<Gpustat>(std::move(*stamp), std::move(assumptions));
}

}  // namespace

extern const LogFormatInfo gpustat_log_format;
const LogFormatInfo gpustat_log_format{"gpustat", "while sleep 1; do gpustat --json; done", recognise, make};

}  // namespace vramtrack
