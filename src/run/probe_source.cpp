#include "run/probe_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "host/process.hpp"
#include "run/run_trace.hpp"

namespace vramtrack::run {

const std::string& ProbeSource::describe(int number, const ProbedDevice& device) {
  auto [found, is_new] = ids_.try_emplace({number, device.uuid});
  if (!is_new) return found->second;
  found->second = device.uuid.empty() ? fmt::format("device {}", number) : device.uuid;
  // A driver's source provides more about the device than the API reports.
  if (catalog_.device({found->second, ""}) == nullptr) {
    DeviceInfo info;
    info.id = found->second;
    info.index = number;
    info.name = device.name;
    if (device.total_bytes > 0) info.capacity_bytes = device.total_bytes;
    catalog_.describe(info);
  }
  return found->second;
}

Result<Progress> ProbeSource::poll(Timestamp now, Batch& out) {
  for (const ProbedProcess& process : collector_.processes()) {
    if (process.index >= facts_.size() || !collector_.is_running(process.index)) continue;
    if (const ProcessKey key{process.pid, process.start_ticks, ""}; catalog_.process(key) == nullptr) {
      ProcessInfo info;
      info.pid = process.pid;
      info.start_ticks = process.start_ticks;
      catalog_.describe(read_process("/proc", process.pid).value_or(info));
    }
    for (const auto& [number, device] : facts_[process.index].devices()) {
      if (number < 0) continue;
      const std::string& id = describe(number, device);
      const auto add = [&](Metric metric, std::uint64_t bytes) {
        out.samples.push_back({now, catalog_.intern({metric, id, process.pid, process.start_ticks, ""}), bytes});
      };
      const std::int64_t held = collector_.held_bytes(process.index, static_cast<std::size_t>(number));
      add(Metric::probe_live, static_cast<std::uint64_t>(std::max<std::int64_t>(0, held)));
      if (device.reserved_bytes == 0) continue;
      add(Metric::allocator_allocated, device.allocated_bytes);
      add(Metric::allocator_reserved, device.reserved_bytes);
    }
  }
  if (lifetimes_ == nullptr) return Progress::more;
  for (trace::ProcessLifetimes& process : lifetimes_->report(static_cast<double>(realtime_us()) * 1e-6))
    out.events.push_back(trace::event_of(std::move(process), now));
  return Progress::more;
}

}  // namespace vramtrack::run
