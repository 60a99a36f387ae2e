// Facts besides memory, as samples of their own (core/series.hpp): which series they help to judge.
#include "engine/engine_core.hpp"

namespace vramtrack {

/// The reading is about the time before it, and belongs to no tick: it applies to the samples that follow.
void Engine::Core::take_fact(const Sample& sample, const SeriesKey& key) {
  const auto value = static_cast<double>(sample.bytes);
  DeviceState* const device = series.find(device_key(key));
  switch (key.metric) {
    case Metric::device_busy:
      if (device != nullptr) take_busy(*device, sample.time, value / kBusyWhole);
      return;
    case Metric::device_received:
      if (device != nullptr) take_received(*device, sample.time, value);
      return;
    case Metric::process_busy:
      series.for_process(process_key(key), [&](SeriesState& s) {
        if (s.key.device_id != key.device_id || s.ended) return;
        s.reports_busy = true;
        s.has_run = s.has_run || value > 0;
        s.ensure_facts().busy(sample.time, value / kBusyWhole);
      });
      return;
    case Metric::process_read: {
      std::size_t devices = 0;
      series.for_process(process_key(key), [&](const SeriesState& s) {
        if (s.key.metric == Metric::process_used && !s.ended && s.last_bytes > 0) ++devices;
      });
      series.for_process(process_key(key), [&](SeriesState& s) {
        if (s.ended) return;
        s.ensure_facts().set_devices(devices);
        s.ensure_facts().read(sample.time, value);
      });
      return;
    }
    case Metric::process_clients:
      if (value <= 0) return;
      series.for_process(process_key(key), [&](SeriesState& s) {
        if (s.ensure_facts().kind() == ProgramKind::unknown) s.ensure_facts().set_kind(ProgramKind::serving);
      });
      return;
    case Metric::process_age:
      series.for_process(process_key(key), [&](SeriesState& s) {
        if (s.ended) return;
        s.ensure_facts().set_begin(sample.time - from_seconds(value));
        take_age(*s.device);
        if (runs) runs->update_begin(s);
      });
      return;
    case Metric::host_available:
      if (key.pid == 0) {  // what a device that shares the host's memory can still get of it
        if (device != nullptr && device->used != nullptr)
          device->host_end_bytes = static_cast<double>(device->used->last_bytes) + value;
        return;
      }
      [[fallthrough]];
    case Metric::host_resident:
    case Metric::host_pinned:
      return hosts.take(key, sample.bytes);
    default:
      return;
  }
}

/// How busy a device is also applies to its total, and to a process that has it to itself.
void Engine::Core::take_busy(DeviceState& device, Timestamp time, double ratio) const {
  if (SeriesState* const total = device.total()) total->ensure_facts().busy(time, ratio);
  for (const SeriesId id : device.living) {
    SeriesState* const s = series.find(id);
    if (s == nullptr || s->reports_busy) continue;
    if (device.living.size() == 1)
      s->ensure_facts().busy(time, ratio);
    else if (s->facts)
      s->facts->forget_busy();
  }
}

/// The same for what it receives.
void Engine::Core::take_received(DeviceState& device, Timestamp time, double bytes_per_s) const {
  if (SeriesState* const total = device.total()) total->ensure_facts().received(time, bytes_per_s);
  for (const SeriesId id : device.living) {
    SeriesState* const s = series.find(id);
    if (s == nullptr) continue;
    if (device.living.size() == 1)
      s->ensure_facts().received(time, bytes_per_s);
    else if (s->facts)
      s->facts->forget_received();
  }
}

/// The age of a process is that of its device's total while nobody else uses the device.
void Engine::Core::take_age(DeviceState& device) const {
  SeriesState* const total = device.total();
  if (total == nullptr || device.living.empty()) return;
  const SeriesState* const s = series.find(*device.living.begin());
  if (device.living.size() == 1)
    total->ensure_facts().set_begin(s != nullptr && s->facts ? s->facts->begin() : std::nullopt);
  else if (total->facts)
    total->facts->set_begin(std::nullopt);
}

/// The process that held this memory will not come back.
void Engine::Core::retire_facts(const SeriesKey& memory) {
  SeriesKey fact = memory;
  for (const Metric metric : {Metric::process_busy, Metric::process_read, Metric::process_clients, Metric::process_age,
                              Metric::host_resident, Metric::host_pinned, Metric::host_available}) {
    fact.metric = metric;
    if (const auto id = catalog.find(fact)) catalog.retire(*id);
  }
}

void Engine::Core::describe_kind(SeriesState& s) const {
  const ProcessInfo* const process = s.key.pid != 0 ? catalog.process(process_key(s.key)) : nullptr;
  if (process == nullptr || s.ended) return;
  const std::string& command = process->command.empty() ? process->name : process->command;
  const ProgramKind kind = program_of(command, process->name, process->kind).kind;
  if (kind != ProgramKind::unknown) s.ensure_facts().set_kind(kind);
}

}  // namespace vramtrack
