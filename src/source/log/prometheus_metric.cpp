#include "source/log/prometheus_metric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>

#include "core/units.hpp"
#include "source/log/columns.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

/// The first label of these names that has a value, in the order of the names.
std::string_view label(const PrometheusLabels& labels, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    for (const auto& [key, value] : labels)
      if (!value.empty() && logtext::same_letters(key, name)) return value;
  return {};
}

bool is_of_gpu(std::string_view name) {
  for (const std::string_view word : {"gpu", "dcgm", "nvidia", "cuda", "vram", "hbm", "npu_", "accelerator", "rocm",
                                      "xpu", "vramtrack_device_memory"})
    if (name.find(word) != std::string_view::npos) return true;
  return false;
}

/// "3", "nvidia3", "card3", "GPU 3"; nullopt for any other name.
std::optional<int> index_in(std::string_view text) {
  std::size_t digits = 0;
  while (digits < text.size() && logtext::is_digit(text[text.size() - digits - 1])) ++digits;
  const std::string_view word = logtext::trim(text.substr(0, text.size() - digits));
  const bool plain = word.empty() || word == "nvidia" || word == "card" || logtext::same_letters(word, "gpu") ||
                     word == "npu" || word == "cuda:";
  const auto number = logtext::whole_number<int>(text.substr(text.size() - digits));
  return plain && number && *number < 4096 ? number : std::nullopt;
}

/// What is read besides memory. The unit makes a value that of the fact's sample.
constexpr std::array<std::pair<std::string_view, PrometheusMetric>, 7> kFacts = {
    {{"DCGM_FI_DEV_GPU_UTIL", {DumpReadings::Field::busy, 100}},
     {"DCGM_FI_PROF_GR_ENGINE_ACTIVE", {DumpReadings::Field::busy, 10'000}},
     // The names since DCGM 4.5 (dcgmlib/dcgm_fields.h).
     {"DCGM_FI_DEV_GPU_UTIL_RATIO", {DumpReadings::Field::busy, 10'000}},
     {"DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", {DumpReadings::Field::busy, 10'000}},
     {"nvidia_smi_utilization_gpu_ratio", {DumpReadings::Field::busy, 10'000}},
     {"vramtrack_device_utilisation_ratio", {DumpReadings::Field::busy, 10'000}},
     {"DCGM_FI_PROF_PCIE_RX_BYTES", {DumpReadings::Field::received, 1}}}};

}  // namespace

std::optional<PrometheusMetric> gpu_metric(std::string_view name) {
  for (const auto& [known, metric] : kFacts)
    if (known == name) return metric;
  const std::string low = logtext::lowered(name);
  if (!is_of_gpu(low) || low.find("process") != std::string::npos || low.find("peak") != std::string::npos ||
      low.find("ratio") != std::string::npos || low.find("bar1") != std::string::npos ||
      low.find("vgpu") != std::string::npos)
    return std::nullopt;
  const Column column = classify_column(name);
  PrometheusMetric out;
  out.unit_bytes = column.unit_bytes;
  if (column.role == ColumnRole::used && column.rank >= 60)
    out.field = DumpReadings::Field::used;
  else if (column.role == ColumnRole::free)
    out.field = DumpReadings::Field::free;
  else if (column.role == ColumnRole::total)
    out.field = DumpReadings::Field::total;
  else
    return std::nullopt;
  // DCGM's, AMD's (gpu_used_vram) and Ascend's (npu_chip_info_hbm_used_memory) exporters count MB of 2^20 bytes.
  if (out.unit_bytes == 0 && (low.starts_with("dcgm_fi_") || low.starts_with("npu_") || low.ends_with("_vram")))
    out.unit_bytes = kBytesPerMiB;
  return out;
}

LogDevice gpu_of_labels(const PrometheusLabels& labels) {
  LogDevice gpu;
  gpu.uuid = label(labels, {"UUID", "gpu_uuid", "gpuuuid", "acc_id", "vdie_id"});
  gpu.pci_bus_id = normal_pci(label(labels, {"pci_bus_id", "pci_bus", "bus_id", "pcie_bus_id", "bdf"}));
  gpu.name = label(labels, {"modelName", "model_name", "gpu_name", "card_model", "model", "name"});
  std::string_view index_text;
  for (const std::string_view key :
       {"gpu", "gpu_id", "gpu_index", "minor_number", "minor", "index", "id", "npu", "card", "device"}) {
    const std::string_view text = label(labels, {key});
    gpu.index = index_in(text);
    if (index_text.empty()) index_text = text;
    if (gpu.index) break;
  }
  const std::string_view host =
      label(labels, {"Hostname", "node", "kubernetes_node", "node_name", "host", "exported_instance", "instance"});
  const bool is_unique = !gpu.uuid.empty();
  if (!is_unique) {
    // A bus id or an index is unique only within one machine.
    const std::string own = !gpu.pci_bus_id.empty() ? gpu.pci_bus_id
                            : gpu.index             ? std::to_string(*gpu.index)
                                                    : std::string(index_text);
    if (own.empty()) {
      for (const auto& [key, value] : labels)
        if (key != "__name__" && key != "job") gpu.text += (gpu.text.empty() ? "" : "/") + value;
    } else if (!host.empty()) {
      gpu.text = fmt::format("{}/{}", host, own);
    } else if (gpu.pci_bus_id.empty() && !gpu.index) {
      gpu.text = own;
    }
    if (!gpu.text.empty()) gpu.pci_bus_id.clear();
  }
  const std::string_view instance = label(labels, {"GPU_I_ID", "gpu_instance_id"});
  if (!instance.empty() && instance != "4294967295") {
    gpu.parent_id = device_id(gpu);
    gpu.text = fmt::format("{}/gi{}", gpu.parent_id, instance);
    gpu.uuid.clear();
    gpu.pci_bus_id.clear();
    gpu.index.reset();
  }
  return gpu;
}

}  // namespace vramtrack
