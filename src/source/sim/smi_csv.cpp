#include "source/sim/smi_csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/printable.hpp"
#include "core/units.hpp"

namespace vramtrack {
namespace {

constexpr std::chrono::sys_days kRelativeBegin{std::chrono::year{2026} / 1 / 1};

/// "2026/01/05 08:00:00.000Z": unlike nvidia-smi's, with a zone, so that it means the same on every machine.
std::string smi_stamp(Timestamp time, bool relative) {
  if (relative) time += kRelativeBegin.time_since_epoch();
  std::string stamp = iso8601(time);
  stamp.pop_back();
  if (stamp.size() == 19) stamp += ".000";
  stamp[4] = stamp[7] = '/';
  stamp[10] = ' ';
  return relative ? stamp : stamp + 'Z';
}

/// A comma within a value would split its column.
std::string field(std::string_view text) {
  std::string out = printable(text);
  std::replace(out.begin(), out.end(), ',', ' ');
  return out.empty() ? "[N/A]" : out;
}

Status begin(std::optional<OutputFile>& out, const std::string& path, std::string_view header) {
  if (path.empty()) return {};
  auto opened = OutputFile::open(path, OutputFile::Writes::at_once);
  if (!opened) return fail(opened.error());
  out.emplace(std::move(*opened)).write(header);
  return {};
}

Status finish(std::optional<OutputFile>& out) {
  return out ? out->finish() : Status();
}

}  // namespace

Result<SmiCsv> SmiCsv::create(const std::string& device_path, const std::string& process_path) {
  SmiCsv log;
  if (Status ok = begin(log.devices_, device_path,
                        "timestamp, index, uuid, name, memory.used [MiB], memory.total [MiB], utilization.gpu [%]\n");
      !ok)
    return fail(ok.error());
  if (Status ok =
          begin(log.processes_, process_path, "timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n");
      !ok)
    return fail(ok.error());
  return log;
}

void SmiCsv::write(const Batch& tick, const Catalog& catalog) {
  for (const Sample& sample : tick.samples)
    if (const SeriesKey& key = catalog.key(sample.series); key.metric == Metric::device_busy)
      busy_percent_[key.device_id] = std::lround(static_cast<double>(sample.bytes) / kBusyWhole * 100);
  for (const Sample& sample : tick.samples) {
    const SeriesKey& key = catalog.key(sample.series);
    const std::string stamp = smi_stamp(sample.time, catalog.clock_is_relative);
    if (key.metric == Metric::device_used && devices_) {
      const DeviceInfo* d = catalog.device(device_key(key));
      if (d == nullptr) continue;
      const std::string total = d->capacity_bytes ? fmt::format("{} MiB", *d->capacity_bytes / kBytesPerMiB) : "[N/A]";
      const auto busy = busy_percent_.find(key.device_id);
      devices_->write(fmt::format("{}, {}, {}, {}, {} MiB, {}, {}\n", stamp, d->index.value_or(0), key.device_id,
                                  field(d->name), sample.bytes / kBytesPerMiB, total,
                                  busy == busy_percent_.end() ? "[N/A]" : fmt::format("{} %", busy->second)));
    } else if (key.metric == Metric::process_used && processes_) {
      const ProcessInfo* p = catalog.process(process_key(key));
      const std::string command = p == nullptr ? std::string() : p->command.empty() ? p->name : p->command;
      processes_->write(fmt::format("{}, {}, {}, {}, {} MiB\n", stamp, key.device_id, key.pid, field(command),
                                    sample.bytes / kBytesPerMiB));
    }
  }
}

Status SmiCsv::close() {
  Status devices = finish(devices_);
  Status processes = finish(processes_);
  return devices ? processes : devices;
}

}  // namespace vramtrack
