#include "source/log/prometheus_metric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/exporters.hpp"
#include "core/pci_address.hpp"
#include "core/scale.hpp"
#include "core/units.hpp"
#include "source/log/columns.hpp"
#include "source/log/json_figures.hpp"
#include "source/log/labels.hpp"
#include "source/log/owners.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

/// The value of a label; empty: there is none.
std::string_view label(const PrometheusLabels& labels, std::string_view name) {
  for (const auto& [key, value] : labels)
    if (!value.empty() && logtext::same_letters(key, name)) return value;
  return {};
}

/// The names that exporters give to labels of one kind, in order, each once.
std::vector<std::string> labels_of(exporters::Names exporters::Exporter::*list) {
  std::vector<std::string> out;
  for (const exporters::Exporter& exporter : exporters::Mapping::known().exporters())
    for (const std::string& name : exporter.*list)
      if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  return out;
}

/// The values of the labels of a role in a record, by words.def.
std::vector<std::string_view> labels_of(const PrometheusLabels& labels, ColumnRole role) {
  std::vector<std::string_view> out;
  for (const auto& [key, value] : labels)
    if (!value.empty() && classify_column(key).role == role) out.emplace_back(value);
  return out;
}

std::string first_of(const std::vector<std::string_view>& values) {
  return values.empty() ? std::string() : std::string(values.front());
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

std::optional<PrometheusMetric> gpu_metric(std::string_view name, MetricsOf of) {
  if (const auto known = exporters::Mapping::known().find(std::string(name))) return as_known(*known);
  const Label label = read_label(name);
  const bool is_peak = label.role().first == Meaning::peak;
  const bool is_of_gpu = (label.gpu || label.vram) && !label.process;
  if (is_of_gpu == (of == MetricsOf::anyone) || label.share || is_peak != (of == MetricsOf::peaks)) return std::nullopt;
  if (of == MetricsOf::anyone && (!label.memory || label.host)) return std::nullopt;
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

namespace {

/// The label that numbers the GPU: the first with a number, else the first.
std::string index_of(const PrometheusLabels& labels) {
  static const std::vector<std::string> names = labels_of(&exporters::Exporter::index_labels);
  std::vector<std::string_view> values;
  for (const std::string& name : names)
    if (const std::string_view value = label(labels, name); !value.empty()) values.push_back(value);
  for (const std::string_view value : labels_of(labels, ColumnRole::index)) values.push_back(value);
  const auto number = std::find_if(values.begin(), values.end(), [](auto value) { return device_named(value); });
  return number != values.end() ? std::string(*number) : first_of(values);
}

/// Pods and jobs have UUIDs, too: that of a GPU is preferred.
std::string uuid_of(const PrometheusLabels& labels) {
  const std::vector<std::string_view> values = labels_of(labels, ColumnRole::uuid);
  const auto of_gpu = std::find_if(values.begin(), values.end(), [](std::string_view value) {
    return value.starts_with("GPU-") || value.starts_with("MIG-");
  });
  return of_gpu != values.end() ? std::string(*of_gpu) : first_of(values);
}

/// The machine. "instance" is the scrape target: any other label is more informative.
std::string host_of(const PrometheusLabels& labels) {
  static const std::vector<std::string> names = labels_of(&exporters::Exporter::host_labels);
  for (const std::string& name : names)
    if (const std::string_view host = label(labels, name); name != "instance" && !host.empty())
      return std::string(host);
  return std::string(label(labels, "instance"));
}

std::string partition_of(const PrometheusLabels& labels) {
  static const std::vector<std::string> names = labels_of(&exporters::Exporter::partition_labels);
  constexpr std::string_view kMissing = "4294967295";  // of DCGM
  for (const std::string& name : names)
    if (const std::string_view its = label(labels, name); !its.empty() && its != kMissing)
      return "gi" + std::string(its);
  for (const auto& [key, value] : labels)
    if (classify_column(key).role == ColumnRole::partition) return partition_named(key, value);
  return {};
}

/// Whether a label says something about a process, its name or its user.
bool is_of_process(const std::string& key) {
  const ColumnRole role = classify_column(key).role;
  return role == ColumnRole::pid || role == ColumnRole::process_name || role == ColumnRole::process_kind ||
         role == ColumnRole::user;
}

}  // namespace

LabelOwner owner_of_labels(const PrometheusLabels& labels, std::string_view metric, const LabelPlan& plan) {
  LabelOwner out;
  const std::string pid = first_of(labels_of(labels, ColumnRole::pid));
  const bool is_of_exporter = exporters::Mapping::known().find(std::string(metric)).has_value();
  const bool has_pid = plan.has_pids && !logtext::is_missing(pid) && !is_of_exporter;
  if (has_pid) {
    out.pid = pid_of(pid);
    out.pid_is_unreadable = !out.pid;
    out.process = first_of(labels_of(labels, ColumnRole::process_name));
  }
  const std::string uuid = uuid_of(labels);
  const std::string pci = pci_address_of(first_of(labels_of(labels, ColumnRole::pci)));
  const std::string name = first_of(labels_of(labels, ColumnRole::device_name));
  const std::string partition = partition_of(labels);
  std::string index = index_of(labels);
  if (uuid.empty() && pci.empty() && index.empty())
    if (const auto number = gpu_number_in(metric)) index = std::to_string(*number);
  std::string origin, share;
  if (!uuid.empty() || !pci.empty() || !index.empty()) {
    origin = host_of(labels);
    for (const std::string& label_name : plan.distinguishing) add_part(share, label(labels, label_name));
  } else {
    for (const auto& [key, value] : labels)
      if (key != "__name__" && key != "job" && !(has_pid && is_of_process(key))) add_part(origin, value);
    if (std::find(plan.distinguishing.begin(), plan.distinguishing.end(), "job") != plan.distinguishing.end())
      add_part(share, label(labels, "job"));
  }
  out.gpu = device_of({uuid, pci, index, origin, partition, share, name});
  return out;
}

LabelPlan plan_labels(std::span<const LabelledSample> samples, bool may_have_pids) {
  LabelPlan out;
  std::set<std::string_view> pids;
  out.are_of_processes = true;
  for (const LabelledSample& sample : samples) {
    const std::vector<std::string_view> its = labels_of(*sample.labels, ColumnRole::pid);
    pids.insert(its.begin(), its.end());
    out.are_of_processes &= !its.empty() && !exporters::Mapping::known().find(std::string(sample.metric));
  }
  const std::vector<std::string_view> numbers(pids.begin(), pids.end());
  out.has_pids = may_have_pids && !number_programs(numbers);
  const bool has_process = out.has_pids && !pids.empty();
  out.are_of_processes &= has_process;

  HeadRecords records;
  std::vector<std::string_view> names;
  std::map<std::string_view, HeadField> fields;
  std::map<std::pair<std::string_view, const PrometheusLabels*>, std::string> owners;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const LabelledSample& sample = samples[i];
    std::string& owner = owners[{sample.metric, sample.labels}];
    if (owner.empty()) {
      const LabelOwner its = owner_of_labels(*sample.labels, sample.metric, out);
      owner = fmt::format("{} {} {}", sample.metric, device_id(its.gpu), its.pid.value_or(0));
    }
    records.owners.push_back(owner);
    records.times.push_back(sample.time);
    records.amounts.push_back(sample.amount);
    for (const auto& [key, value] : *sample.labels) {
      if (key == "__name__" || (has_process && is_of_process(key))) continue;
      const auto [field, is_new] = fields.try_emplace(key, samples.size());
      if (is_new) names.push_back(field->first);
      field->second[i] = value;
    }
  }
  const auto is_program = [](std::string_view key) {
    const ColumnRole role = classify_column(key).role;
    return role == ColumnRole::series || role == ColumnRole::user || role == ColumnRole::process_name;
  };
  std::stable_partition(names.begin(), names.end(), is_program);
  std::vector<HeadField> in_order;
  for (const std::string_view name : names) in_order.push_back(std::move(fields[name]));
  for (const std::size_t field : find_owner_fields(std::move(records), in_order))
    out.distinguishing.emplace_back(names[field]);
  return out;
}

}  // namespace vramtrack
