#include "fleet/unknown_metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "core/ascii.hpp"
#include "core/memory_unit.hpp"
#include "core/printable.hpp"

namespace vramtrack::fleet {
namespace {

constexpr std::size_t kMost = 12;

/// The filter for the server, so that it does not send metrics that cannot match.
constexpr const char* kOfGpus =
    "(?i).*(gpu|vram|npu|xpu|hbm|gram|mlu|dcu|gcu|hpu|gaudi|accelerator|cuda|rocm|_fb_|framebuffer).*";

template <std::size_t N>
bool has_any(const std::string& text, const std::array<std::string_view, N>& words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view w) { return text.find(w) != std::string::npos; });
}

/// The words in a name: "hami", "vgpu", "memory".
std::vector<std::string> words_of_name(const std::string& name) {
  std::vector<std::string> out = {""};
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      out.back() += c;
    else if (!out.back().empty())
      out.emplace_back();
  return out;
}

std::string first_label(const Labels& labels, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    for (const auto& [label, value] : labels)
      if (lower(label) == name && !value.empty()) return label;
  return {};
}

/// A label with the UUID of a GPU as its value, whatever the label's name.
std::string uuid_label(const Labels& labels) {
  for (const auto& [label, value] : labels)
    if (value.starts_with("GPU-") || value.starts_with("MIG-")) return label;
  return first_label(labels,
                     {"uuid", "gpu_uuid", "device_uuid", "deviceuuid", "serial", "serial_number", "pci_bus_id"});
}

}  // namespace

bool looks_like_used_gpu_memory(const std::string& name) {
  constexpr std::array<std::string_view, 17> kDevices = {"gpu",  "vram", "npu",  "xpu",         "hbm",   "gram",
                                                         "mlu",  "dcu",  "gcu",  "hpu",         "gaudi", "accelerator",
                                                         "cuda", "rocm", "_fb_", "framebuffer", "dcgm"};
  constexpr std::array<std::string_view, 7> kMemory = {"mem",  "vram",        "_fb_",      "hbm",
                                                       "gram", "framebuffer", "used_bytes"};
  constexpr std::array<std::string_view, 4> kUsed = {"used", "usage", "in_use", "allocated"};
  // Counters, limits, shares, events, and other names that contain "memory".
  constexpr std::array<std::string_view, 37> kNot = {
      "total",   "free",    "limit",    "max",       "peak",  "percent", "ratio",    "util",    "bandwidth", "clock",
      "temp",    "ecc",     "error",    "copy",      "rate",  "bar1",    "power",    "_count",  "_sum",      "_bucket",
      "quota",   "request", "capacity", "available", "cache", "cpu",     "host_mem", "throttl", "voltage",   "fan",
      "per_sec", "read",    "write",    "retired",   "remap", "pcie",    "module"};
  const std::string text = lower(name);
  // "..._utilization_..." is a share; "host_gpu" is not the memory of a host.
  return has_any(text, kDevices) && has_any(text, kMemory) && has_any(text, kUsed) && !has_any(text, kNot);
}

std::string exporter_lines(const std::string& metric, const Labels& labels) {
  const std::vector<std::string> words = words_of_name(metric);
  const bool has_unit = words.back().size() > 1 && memory_unit(words.back()) != 0;
  const std::string device = uuid_label(labels);
  const std::string index = first_label(
      labels, {"gpu", "index", "gpu_index", "device_index", "minor_number", "gpu_id", "id", "card", "device"});
  const std::string host = first_label(labels, {"hostname", "node", "nodename", "host", "kubernetes_node", "instance"});
  std::string out = fmt::format("[[exporter]]\nname = \"{}\"\nused = [\"{}\"]\n", words.front(), metric);
  out += has_unit ? fmt::format("unit = \"{}\"\n", lower(words.back()))
                  : std::string("unit = \"MiB\"  # a guess: the name does not say\n");
  if (!device.empty()) out += fmt::format("device_labels = [\"{}\"]\n", device);
  if (!index.empty() || device.empty()) out += fmt::format("index_labels = [\"{}\"]\n", index.empty() ? "gpu" : index);
  out += fmt::format("host_labels = [\"{}\"]\n", host.empty() ? "instance" : host);
  return out;
}

std::vector<UnknownMetric> unknown_metrics(const Reader& reader, const Mapping& mapping, const Query& where) {
  Query query = where;
  query.matchers.push_back({"__name__", kOfGpus, true});
  const auto names = reader.label_values("__name__", query);
  if (!names) return {};
  // A known exporter reports the same memory under several names: "DCGM_FI_DEV_FB_USED" and "..._USED_PERCENT".
  std::set<std::string> read;
  for (const std::string& name : *names)
    if (mapping.find(name)) read.insert(words_of_name(name).front());
  std::vector<UnknownMetric> out;
  for (const std::string& name : *names) {
    if (out.size() == kMost) break;
    if (mapping.find(name) || !looks_like_used_gpu_memory(name) || read.contains(words_of_name(name).front())) continue;
    Query of_it = where;
    of_it.matchers.push_back({"__name__", name, false});
    const auto series = reader.series(of_it);
    if (series && !series->empty()) out.push_back({name, exporter_lines(name, series->front())});
  }
  return out;
}

std::string unknown_metrics_text(const std::vector<UnknownMetric>& metrics) {
  std::string out;
  for (const UnknownMetric& metric : metrics) {
    out += fmt::format("Not read: {} looks like GPU memory. These lines in an exporters file would read it:\n\n",
                       printable(metric.name));
    for (std::size_t begin = 0; begin < metric.exporter_lines.size();) {
      const std::size_t end = metric.exporter_lines.find('\n', begin);
      out += "    " + printable(metric.exporter_lines.substr(begin, end - begin)) + '\n';
      begin = end + 1;
    }
    out += '\n';
  }
  return out;
}

}  // namespace vramtrack::fleet
