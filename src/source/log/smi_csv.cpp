#include "source/log/smi_csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "core/errno_words.hpp"
#include "core/printable.hpp"
#include "core/units.hpp"

namespace vramtrack {
namespace {

constexpr std::chrono::sys_days kRelativeBegin{std::chrono::year{2026} / 1 / 1};

/// "2026/01/05 08:00:00.000Z": unlike nvidia-smi's, with its zone, so that it is read alike on every machine.
std::string smi_stamp(Timestamp time, bool relative) {
  if (relative) time += kRelativeBegin.time_since_epoch();
  std::string stamp = iso8601(time);
  stamp.pop_back();
  if (stamp.size() == 19) stamp += ".000";
  stamp[4] = stamp[7] = '/';
  stamp[10] = ' ';
  return relative ? stamp : stamp + 'Z';
}

/// A comma within a value would end its column.
std::string field(std::string_view text) {
  std::string out = printable(text);
  std::replace(out.begin(), out.end(), ',', ' ');
  return out.empty() ? "[N/A]" : out;
}

Status open(std::ofstream& out, const std::string& path, std::string_view header) {
  if (path.empty()) return {};
  out.open(path, std::ios::binary | std::ios::trunc);
  if (!out) return fail(fmt::format("cannot write {}: {}; choose another place", path, errno_words(errno)));
  out << header;
  return {};
}

Status finish(std::ofstream& out, const std::string& path) {
  if (!out.is_open()) return {};
  out.close();
  if (out) return {};
  return fail(fmt::format("cannot write all of {}; free some space or choose another place", path));
}

}  // namespace

Result<SmiCsv> SmiCsv::create(const std::string& device_path, const std::string& process_path) {
  SmiCsv log;
  log.device_path_ = device_path;
  log.process_path_ = process_path;
  if (Status ok = open(log.devices_, device_path,
                       "timestamp, index, uuid, name, memory.used [MiB], memory.total [MiB], utilization.gpu [%]\n");
      !ok)
    return fail(ok.error());
  if (Status ok = open(log.processes_, process_path, "timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n");
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
    if (key.metric == Metric::device_used && devices_.is_open()) {
      const DeviceInfo* d = catalog.device(device_key(key));
      if (d == nullptr) continue;
      const std::string total = d->capacity_bytes ? fmt::format("{} MiB", *d->capacity_bytes / kBytesPerMiB) : "[N/A]";
      const auto busy = busy_percent_.find(key.device_id);
      devices_ << fmt::format("{}, {}, {}, {}, {} MiB, {}, {}\n", stamp, d->index.value_or(0), key.device_id,
                              field(d->name), sample.bytes / kBytesPerMiB, total,
                              busy == busy_percent_.end() ? "[N/A]" : fmt::format("{} %", busy->second));
    } else if (key.metric == Metric::process_used && processes_.is_open()) {
      const ProcessInfo* p = catalog.process(process_key(key));
      const std::string command = p == nullptr ? std::string() : p->command.empty() ? p->name : p->command;
      processes_ << fmt::format("{}, {}, {}, {}, {} MiB\n", stamp, key.device_id, key.pid, field(command),
                                sample.bytes / kBytesPerMiB);
    }
  }
}

Status SmiCsv::close() {
  Status devices = finish(devices_, device_path_);
  Status processes = finish(processes_, process_path_);
  return devices ? processes : devices;
}

}  // namespace vramtrack
