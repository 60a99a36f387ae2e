#include "source/log/prometheus_metric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "core/exporters.hpp"
#include "core/pci_address.hpp"
#include "core/scale.hpp"
#include "core/units.hpp"
#include "source/log/columns.hpp"
#include "source/log/json_figures.hpp"
#include "source/log/labels.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

/// The first of the labels with these names that has a value.
template <class Names>
std::string_view label(const PrometheusLabels& labels, const Names& names) {
  for (const std::string_view name : names)
    for (const auto& [key, value] : labels)
      if (!value.empty() && logtext::same_letters(key, name)) return value;
  return {};
}

/// Labels of several exporters, those of the table first.
std::vector<std::string> labels_of(exporters::Names exporters::Exporter::*list,
                                   std::initializer_list<std::string_view> others) {
  std::vector<std::string> out;
  for (const exporters::Exporter& exporter : exporters::Mapping::known().exporters())
    out.insert(out.end(), (exporter.*list).begin(), (exporter.*list).end());
  out.insert(out.end(), others.begin(), others.end());
  return out;
}

constexpr std::uint64_t kOfPercent = 100;
constexpr std::uint64_t kOfRatio = 10'000;

std::optional<PrometheusMetric> as_known(const exporters::MetricMeaning& known) {
  const auto unit = static_cast<std::uint64_t>(known.unit_bytes);
  switch (known.role) {
    case exporters::Role::used:
      return PrometheusMetric{DumpReadings::Field::used, unit};
    case exporters::Role::free:
      return PrometheusMetric{DumpReadings::Field::free, unit};
    case exporters::Role::total:
      return PrometheusMetric{DumpReadings::Field::total, unit};
    case exporters::Role::busy:
      return PrometheusMetric{DumpReadings::Field::busy, known.unit_bytes < 1 ? kOfPercent : kOfRatio};
    case exporters::Role::received:
      return PrometheusMetric{DumpReadings::Field::received, unit};
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<PrometheusMetric> gpu_metric(std::string_view name, bool peaks) {
  if (const auto known = exporters::Mapping::known().find(std::string(name))) return as_known(*known);
  const Label label = read_label(name);
  const bool is_peak = label.role().first == Meaning::peak;
  if (!(label.gpu || label.vram) || label.process || label.share || is_peak != peaks) return std::nullopt;
  const Column column = classify_column(name);
  const std::string low = logtext::lower(name);
  PrometheusMetric out;
  out.unit_bytes = column.unit_bytes;
  if (is_peak && (column.role == ColumnRole::peak || column.role == ColumnRole::total))
    out.field = DumpReadings::Field::used;
  else if (is_peak)
    return std::nullopt;
  else if (column.role == ColumnRole::used && column.metric == Metric::allocator_allocated)
    out.field = DumpReadings::Field::allocated;
  else if (column.role == ColumnRole::used && column.metric == Metric::allocator_reserved)
    out.field = DumpReadings::Field::reserved;
  else if (column.role == ColumnRole::used && column.rank >= 60)
    out.field = DumpReadings::Field::used;
  else if (column.role == ColumnRole::free)
    out.field = DumpReadings::Field::free;
  else if (column.role == ColumnRole::total)
    out.field = DumpReadings::Field::total;
  else if (column.role == ColumnRole::percent && !low.starts_with("dcgm_fi_"))  // whose FB_USED_PERCENT is a ratio
    return PrometheusMetric{DumpReadings::Field::percent, static_cast<std::uint64_t>(Scale::kPercentBytes)};
  else
    return std::nullopt;
  // DCGM and AMD's exporter count MB of 2^20 bytes, also in fields that are missing from the table.
  if (out.unit_bytes == 0 && (low.starts_with("dcgm_fi_") || low.ends_with("_vram"))) out.unit_bytes = kBytesPerMiB;
  return out;
}

LogDevice gpu_of_labels(const PrometheusLabels& labels, std::string_view metric) {
  using exporters::Exporter;
  static const std::vector<std::string> index_labels =
      labels_of(&Exporter::index_labels,
                {"gpu", "gpu_id", "gpu_index", "minor_number", "minor", "index", "id", "npu", "card", "device"});
  static const std::vector<std::string> host_labels =
      labels_of(&Exporter::host_labels, {"kubernetes_node", "node_name", "host", "exported_instance", "instance"});
  static const std::vector<std::string> partition_labels = labels_of(&Exporter::partition_labels, {"gpu_instance_id"});
  using Names = std::initializer_list<std::string_view>;
  LogDevice gpu;
  gpu.uuid = label(labels, Names{"UUID", "gpu_uuid", "gpuuuid", "acc_id", "vdie_id"});
  gpu.pci_bus_id = pci_address_of(label(labels, Names{"pci_bus_id", "pci_bus", "bus_id", "pcie_bus_id", "bdf"}));
  gpu.name = label(labels, Names{"modelName", "model_name", "gpu_name", "card_model", "model", "name"});
  std::string_view index_text;
  for (const std::string& key : index_labels) {
    const std::string_view text = label(labels, Names{key});
    if (index_text.empty()) index_text = text;
    if (const auto named = device_named(text)) {
      gpu.index = named->index;
      break;
    }
  }
  if (gpu.uuid.empty() && gpu.pci_bus_id.empty() && index_text.empty()) gpu.index = gpu_number_in(metric);
  // "instance" is the scrape target: any other label is more informative.
  std::string_view host;
  for (const std::string& key : host_labels)
    if (key != "instance" && host.empty()) host = label(labels, Names{key});
  if (host.empty()) host = label(labels, Names{"instance"});
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
  const std::string_view partition = label(labels, partition_labels);
  if (!partition.empty() && partition != "4294967295") {  // DCGM's mark of a missing value
    gpu.parent_id = device_id(gpu);
    gpu.text = fmt::format("{}/gi{}", gpu.parent_id, partition);
    gpu.uuid.clear();
    gpu.pci_bus_id.clear();
    gpu.index.reset();
  }
  return gpu;
}

}  // namespace vramtrack
