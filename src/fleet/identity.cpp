#include "fleet/identity.hpp"

#include <algorithm>

#include "core/ascii.hpp"
#include "core/number_text.hpp"
#include "core/pod_name.hpp"

namespace vramtrack::fleet {
namespace {

std::optional<int> index_of_text(std::string_view text) {
  const auto index = parse_number<int>(text);
  return index && *index >= 0 ? index : std::nullopt;
}

/// 8-4-4-4-12 hexadecimal digits, not all of them zero.
bool is_bare_uuid(std::string_view text) {
  if (text.size() != 36) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
    const bool is_hex = is_digit(text[i]) || (text[i] >= 'a' && text[i] <= 'f') || (text[i] >= 'A' && text[i] <= 'F');
    if (is_dash ? text[i] != '-' : !is_hex) return false;
  }
  return text.find_first_not_of("0-") != std::string_view::npos;
}

struct DeviceId {
  std::string text;
  bool is_uuid = false;
};

/// The driver writes "GPU-" or "MIG-" before a UUID, and exporters leave it out or change the case of its letters.
DeviceId device_id_of(std::string_view label) {
  std::string_view prefix = "GPU-", bare = label;
  for (const std::string_view known : {"GPU-", "MIG-"})
    if (label.substr(0, known.size()) == known) {
      prefix = known;
      bare = label.substr(known.size());
    }
  if (!is_bare_uuid(bare)) return {std::string(label), false};
  std::string text(prefix);
  for (const char c : bare) text += c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  return {std::move(text), true};
}

/// The first label in `names` that has a value; with `is_moved`, only among those that Prometheus has renamed.
std::string_view first_moved(const Labels& labels, const Names& names, bool is_moved) {
  for (const std::string& name : names)
    if (!is_moved || name.starts_with("exported_"))
      if (const std::string_view value = value_of(labels, name); !value.empty()) return value;
  return {};
}

/// Whether a pod or its container has the name of the scrape's job, as an exporter's does.
bool is_called_like_scrape(const Labels& labels, std::string_view pod, std::string_view container) {
  const std::string_view scrape = value_of(labels, "job");
  return !scrape.empty() &&
         (container == scrape || (pod.starts_with(scrape) && pod.substr(scrape.size()).starts_with('-')));
}

/// Copies namespace, pod, container and image to `out`.
void place_work(const Labels& labels, const WorkloadLabels& names, const Roster& roster, const std::string& host,
                Workload& out) {
  bool is_moved = false;
  for (const Names* list : {&names.name_space, &names.pod, &names.container})
    is_moved |= std::any_of(list->begin(), list->end(), [&](const std::string& name) {
      return name.starts_with("exported_") && !value_of(labels, name).empty();
    });
  const std::string pod(first_moved(labels, names.pod, is_moved));
  const std::string container(first_moved(labels, names.container, is_moved));
  const bool is_scrapes = pod.empty() ? !container.empty() && roster.is_exporter_container(container)
                                      : roster.is_exporter_pod(pod) || pod == host;
  if (!is_moved && (is_scrapes || is_called_like_scrape(labels, pod, container))) return;
  out.pod = pod;
  out.container = container;
  // A namespace alone does not identify the work, and is often the scrape's.
  if (!pod.empty() || !container.empty()) out.name_space = first_moved(labels, names.name_space, is_moved);
  out.image = first_of(labels, names.image);
}

}  // namespace

std::string Workload::group() const {
  if (std::string work = work_of(job, name_space, pod); !work.empty()) return work;
  if (!job_name.empty()) return job_name;
  return container;
}

std::string Workload::program() const {
  if (!job_name.empty()) return job_name;
  if (!pod.empty()) return group() + (container.empty() ? "" : '/' + container);
  return container;
}

std::string host_of(std::string_view label) {
  const std::size_t colon = label.rfind(':');
  const bool is_address_v6 = label.find(':') != colon && label.find(']') == std::string_view::npos;
  const auto is_port = [](std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
  };
  if (colon != std::string_view::npos && !is_address_v6 && is_port(label.substr(colon + 1)))
    label = label.substr(0, colon);
  std::string host(label);
  std::replace(host.begin(), host.end(), '/', '_');
  return host;
}

std::optional<Identity> identify(const Labels& labels, const Exporter& exporter, const WorkloadLabels& names,
                                 const Roster& roster) {
  Identity out;
  DeviceInfo& device = out.device;
  device.host = host_of(first_of(labels, exporter.host_labels));
  const auto is_named = [&](const std::string& label) {
    return label != "instance" && !value_of(labels, label).empty();
  };
  out.is_host_of_scrape = roster.is_exporter_pod(device.host) || device.host == value_of(labels, "pod") ||
                          std::none_of(exporter.host_labels.begin(), exporter.host_labels.end(), is_named);
  device.index = index_of_text(first_of(labels, exporter.index_labels));
  DeviceId id = device_id_of(first_of(labels, exporter.device_labels));
  out.has_uuid = id.is_uuid;
  device.id = id.text.empty() ? std::string(first_of(labels, exporter.index_labels)) : std::move(id.text);
  if (device.id.empty()) return std::nullopt;
  device.name = first_of(labels, exporter.model_labels);
  // DCGM writes its "no value" for a GPU without MIG.
  const std::string_view partition = first_of(labels, exporter.partition_labels);
  if (!partition.empty() && partition != "4294967295") {
    device.parent_id = device.id;
    device.id += "/gi" + std::string(partition);
  }
  const auto text = [&](const Names& list) { return std::string(first_of(labels, list)); };
  Workload& work = out.workload;
  work.job = text(names.job);
  work.job_name = text(names.job_name);
  work.user = text(names.user);
  work.framework = text(names.framework);
  work.driver = text(exporter.driver_labels);
  place_work(labels, names, roster, device.host, work);
  if (const auto pid = index_of_text(first_of(labels, names.pid))) out.pid = static_cast<std::uint32_t>(*pid);
  out.process_name = text(names.process_name);
  return out;
}

}  // namespace vramtrack::fleet
