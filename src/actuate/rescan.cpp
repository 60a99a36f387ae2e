#include "actuate/rescan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/format.hpp"
#include "core/printable.hpp"
#include "fleet/packed.hpp"
#include "fleet/scan.hpp"

namespace vramtrack::actuate {
namespace {

/// Prometheus' default lookback.
constexpr double kStale_s = 300;
constexpr double kFirstPause_s = 0.5;

std::optional<fleet::Matcher> named_by(const Labels& labels) {
  for (const char* name : {"UUID", "uuid", "gpu_uuid", "Hostname", "hostname"})
    if (const auto at = labels.find(name); at != labels.end() && !at->second.empty())
      return fleet::Matcher{at->first, at->second, false};
  return std::nullopt;
}

SeriesView series_of(const fleet::GpuVerdict& gpu) {
  SeriesView s;
  s.key.metric = Metric::device_used;
  s.key.device_id = gpu.device.id;
  s.key.host = gpu.device.host;
  s.device = gpu.device;
  s.verdict = gpu.verdict;
  s.alerts = gpu.alerts;
  s.used_bytes = gpu.used_bytes;
  s.samples = gpu.samples;
  s.first = gpu.first;
  s.last = gpu.last;
  return s;
}

}  // namespace

Result<Witness> rescan(const fleet::Reader& reader, const RescanOptions& options, const Labels& labels, Timestamp now) {
  const auto only = named_by(labels);
  if (!only)
    return fail("the alert names no GPU and no machine: it has none of UUID, uuid, gpu_uuid, Hostname, hostname");
  fleet::ScanOptions asked;
  asked.config = options.config;
  asked.threads = 1;
  asked.first_pause_s = kFirstPause_s;
  asked.plan.only = {*only};
  asked.plan.end_ms = fleet::ms_of(now);
  asked.plan.start_ms = fleet::ms_of(now - from_seconds(options.since_s));
  const auto scanned = fleet::scan(reader, *options.mapping, asked, [](std::size_t, std::size_t, std::uint64_t) {});
  const std::string server = reader.origin();
  if (!scanned) return fail(fmt::format("{}: {}", server, printable(scanned.error().why)));
  if (!scanned->unread.empty()) return fail(fmt::format("{}: {}", server, printable(scanned->unread.front().why)));
  Witness witness;
  for (const fleet::MachineVerdict& machine : scanned->machines)
    for (const fleet::GpuVerdict& gpu : machine.gpus) {
      if (&machine != &scanned->machines.front())
        return fail(fmt::format("{}: {}=\"{}\" belongs to several machines: {} and {}", server, only->name,
                                printable(only->value), printable(witness.host), printable(gpu.device.host)));
      witness.host = gpu.device.host;
      witness.view.series.push_back(series_of(gpu));
      witness.view.time = std::max(witness.view.time, gpu.last);
    }
  if (witness.view.series.empty())
    return fail(fmt::format("{} has no memory series for {}=\"{}\"", server, only->name, printable(only->value)));
  if (const double age_s = seconds_between(witness.view.time, now); age_s > kStale_s)
    return fail(fmt::format("{}: the last sample of {}=\"{}\" is {} old", server, only->name, printable(only->value),
                            format_duration(age_s)));
  return witness;
}

}  // namespace vramtrack::actuate
