#include "host/process_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <tuple>

#include "core/framework.hpp"

namespace vramtrack {
namespace {

/// Pauses before the second, third and fourth read of a process's maps.
constexpr std::array kMapsPauses = {std::chrono::seconds(10), std::chrono::seconds(60), std::chrono::seconds(300)};
/// The kernel counts CPU time in hundredths of a second: over a shorter time than this, the share would jump.
constexpr double kCpuWindow_s = 0.9;

}  // namespace

ProcessWatch::ProcessWatch(std::string proc_root, Catalog& catalog)
    : proc_root_(std::move(proc_root)), catalog_(catalog) {}

std::size_t ProcessWatch::device(const std::string& device_id) {
  const auto found = std::find(device_ids_.begin(), device_ids_.end(), device_id);
  if (found != device_ids_.end()) return static_cast<std::size_t>(found - device_ids_.begin());
  device_ids_.push_back(device_id);
  unanswered_in_poll_.push_back(0);
  return device_ids_.size() - 1;
}

void ProcessWatch::begin(Timestamp now) {
  now_ = now;
  ++poll_;
}

bool ProcessWatch::visible(std::uint32_t pid) {
  return process_alive(proc_root_, pid, path_).has_value();
}

void ProcessWatch::unanswered(std::size_t device) {
  unanswered_in_poll_[device] = poll_;
}

void ProcessWatch::listed(std::size_t device, std::uint32_t pid, std::optional<std::uint64_t> bytes,
                          std::string_view kind, std::optional<double> gpu_ratio) {
  Entry& entry = entries_[pid];
  if (entry.checked_in_poll != poll_) check_identity(pid, entry);
  entry.listed_in_poll = poll_;
  if (!kind.empty() && entry.info.kind != kind) {
    entry.info.kind = kind;
    catalog_.describe(entry.info);
  }
  Holding& held = holding(entry, device);
  held.listed_in_poll = poll_;
  held.bytes = bytes;
  held.gpu_ratio = gpu_ratio;
  held.open = true;
}

void ProcessWatch::check_identity(std::uint32_t pid, Entry& entry) {
  const bool known = entry.checked_in_poll != 0;
  entry.checked_in_poll = poll_;
  const auto alive = process_alive(proc_root_, pid, path_);
  if (known && (!alive || alive->start_ticks == entry.info.start_ticks)) {
    // Still listed although it has ended: the driver is tearing it down and its memory is still held, so the series
    // continues under its old identity, without a load.
    if (alive)
      note_load(entry, *alive);
    else
      entry.cpu_ratio.reset(), entry.host_bytes.reset();
    if (alive && entry.maps_reads <= static_cast<int>(kMapsPauses.size()) && now_ >= entry.next_maps_read)
      read_framework(entry);
    return;
  }
  if (known) {
    retire_unsampled(entry);
    pending_events_.push_back(Event{.time = now_,
                                    .kind = Event::Kind::process_ended,
                                    .device_id = {},
                                    .pid = pid,
                                    .pid_start_ticks = entry.info.start_ticks,
                                    .text = "its pid belongs to another process now"});
  }
  entry = Entry{};
  entry.checked_in_poll = poll_;
  identify(pid, entry);
  if (alive) note_load(entry, *alive);
}

void ProcessWatch::note_load(Entry& entry, const Alive& alive) const {
  entry.host_bytes = alive.resident_bytes;
  const bool first = entry.cpu_read == Timestamp::min();
  const double passed_s = first ? 0 : seconds_between(entry.cpu_read, now_);
  if (!first && passed_s >= 0 && passed_s < kCpuWindow_s) return;
  if (passed_s > 0) entry.cpu_ratio = std::max(0.0, alive.cpu_s - entry.cpu_s) / passed_s;
  entry.cpu_s = alive.cpu_s;
  entry.cpu_read = now_;
}

void ProcessWatch::identify(std::uint32_t pid, Entry& entry) {
  if (auto info = read_process(proc_root_, pid)) entry.info = std::move(*info);
  entry.info.pid = pid;
  if (entry.info.start_ticks != 0) read_framework(entry);
  catalog_.describe(entry.info);
}

void ProcessWatch::read_framework(Entry& entry) {
  const auto pause = static_cast<std::size_t>(entry.maps_reads);
  if (pause < kMapsPauses.size()) entry.next_maps_read = now_ + kMapsPauses[pause];
  const bool first = entry.maps_reads++ == 0;
  // The title may have been set since; an exec keeps the start ticks and changes everything else.
  if (!first)
    if (auto info = read_process(proc_root_, entry.info.pid); info && info->start_ticks == entry.info.start_ticks) {
      info->kind = entry.info.kind;
      info->framework = entry.info.framework;
      entry.info = std::move(*info);
    }
  const MappedNames mapped = read_mapped_names(proc_root_, entry.info.pid);
  entry.maps_denied = mapped.access == MappedNames::Access::denied;
  const std::string_view framework = recognise_framework(entry.info.command, entry.info.name, mapped.names);
  if (!framework.empty()) entry.info.framework = framework;
  if (!first) catalog_.describe(entry.info);
}

ProcessWatch::Holding& ProcessWatch::holding(Entry& entry, std::size_t device) {
  const auto at = std::find_if(entry.holdings.begin(), entry.holdings.end(),
                               [&](const Holding& held) { return held.device >= device; });
  if (at != entry.holdings.end() && at->device == device) return *at;
  const SeriesKey key{Metric::process_used, device_ids_[device], entry.info.pid, entry.info.start_ticks};
  Holding fresh;
  fresh.device = device;
  fresh.series = catalog_.intern(key);
  return *entry.holdings.insert(at, fresh);
}

void ProcessWatch::retire_unsampled(const Entry& entry) {
  for (const Holding& held : entry.holdings)
    if (!held.sampled) catalog_.retire(held.series);
}

bool ProcessWatch::close_entry(std::uint32_t pid, Entry& entry, Batch& out) {
  const bool listed = entry.listed_in_poll == poll_;
  const bool resolved = entry.info.start_ticks != 0;
  bool alive = listed;
  bool any_unanswered = false;
  for (const Holding& held : entry.holdings)
    any_unanswered = any_unanswered || (held.open && unanswered_in_poll_[held.device] == poll_);
  if (!listed && resolved) {
    const auto now_alive = process_alive(proc_root_, pid, path_);
    alive = now_alive && now_alive->start_ticks == entry.info.start_ticks;
  } else if (!listed) {
    alive = any_unanswered;
  }
  if (!alive) {
    retire_unsampled(entry);
    out.events.push_back(Event{.time = now_,
                               .kind = Event::Kind::process_ended,
                               .device_id = {},
                               .pid = pid,
                               .pid_start_ticks = entry.info.start_ticks,
                               .text = resolved ? "" : "no longer listed by the driver"});
    return true;
  }
  if (!resolved) ++unseen_.unresolved;
  if (entry.maps_denied && entry.info.framework.empty()) ++unseen_.maps_denied;
  for (Holding& held : entry.holdings) {
    if (held.listed_in_poll == poll_) {
      if (const ProcessLoad load{held.gpu_ratio, entry.cpu_ratio, entry.host_bytes}; !(load == ProcessLoad{}))
        out.loads.push_back({now_, held.series, load});
      if (held.bytes) {
        out.samples.push_back({now_, held.series, *held.bytes});
        held.sampled = true;
      } else {
        ++unseen_.without_bytes;
        withholding_.insert(device_ids_[held.device]);
      }
    } else if (held.open && unanswered_in_poll_[held.device] != poll_) {
      held.open = false;
      out.loads.push_back({now_, held.series, {}});
      // That a process whose bytes were never known is no longer listed does not show that it holds none.
      if (held.bytes) out.samples.push_back({now_, held.series, 0});
    }
  }
  return false;
}

void ProcessWatch::end(Batch& out) {
  unseen_ = Unseen{};
  const auto first = static_cast<std::ptrdiff_t>(out.events.size());
  out.events.insert(out.events.end(), pending_events_.begin(), pending_events_.end());
  pending_events_.clear();
  for (auto it = entries_.begin(); it != entries_.end();) {
    if (close_entry(it->first, it->second, out))
      it = entries_.erase(it);
    else
      ++it;
  }
  catalog_.processes_are_listed = unseen_.without_bytes == 0;
  catalog_.devices_withholding = std::move(withholding_);
  withholding_.clear();
  std::sort(out.events.begin() + first, out.events.end(), [](const Event& a, const Event& b) {
    return std::tie(a.pid, a.pid_start_ticks) < std::tie(b.pid, b.pid_start_ticks);
  });
}

std::vector<std::string> unseen_warnings(const Unseen& unseen, bool unprivileged) {
  std::vector<std::string> warnings;
  const auto processes = [](std::size_t n) { return fmt::format("{} process{}", n, n == 1 ? "" : "es"); };
  if (unseen.unresolved != 0)
    warnings.push_back(fmt::format(
        "{} GPU memory {} not in /proc (another pid namespace, or hidden): user, command, "
        "container and framework unknown; run vramtrack in the host's pid namespace ({})",
        processes(unseen.unresolved) + (unseen.unresolved == 1 ? " that holds" : " that hold"),
        unseen.unresolved == 1 ? "is" : "are",
        unprivileged ? "or as root, where /proc is mounted with hidepid" : "hostPID: true, or docker run --pid=host"));
  if (unseen.maps_denied != 0)
    warnings.push_back(
        fmt::format("maps of {} of other users are not readable: framework unknown; run as root or with CAP_SYS_PTRACE",
                    processes(unseen.maps_denied)));
  if (unseen.without_bytes != 0)
    warnings.push_back(
        fmt::format("the driver does not report how much GPU memory {}: only the devices are watched, not these "
                    "processes; run as root, or on the host if this is a container or a MIG slice",
                    processes(unseen.without_bytes) + (unseen.without_bytes == 1 ? " holds" : " hold")));
  return warnings;
}

}  // namespace vramtrack
