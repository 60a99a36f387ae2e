#include "core/series.hpp"

#include <array>

namespace vramtrack {
namespace {

constexpr std::array<std::string_view, 17> kMetricNames = {
    "device_used",    "device_reserved",     "process_used",   "allocator_allocated", "allocator_reserved",
    "probe_live",     "device_unattributed", "device_busy",    "device_received",     "process_busy",
    "process_read",   "process_clients",     "host_anonymous", "host_resident",       "host_pinned",
    "host_available", "process_age"};

std::string key_text(const SeriesKey& key) {
  std::string text = key.device_id;
  text += '\n';
  text += static_cast<char>('a' + static_cast<int>(key.metric));
  text += std::to_string(key.pid);
  text += '/';
  text += std::to_string(key.pid_start_ticks);
  if (!key.host.empty()) (text += '@') += key.host;
  return text;
}

/// Copies `from` over `into` unless it is empty; true if that changed `into`.
template <class T>
bool take(T& into, const T& from) {
  if (from == T{} || from == into) return false;
  into = from;
  return true;
}

}  // namespace

std::string_view to_string(Metric metric) {
  return kMetricNames[static_cast<std::size_t>(metric)];
}

std::optional<Metric> parse_metric(std::string_view name) {
  for (std::size_t i = 0; i < kMetricNames.size(); ++i)
    if (kMetricNames[i] == name) return static_cast<Metric>(i);
  return std::nullopt;
}

Catalog::Catalog() = default;
Catalog::~Catalog() = default;

SeriesId Catalog::intern(const SeriesKey& key) {
  const auto [it, added] = ids_.try_emplace(key_text(key), static_cast<SeriesId>(given_));
  if (added) {
    keys_.try_emplace(static_cast<std::uint32_t>(given_++), key);
    if (key.pid != 0) ++process_index_[process_key(key)].series;
    ++revision_;
  }
  return it->second;
}

const SeriesKey& Catalog::key(SeriesId id) const {
  static const SeriesKey none;
  const auto it = keys_.find(index_of(id));
  return it == keys_.end() ? none : it->second;
}

void Catalog::retire(SeriesId id) {
  const auto it = keys_.find(index_of(id));
  if (it == keys_.end()) return;
  const SeriesKey& key = it->second;
  ids_.erase(key_text(key));
  const auto process = key.pid == 0 ? process_index_.end() : process_index_.find(process_key(key));
  if (process != process_index_.end() && --process->second.series == 0) {
    if (process->second.described) {
      changes_.erase(process->second.change);
      processes_.erase(process->second.info);
    }
    process_index_.erase(process);
  }
  keys_.erase(it);
}

std::optional<SeriesId> Catalog::find(const SeriesKey& key) const {
  const auto it = ids_.find(key_text(key));
  if (it == ids_.end()) return std::nullopt;
  return it->second;
}

bool Catalog::describe(const DeviceInfo& device) {
  const auto [it, added] = device_index_.try_emplace({device.id, device.host});
  Device& here = it->second;
  bool changed = added;
  if (added) {
    here.info = &devices_.emplace_back(device);  // a deque's elements never move
    here.change = device_changes_.insert(device_changes_.end(), {0, here.info});
  } else {
    DeviceInfo& known = *here.info;
    changed |= take(known.index, device.index);
    changed |= take(known.name, device.name);
    changed |= take(known.pci_bus_id, device.pci_bus_id);
    changed |= take(known.parent_id, device.parent_id);
    changed |= take(known.capacity_bytes, device.capacity_bytes);
    changed |= take(known.shares_host_memory, device.shares_host_memory);
  }
  if (changed) {
    device_revision_ = here.change->revision = ++revision_;
    device_changes_.splice(device_changes_.end(), device_changes_, here.change);
  }
  return changed;
}

bool Catalog::describe(const ProcessInfo& process) {
  Process& here = process_index_[{process.pid, process.start_ticks, process.host}];
  bool changed = !here.described;
  if (!here.described) {
    here.info = processes_.insert(processes_.end(), process);
    here.change = changes_.insert(changes_.end(), {0, &*here.info});
    here.described = true;
  } else {
    ProcessInfo& known = *here.info;
    changed |= take(known.user, process.user);
    changed |= take(known.command, process.command);
    changed |= take(known.name, process.name);
    changed |= take(known.kind, process.kind);
    changed |= take(known.cgroup, process.cgroup);
    changed |= take(known.container, process.container);
    changed |= take(known.pod, process.pod);
    changed |= take(known.slurm_job, process.slurm_job);
    changed |= take(known.image, process.image);
    changed |= take(known.job_name, process.job_name);
    changed |= take(known.framework, process.framework);
    changed |= take(known.ns_pid, process.ns_pid);
  }
  if (changed) {
    here.change->revision = ++revision_;
    changes_.splice(changes_.end(), changes_, here.change);
  }
  return changed;
}

const DeviceInfo* Catalog::device(const DeviceKey& key) const {
  const auto it = device_index_.find(key);
  return it == device_index_.end() ? nullptr : it->second.info;
}

const ProcessInfo* Catalog::process(const ProcessKey& key) const {
  const auto it = process_index_.find(key);
  return it == process_index_.end() || !it->second.described ? nullptr : &*it->second.info;
}

}  // namespace vramtrack
