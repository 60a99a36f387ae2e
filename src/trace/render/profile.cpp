// Renders the profile of a moment with its title, and its flame graph.
#include <fmt/format.h>

#include <algorithm>

#include "core/format.hpp"
#include "core/option.hpp"
#include "trace/exports.hpp"
#include "trace/render/render.hpp"

namespace vramtrack::trace {
namespace {

std::int64_t total_of(const Profile& profile) {
  std::int64_t total = 0;
  for (const StackBytes& held : profile) total += std::max<std::int64_t>(held.bytes, 0);
  return total;
}

}  // namespace

Result<NamedProfile> named_profile(const Snapshot& snapshot, Symbols& symbols, std::optional<std::uint32_t> device,
                                   bool at_peak) {
  const std::string of = device ? fmt::format("device {}", *device) : "all devices";
  if (!at_peak) return NamedProfile{live_profile(snapshot, device), fmt::format("Live GPU memory by stack, {}", of)};
  std::optional<Peak> highest;
  std::uint32_t peak_device = 0;
  for (const DeviceTrace& trace : snapshot.traces) {
    if (trace.events.empty() || (device && trace.device != *device)) continue;
    TimelineOptions options;
    options.points = 1;
    options.peaks = 1;
    const Timeline timeline = timeline_of(snapshot, trace.device, symbols, options);
    if (timeline.peaks.empty() || (highest && highest->at.live_bytes >= timeline.peaks.front().at.live_bytes)) continue;
    highest = timeline.peaks.front();
    peak_device = trace.device;
  }
  if (!highest)
    return fail(
        fmt::format("{0}: {1} has no trace to find a peak in; leave out {0}", name_of(Option::peak), snapshot.file));
  return NamedProfile{highest->sites, fmt::format("GPU memory by stack at the peak of device {} (trace entry {})",
                                                  peak_device, format_number(highest->at.event + 1))};
}

Result<std::string> flamegraph_page(const Snapshot& snapshot, const NamedProfile& named, const Symbols& symbols) {
  const std::int64_t total_bytes = total_of(named.profile);
  if (total_bytes == 0) return fail(fmt::format("{}: nothing to draw: there is no live block", snapshot.file));
  const std::string subtitle =
      fmt::format("{}: {} requested and held, {}; the width of a frame is its bytes", printable(snapshot.file),
                  format_size(total_bytes), format_count(named.profile.size(), "stack"));
  if (!named.line_of) return flamegraph_html(named.profile, symbols, named.title, subtitle);
  return flamegraph_html(named.profile, symbols, named.line_of, named.title, subtitle);
}

}  // namespace vramtrack::trace
