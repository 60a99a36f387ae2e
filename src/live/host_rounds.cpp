#include "live/host_rounds.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/format.hpp"
#include "core/printable.hpp"
#include "host/host_memory.hpp"

namespace vramtrack {
namespace {

std::string device_words(const Catalog& catalog, const std::string& device_id) {
  const DeviceInfo* const device = catalog.device(device_id);
  return device != nullptr && device->index ? fmt::format("GPU {}", *device->index) : device_id;
}

}  // namespace

HostRounds::HostRounds(const StallConfig& config, const SourcesConfig& sources)
    : least_bytes_(config.min_memory_bytes()),
      proc_root_(sources.proc_root),
      cgroup_root_(sources.sys_root + "/fs/cgroup"),
      oom_(sources.proc_root, sources.sys_root) {}

void HostRounds::note_holdings(const Catalog& catalog, const Batch& batch) {
  for (const Sample& sample : batch.samples) {
    const SeriesKey& key = catalog.key(sample.series);
    if (key.metric != Metric::process_used || key.pid == 0 || key.pid_start_ticks == 0 || !key.host.empty()) continue;
    Known& known = known_[{key.pid, key.pid_start_ticks}];
    if (known.device_id.empty()) known.device_id = key.device_id;
    known.gpu_bytes[key.device_id] = sample.bytes;
    std::uint64_t sum = 0;
    for (const auto& [device_id, bytes] : known.gpu_bytes) sum += bytes;
    known.is_followed = known.is_followed || static_cast<double>(sum) >= least_bytes_;
  }
}

void HostRounds::add_kill(const Catalog& catalog, const OomKill& kill, const Process* process, Timestamp now,
                          Batch& batch) {
  const ProcessInfo* const info = process != nullptr ? catalog.process(process->first, process->second) : nullptr;
  const Known* const known = process != nullptr ? &known_[*process] : nullptr;
  const std::string name = info == nullptr || info->command.empty() ? kill.name : info->command;
  Event event;
  event.time = now;
  event.kind = Event::Kind::host_out_of_memory;
  if (process != nullptr) {
    event.pid = process->first;
    event.pid_start_ticks = process->second;
  }
  event.text = fmt::format(
      "the kernel ended pid {}{}: {} ran out", kill.pid, name.empty() ? "" : fmt::format(" ({})", printable(name)),
      kill.cgroup.empty() ? std::string("the machine's memory") : "the memory of cgroup " + printable(kill.cgroup));
  std::string held;
  for (const auto& [device_id, bytes] : known != nullptr ? known->gpu_bytes : std::map<std::string, std::uint64_t>())
    if (bytes > 0)
      held +=
          fmt::format("{}{} of {}", held.empty() ? "" : ", ", format_bytes(bytes), device_words(catalog, device_id));
  if (known != nullptr && known->anonymous_bytes > 0)
    held += fmt::format("{}{} of the host", held.empty() ? "" : " and ", format_bytes(known->anonymous_bytes));
  event.text += held.empty() ? "; it held no GPU memory" : "; it held " + held;
  ++kills_[{kill.cgroup.empty() ? "machine" : "cgroup", process != nullptr}];
  batch.events.push_back(std::move(event));
}

void HostRounds::add_kills(const Catalog& catalog, Timestamp now, Batch& batch) {
  for (const OomKill& kill : oom_.logged()) {
    const auto at =
        std::find_if(known_.rbegin(), known_.rend(), [&](const auto& one) { return one.first.first == kill.pid; });
    if (at != known_.rend()) at->second.was_killed = true;
    add_kill(catalog, kill, at != known_.rend() ? &at->first : nullptr, now, batch);
  }
  std::vector<std::pair<OomKill, Process>> found;
  for (Event& event : batch.events) {
    if (event.kind != Event::Kind::process_ended || !event.device_id.empty() || !event.host.empty()) continue;
    const auto at = known_.find({event.pid, event.pid_start_ticks});
    if (at == known_.end()) continue;
    event.killed_by_host = at->second.was_killed;
    if (!event.killed_by_host)
      if (auto kill = oom_.ended(event.pid, at->second.cgroup)) {
        event.killed_by_host = true;
        found.emplace_back(std::move(*kill), at->first);
      }
  }
  for (const auto& [kill, process] : found) add_kill(catalog, kill, &process, now, batch);
  for (const Event& event : batch.events)
    if (event.kind == Event::Kind::process_ended && event.device_id.empty() && event.host.empty())
      known_.erase({event.pid, event.pid_start_ticks});
}

void HostRounds::look_at(Catalog& catalog, const Process& process, Known& known, const HostMemory& machine,
                         Timestamp now, Batch& batch) {
  const auto holds = read_process_memory(proc_root_, process.first);
  if (!holds) return;
  known.anonymous_bytes = holds->anonymous_bytes;
  const HostLimit limit = read_host_limit(cgroup_root_, known.cgroup, machine);
  const auto add_limit = [&](const std::string& name, std::uint64_t bytes) {
    batch.events.push_back(Event{.time = now,
                                 .kind = Event::Kind::capacity,
                                 .device_id = std::string(kHostMemory),
                                 .pid = process.first,
                                 .pid_start_ticks = process.second,
                                 .text = name,
                                 .capacity_bytes = bytes});
  };
  if (limit.name != known.limit_name || limit.bytes != known.limit_bytes) add_limit(limit.name, limit.bytes);
  known.limit_name = limit.name;
  known.limit_bytes = limit.bytes;
  const auto add = [&](Metric metric, std::uint64_t bytes) {
    batch.samples.push_back({now, catalog.intern({metric, known.device_id, process.first, process.second}), bytes});
  };
  add(Metric::host_available, limit.available_bytes);
  add(Metric::host_resident, holds->resident_bytes);
  if (holds->pinned_bytes) add(Metric::host_pinned, *holds->pinned_bytes);
  add(Metric::host_anonymous, holds->anonymous_bytes);
}

void HostRounds::look(Catalog& catalog, Timestamp now, Batch& batch) {
  const auto machine = read_host_memory(proc_root_);
  // Before the holdings of processes: the memory that a device maps from the host ends with this.
  for (const DeviceInfo& device : catalog.devices())
    if (machine && device.shares_host_memory && device.host.empty())
      batch.samples.push_back(
          {now, catalog.intern({Metric::host_available, device.id, 0, 0}), machine->available_bytes});
  oom_.begin();
  for (auto& [process, known] : known_) {
    const ProcessInfo* const info = catalog.process(process.first, process.second);
    if (info == nullptr) continue;
    known.cgroup = info->cgroup;
    oom_.remember(known.cgroup);
    if (machine && known.is_followed) look_at(catalog, process, known, *machine, now, batch);
  }
  oom_.forget_others();
}

void HostRounds::add(Catalog& catalog, Timestamp now, Batch& batch) {
  note_holdings(catalog, batch);
  add_kills(catalog, now, batch);
  // The clock may have been set back.
  if (now < next_ && now >= last_) return;
  last_ = now;
  next_ = now + from_seconds(kPace_s);
  look(catalog, now, batch);
}

}  // namespace vramtrack
