// Metrics of a training run as JSON objects, one per line or in an array, each with a time: wandb's system metrics
// (wandb-events.jsonl; history(stream="events") of its API), home-made loggers, and what run_file.cpp makes of binary
// .wandb and TensorBoard files.
//
//   {"_timestamp": 1772359200.5, "system.gpu.0.memoryAllocatedBytes": 5080350720, "system.gpu.0.memoryAllocated": 19.7}
//   {"time": "2026-03-01T10:00:00Z", "gpu0_mem_used_mib": 4845, "loss": 0.3}
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "source/log/columns.hpp"
#include "source/log/dump_readings.hpp"
#include "source/log/json_parser.hpp"
#include "source/log/recording.hpp"
#include "source/log/scalar_metric.hpp"
#include "source/log/stamp.hpp"
#include "source/log/text.hpp"
#include "source/log/unit.hpp"

namespace vramtrack {
namespace {

/// Objects of the head from which a parser learns the keys.
constexpr std::size_t kSurveyed = 4000;

/// What the head shows: the key of the time, and the metrics that are memory.
struct Survey {
  std::string time_key;
  StampReader::Title time_title;
  std::vector<std::string> times;
  std::map<std::string, double> most;        ///< by key: its largest value
  std::map<std::string, bool> has_fraction;  ///< by key
};

/// Collects the objects of a text.
class Objects final : public JsonParser {
 public:
  std::vector<JsonValue> found;
  [[nodiscard]] bool clock_is_relative() const override { return true; }

 private:
  void read_object(const JsonValue& object, std::uint64_t /*line*/, LogRows& /*rows*/) override {
    if (found.size() < kSurveyed) found.push_back(object);
  }
};

std::vector<JsonValue> objects_of(std::string_view text) {
  Catalog catalog;
  DeviceRoster roster;
  LogRows rows(catalog, roster, "head", std::nullopt);
  Objects objects;
  objects.parse(text, 1, false, rows);
  return std::move(objects.found);
}

Survey survey(const std::vector<JsonValue>& objects) {
  Survey out;
  int best = 0;
  for (const JsonValue& object : objects)
    for (const auto& [key, value] : object.members()) {
      const Column column = classify_column(key);
      const int rank = column.role == ColumnRole::time ? column.rank : column.role == ColumnRole::step ? 1 : 0;
      if (rank <= best || value.text().empty()) continue;
      best = rank;
      out.time_key = key;
      out.time_title.unit_ns = column.unit_ns;
      out.time_title.step = column.role == ColumnRole::step;
    }
  for (const JsonValue& object : objects) {
    bool has_metric = false;
    for (const auto& [key, value] : object.members()) {
      if (!value.is_number() || key == out.time_key || !scalar_metric(key)) continue;
      const double number = value.number();
      double& most = out.most[key];
      most = std::max(most, number);
      out.has_fraction[key] |= number != std::floor(number);
      has_metric = true;
    }
    if (const JsonValue* const time = object.find(out.time_key); has_metric && time != nullptr)
      out.times.push_back(time->text());
  }
  return out;
}

class Scalars final : public JsonParser {
 public:
  Scalars(StampReader stamp, std::string time_key, std::map<std::string, ScalarUse> uses,
          std::set<std::string> surveyed, std::vector<std::string> assumptions)
      : stamp_(std::move(stamp)),
        time_key_(std::move(time_key)),
        uses_(std::move(uses)),
        surveyed_(std::move(surveyed)) {
    assumptions_ = std::move(assumptions);
  }
  [[nodiscard]] bool clock_is_relative() const override { return stamp_.is_relative(); }
  [[nodiscard]] Scale scale() const override { return stamp_.scale(); }
  [[nodiscard]] bool clock_wraps() const override { return stamp_.wraps(); }

 private:
  void read_object(const JsonValue& object, std::uint64_t line, LogRows& rows) override {
    Timestamp time;
    bool has_time = false;
    tell_of_late_metrics(object, line, rows);
    // Totals first: the used memory of the same object is judged against them.
    for (const bool totals : {true, false})
      for (const auto& [key, value] : object.members()) {
        const auto use = uses_.find(key);
        if (use == uses_.end() || use->second.is_total != totals || value.is_null()) continue;
        if (!has_time) {
          const JsonValue* const at = object.find(time_key_);
          if (at == nullptr || !stamp_.read(at->text(), time))
            return rows.skip(line, fmt::format("no readable time under \"{}\"", time_key_));
          has_time = true;
          rows.row_time(time);
        }
        const double number = value.is_number() ? value.number() : -1;
        const double bytes = number * use->second.unit_bytes;
        if (!(bytes >= 0 && bytes < 1e18)) {
          rows.skip(line, fmt::format("no amount of memory under \"{}\"", key));
          continue;
        }
        add(time, use->second, static_cast<std::uint64_t>(std::llround(bytes)), rows);
      }
  }

  /// Warns of metrics that first appear later: the metrics to read were chosen from the beginning of the log.
  void tell_of_late_metrics(const JsonValue& object, std::uint64_t line, LogRows& rows) {
    constexpr std::size_t kMostKeys = 100'000;
    for (const auto& [key, value] : object.members())
      if (value.is_number() && known_.size() < kMostKeys && known_.insert(key).second && !surveyed_.contains(key) &&
          scalar_metric(key))
        rows.warn(fmt::format("{}:{}: the metric '{}' begins only here and is not read", rows.file(), line,
                              logtext::excerpt(key)));
  }

  void add(Timestamp time, const ScalarUse& use, std::uint64_t bytes, LogRows& rows) {
    const auto [it, fresh] = devices_.try_emplace(use.gpu);
    if (fresh) {
      LogDevice gpu;
      gpu.index = use.gpu;
      it->second = rows.device(gpu);
    }
    if (use.is_total)
      rows.total(time, it->second, bytes);
    else
      rows.add(time, rows.device_series(it->second), bytes);
  }

  StampReader stamp_;
  std::string time_key_;
  std::map<std::string, ScalarUse> uses_;
  std::set<std::string> surveyed_;  ///< the metrics that the head has
  std::set<std::string> known_;     ///< keys that were checked
  std::map<int, std::size_t> devices_;
};

bool is_json(std::string_view head) {
  const std::size_t first = head.find_first_not_of(" \t\r\n[");
  return first != std::string_view::npos && head[first] == '{';
}

int recognise(std::string_view head) {
  if (!is_json(head)) return 0;
  const Survey found = survey(objects_of(head));
  if (!found.most.empty() && !found.time_key.empty()) return 91;  // a table does not begin like this
  return head.starts_with(kRunFileMark) ? 60 : 6;                 // weak: the user of other JSON is told what it lacks
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  const std::vector<JsonValue> objects = objects_of(head.text);
  const Survey found = survey(objects);
  if (found.most.empty()) {
    std::string keys;
    std::map<std::string, bool> seen;
    for (const JsonValue& object : objects)
      for (const auto& [key, value] : object.members())
        if (value.is_number() && seen.size() < 12 && seen.try_emplace(key).second)
          keys += fmt::format("{}'{}'", keys.empty() ? "" : ", ", logtext::excerpt(key, 40));
    return fail(
        fmt::format("no GPU memory among the metrics ({}); expected a name such as system.gpu.0.memoryAllocatedBytes, "
                    "gpu_0_memory_used_mib or gpu0/vram_gb",
                    keys.empty() ? "none are numbers" : keys));
  }
  if (found.time_key.empty()) return fail("no time in the objects; expected a key such as _timestamp, time or step");
  const auto unit = unit_of(*head.options);
  if (!unit) return fail(unit.error());
  std::vector<ScalarSeen> seen;
  for (const auto& [key, most] : found.most) seen.push_back({key, most, found.has_fraction.at(key)});
  std::vector<std::string> assumptions;
  auto uses = choose_scalars(seen, *unit, head.options->capacity_bytes, assumptions);
  if (!uses) return fail(std::move(uses.error()));
  const std::vector<std::string_view> times(found.times.begin(), found.times.end());
  if (times.empty()) return fail(fmt::format("no time under \"{}\" beside the memory", found.time_key));
  auto stamp = StampReader::detect(times, found.time_title, *head.options, *head.zone, assumptions);
  if (!stamp) return fail(std::move(stamp.error()));
  std::set<std::string> surveyed;
  for (const auto& [key, most] : found.most) surveyed.insert(key);
  return std::make_unique<Scalars>(std::move(*stamp), found.time_key, std::move(*uses), std::move(surveyed),
                                   std::move(assumptions));
}

/// In an object printed over several lines, everything inside it is indented.
bool begins_record(std::string_view line, std::string_view /*before*/) {
  return line.starts_with('{');
}

}  // namespace

extern const LogFormatInfo scalars_log_format;
const LogFormatInfo scalars_log_format{
    "scalars", "JSON lines of metrics with a time (wandb's events, your own), .wandb files, TensorBoard event files",
    recognise, make, begins_record};

}  // namespace vramtrack
