#include "report/otlp.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "core/json_text.hpp"

namespace vramtrack {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view kScope = "vramtrack";
constexpr int kCumulative = 2;

struct Sample {
  std::string_view name;
  Labels labels;
  double value = 0;

  [[nodiscard]] std::string label(std::string_view wanted) const {
    for (const auto& [name_of, value_of] : labels)
      if (name_of == wanted) return value_of;
    return {};
  }
};

enum class Kind : std::uint8_t { gauge, counter, up_down };

/// One of our metrics under its name in the semantic conventions.
struct Convention {
  std::string_view ours;
  std::string_view name;
  std::string_view unit;
  std::string_view description;
  Kind kind = Kind::gauge;
  std::pair<std::string_view, std::string_view> more = {};  ///< an attribute in addition to those of the GPU
};
constexpr std::array kConventions = {
    Convention{"vramtrack_device_memory_used_bytes", "hw.gpu.memory.usage", "By", "GPU memory used.", Kind::up_down},
    Convention{"vramtrack_fleet_leaking_used_bytes", "hw.gpu.memory.usage", "By", "GPU memory used.", Kind::up_down},
    Convention{"vramtrack_device_memory_total_bytes", "hw.gpu.memory.limit", "By", "Size of the GPU memory.",
               Kind::up_down},
    Convention{"vramtrack_device_utilisation_ratio",
               "hw.gpu.utilization",
               "1",
               "Fraction of time spent in a specific task.",
               Kind::gauge,
               {"hw.gpu.task", "general"}},
    Convention{
        "vramtrack_gpu_temperature_celsius", "hw.temperature", "Cel", "Temperature.", Kind::gauge, {"hw.type", "gpu"}},
    Convention{
        "vramtrack_gpu_power_watts", "hw.power", "W", "Instantaneous power consumed.", Kind::gauge, {"hw.type", "gpu"}},
};

/// Reads `name{label="value",...} number`.
std::optional<Sample> sample_of(std::string_view line) {
  Sample out;
  const std::size_t end = line.find_first_of("{ ");
  if (end == 0 || end == std::string_view::npos) return std::nullopt;
  out.name = line.substr(0, end);
  line.remove_prefix(end);
  if (line.front() == '{') {
    line.remove_prefix(1);
    while (!line.empty() && line.front() != '}') {
      const std::size_t is = line.find("=\"");
      if (is == std::string_view::npos) return std::nullopt;
      std::pair<std::string, std::string> label(std::string(line.substr(0, is)), std::string());
      line.remove_prefix(is + 2);
      while (!line.empty() && line.front() != '"') {
        if (line.front() == '\\' && line.size() > 1) {
          line.remove_prefix(1);
          label.second += line.front() == 'n' ? '\n' : line.front();
        } else {
          label.second += line.front();
        }
        line.remove_prefix(1);
      }
      if (line.empty()) return std::nullopt;
      line.remove_prefix(line.substr(1).starts_with(',') ? 2 : 1);
      out.labels.push_back(std::move(label));
    }
    if (line.empty()) return std::nullopt;
    line.remove_prefix(1);
  }
  while (line.starts_with(' ')) line.remove_prefix(1);
  const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), out.value);
  if (error != std::errc() || !std::isfinite(out.value)) return std::nullopt;
  return out;
}

void write_attributes(JsonText& out, const Labels& labels) {
  out.key("attributes").begin_array();
  for (const auto& [name, value] : labels) {
    if (value.empty()) continue;
    out.begin_object().field("key", name).key("value").begin_object().field("stringValue", value).end_object();
    out.end_object();
  }
  out.end_array();
}

/// 64-bit numbers are text in protobuf's JSON.
std::string ns(Timestamp time) {
  return std::to_string(time.time_since_epoch().count());
}

class Request {
 public:
  explicit Request(const OtlpResource& resource) : resource_(resource) {}

  void add(std::string_view name, std::string_view unit, std::string_view description, Kind kind, Labels labels,
           double value) {
    const auto [at, is_new] = positions_.try_emplace(std::string(name), metrics_.size());
    if (is_new) metrics_.push_back({name, unit, description, kind, {}});
    metrics_[at->second].points.emplace_back(std::move(labels), value);
  }

  [[nodiscard]] std::string text() const {
    Labels who(resource_.attributes.begin(), resource_.attributes.end());
    const auto unless_given = [&](const char* name, const std::string& value) {
      if (!resource_.attributes.contains(name)) who.emplace_back(name, value);
    };
    unless_given("service.name", resource_.service);
    unless_given("service.version", resource_.version);
    unless_given("host.name", resource_.host);
    JsonText out;
    out.begin_object().key("resourceMetrics").begin_array().begin_object();
    out.key("resource").begin_object();
    write_attributes(out, who);
    out.end_object().key("scopeMetrics").begin_array().begin_object();
    out.key("scope").begin_object().field("name", kScope).field("version", resource_.version).end_object();
    out.key("metrics").begin_array();
    for (const OneMetric& metric : metrics_) write(out, metric);
    out.end_array().end_object().end_array().end_object().end_array().end_object();
    return out.take();
  }

 private:
  struct OneMetric {
    std::string_view name, unit, description;
    Kind kind = Kind::gauge;
    std::vector<std::pair<Labels, double>> points;
  };

  void write(JsonText& out, const OneMetric& metric) const {
    const bool is_sum = metric.kind != Kind::gauge;
    out.begin_object().field("name", metric.name).field("description", metric.description);
    if (!metric.unit.empty()) out.field("unit", metric.unit);
    out.key(is_sum ? "sum" : "gauge").begin_object();
    if (is_sum) out.field("aggregationTemporality", kCumulative).field("isMonotonic", metric.kind == Kind::counter);
    out.key("dataPoints").begin_array();
    for (const auto& [labels, value] : metric.points) {
      out.begin_object();
      write_attributes(out, labels);
      if (is_sum) out.field("startTimeUnixNano", ns(resource_.start));
      out.field("timeUnixNano", ns(resource_.now)).field("asDouble", value).end_object();
    }
    out.end_array().end_object().end_object();
  }

  const OtlpResource& resource_;
  std::vector<OneMetric> metrics_;
  std::map<std::string, std::size_t> positions_;
};

/// One of our labels that names the GPU, as an attribute of the conventions.
Labels attributes_of_gpu(const Sample& sample, const std::string& model) {
  Labels out = {{"hw.id", sample.label("UUID")}, {"hw.name", "GPU " + sample.label("gpu")}, {"hw.model", model}};
  if (sample.label("gpu").empty()) out.erase(out.begin() + 1);
  if (const std::string host = sample.label("Hostname"); !host.empty()) out.emplace_back("host.name", host);
  return out;
}

/// "Memory in use on the device in total." of "# HELP vramtrack_... Memory in use ...", and "gauge" of "# TYPE ...".
std::string_view after_name(std::string_view line) {
  line.remove_prefix(std::min(line.size(), std::string_view("# HELP ").size()));
  return line.substr(std::min(line.size(), line.find(' ') + 1));
}

}  // namespace

std::string otlp_json(std::string_view text, const OtlpResource& resource) {
  Request out(resource);
  std::vector<Sample> samples;
  std::map<std::string, std::string> models;  // by GPU
  std::map<std::string, double> used, most;   // by GPU
  std::map<std::string, Labels> gpus;         // by GPU
  std::string_view help, type;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.starts_with("# HELP ")) help = after_name(line);
    if (line.starts_with("# TYPE ")) type = after_name(line);
    if (line.starts_with('#')) continue;
    auto sample = sample_of(line);
    if (!sample) continue;
    if (sample->name == "vramtrack_device_info") models[sample->label("UUID")] = sample->label("name");
    out.add(sample->name, {}, help, type == "counter" ? Kind::counter : Kind::gauge, sample->labels, sample->value);
    samples.push_back(std::move(*sample));
  }
  for (const Convention& convention : kConventions)
    for (const Sample& sample : samples) {
      if (sample.name != convention.ours) continue;
      const std::string uuid = sample.label("UUID");
      Labels gpu = attributes_of_gpu(sample, models[uuid]);
      if (convention.name == "hw.gpu.memory.usage") used[uuid] = sample.value;
      if (convention.name == "hw.gpu.memory.limit") most[uuid] = sample.value;
      gpus.emplace(uuid, gpu);
      if (!convention.more.first.empty()) gpu.emplace_back(convention.more.first, convention.more.second);
      out.add(convention.name, convention.unit, convention.description, convention.kind, gpu, sample.value);
    }
  for (const auto& [uuid, bytes] : used)
    if (const auto limit = most.find(uuid); limit != most.end() && limit->second > 0)
      out.add("hw.gpu.memory.utilization", "1", "Fraction of GPU memory used.", Kind::gauge, gpus.at(uuid),
              bytes / limit->second);
  return out.text();
}

}  // namespace vramtrack
