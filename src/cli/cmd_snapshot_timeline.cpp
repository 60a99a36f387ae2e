// snapshot timeline and oom: what was live over the trace, and what filled the device.
#include <fmt/format.h>

#include <algorithm>

#include "cli/cmd_snapshot.hpp"
#include "core/format.hpp"
#include "trace/oom.hpp"
#include "trace/timeline.hpp"
#include "trace/usage.hpp"
#include "trace/words.hpp"

namespace vramtrack::cli {
namespace {

using namespace trace;

constexpr std::size_t kChartColumns = 40;
constexpr std::size_t kStackLines = 4;

std::vector<std::uint32_t> traced_devices(const SnapshotWork& work) {
  std::vector<std::uint32_t> out;
  for (const DeviceTrace& trace : work.snapshots.front().traces)
    if (trace.event_count > 0 && (!work.device() || trace.device == *work.device())) out.push_back(trace.device);
  return out;
}

std::string no_trace(const SnapshotWork& work) {
  return fmt::format(
      "{} has no trace{}: it was recorded without history. Call torch.cuda.memory._record_memory_history() before the "
      "steps; 'vramtrack snapshot summary' works without",
      work.snapshots.front().file, work.device() ? fmt::format(" of device {}", *work.device()) : "");
}

/// People count from 1.
std::string entry_words(const Moment& moment) {
  return number_words(moment.event + 1);
}

/// "+1.234 s", or "entry 1,234" where the trace has no times.
std::string when(const Moment& moment, std::int64_t first_us) {
  if (moment.time_us == kNoTime || first_us == kNoTime) return "entry " + entry_words(moment);
  return fmt::format("+{:.3f} s", static_cast<double>(moment.time_us - first_us) * 1e-6);
}

void sites_text(std::string& out, const SnapshotWork& work, const Profile& sites, std::int64_t total,
                std::string_view indent) {
  std::size_t shown = 0;
  const auto lines = by_line(sites, work.symbols);
  for (const LineBytes& held : lines) {
    if (held.bytes <= 0) break;
    if (shown++ == work.options.snapshot.top) {
      out += fmt::format("{}and {} more lines\n", indent, lines.size() - work.options.snapshot.top);
      break;
    }
    out += fmt::format("{}{:>11} {:>5.1f} % {:>13}  {}\n", indent, bytes_words(held.bytes),
                       100 * static_cast<double>(held.bytes) / static_cast<double>(std::max<std::int64_t>(total, 1)),
                       count_words(static_cast<std::uint64_t>(std::max<std::int64_t>(held.blocks, 0)), "block"),
                       line_words(work.symbols, held));
  }
}

void sites_json(JsonText& j, const SnapshotWork& work, const Profile& sites) {
  j.begin_array();
  for (std::size_t i = 0; i < sites.size() && i < work.options.snapshot.top; ++i) {
    j.begin_object().field("site", site_words(work.symbols, sites[i].stack)).field("bytes", sites[i].bytes);
    j.field("blocks", sites[i].blocks).key("stack");
    stack_json(j, work.symbols, sites[i].stack);
    j.end_object();
  }
  j.end_array();
}

void moment_json(JsonText& j, const Moment& moment) {
  j.field("event", moment.event);
  if (moment.time_us != kNoTime) j.field("time_us", moment.time_us);
  j.field("live_bytes", moment.live_bytes)
      .field("pending_bytes", moment.pending_bytes)
      .field("reserved_bytes", moment.reserved_bytes);
}

void timeline_text(std::string& out, const SnapshotWork& work, const Timeline& t) {
  const std::int64_t first_us = t.begin.time_us;
  out += fmt::format("device {}: {} trace entries; live at the beginning {}, at the end {}\n", t.device,
                     number_words(t.event_count), bytes_words(t.begin.live_bytes), bytes_words(t.end.live_bytes));
  if (t.mismatch_count > 0)
    out += fmt::format("  {} of the trace and of the segments do not agree; figures at the beginning are approximate\n",
                       count_words(t.mismatch_count, "block"));
  std::int64_t highest = 1;
  for (const Moment& point : t.points) highest = std::max(highest, point.live_bytes);
  out += fmt::format(
      "\n  {:<16} {:>11} {:>11}  the highest moment of each stretch; of what the trace saw allocated, who held most\n",
      "when", "live", "reserved");
  for (std::size_t i = 0; i < t.points.size(); ++i) {
    const Moment& point = t.points[i];
    const auto bar = static_cast<std::size_t>(static_cast<double>(kChartColumns) *
                                              static_cast<double>(std::max<std::int64_t>(point.live_bytes, 0)) /
                                              static_cast<double>(highest));
    // The largest that the trace can name: what came before it is in every line, and explains none.
    std::int64_t most = 0;
    std::string site;
    for (std::size_t k = 0; k < t.sites.size(); ++k) {
      if (t.site_bytes[i][k] <= most || t.sites[k] == t.before_trace || t.sites[k] == kNoStack) continue;
      most = t.site_bytes[i][k];
      site = fmt::format("{} {}", bytes_words(most), site_words(work.symbols, t.sites[k]));
    }
    std::string blocks;
    for (std::size_t b = 0; b < bar; ++b) blocks += "\u2588";
    out += fmt::format("  {:<16} {:>11} {:>11}  {} {}\n", when(point, first_us), bytes_words(point.live_bytes),
                       bytes_words(point.reserved_bytes), fit(blocks, kChartColumns), printable(site));
  }
  for (std::size_t i = 0; i < t.peaks.size(); ++i) {
    const Peak& peak = t.peaks[i];
    out += fmt::format("\n  peak {}: {} live at {}{}, {} reserved\n", i + 1, bytes_words(peak.at.live_bytes),
                       when(peak.at, first_us),
                       peak.at.time_us == kNoTime ? "" : fmt::format(" (entry {})", entry_words(peak.at)),
                       bytes_words(peak.at.reserved_bytes));
    if (peak.at.pending_bytes > 0)
      out += fmt::format("    and {} freed but pending\n", bytes_words(peak.at.pending_bytes));
    for (const std::string& name : peak.inside) out += fmt::format("    inside {}\n", printable(name));
    sites_text(out, work, peak.sites, peak.at.live_bytes, "    ");
  }
}

void timeline_json(JsonText& j, const SnapshotWork& work, const Timeline& t) {
  j.begin_object().field("device", t.device).field("entries", t.event_count).field("mismatches", t.mismatch_count);
  j.key("begin").begin_object();
  moment_json(j, t.begin);
  j.end_object().key("end").begin_object();
  moment_json(j, t.end);
  j.end_object().key("sites").begin_array();
  for (const StackId site : t.sites) {
    j.begin_object().field("site", site_words(work.symbols, site)).key("stack");
    stack_json(j, work.symbols, site);
    j.end_object();
  }
  j.end_array().key("points").begin_array();
  for (std::size_t i = 0; i < t.points.size(); ++i) {
    j.begin_object();
    moment_json(j, t.points[i]);
    j.key("site_bytes").begin_array();
    for (const std::int64_t bytes : t.site_bytes[i]) j.value(bytes);
    j.end_array().end_object();
  }
  j.end_array().key("peaks").begin_array();
  for (const Peak& peak : t.peaks) {
    j.begin_object();
    moment_json(j, peak.at);
    j.key("inside").begin_array();
    for (const std::string& name : peak.inside) j.value(name);
    j.end_array().key("sites");
    sites_json(j, work, peak.sites);
    j.end_object();
  }
  j.end_array().end_object();
}

std::string verdict_words(const OomReport& r) {
  switch (r.condition) {
    case Condition::too_big:
      return "TOO BIG";
    case Condition::leak:
      return "LEAK";
    case Condition::fragmentation:
      return "FRAGMENTATION";
    case Condition::pending:
      return "PENDING FREES";
    case Condition::outside:
      return "OUTSIDE THE ALLOCATOR";
    default:
      return "no out-of-memory";
  }
}

void oom_text(std::string& out, const SnapshotWork& work, const OomReport& r, std::int64_t first_us) {
  out += fmt::format("device {}: {}: {}\n", r.device, verdict_words(r), r.because);
  if (!r.next_step.empty()) out += fmt::format("  do: {}\n", r.next_step);
  out += fmt::format("\n  at {}{}{}\n", when(r.at, first_us),
                     r.at.time_us == kNoTime ? "" : fmt::format(" (entry {})", entry_words(r.at)),
                     r.oom_count > 1 ? fmt::format(", the last of {} ooms", r.oom_count) : "");
  const auto row = [&out](std::string_view name, std::uint64_t bytes, std::string_view meaning) {
    out += fmt::format("  {:<16} {:>11}  {}\n", name, bytes_words(bytes), meaning);
  };
  const auto positive = [](std::int64_t bytes) { return static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0)); };
  if (r.has_oom)
    row("asked for", r.asked_bytes, r.asked_by == kNoStack ? "" : printable(site_words(work.symbols, r.asked_by)));
  if (r.has_oom) row("device free", r.device_free_bytes, "as the driver said");
  row("live", positive(r.at.live_bytes), "requested by the program and held");
  row("pending free", positive(r.at.pending_bytes), "freed, a stream still uses it");
  row("cached", r.cached_bytes, "reserved and free");
  row("rounding", r.rounding_bytes, "of block sizes, as in the snapshot's blocks");
  row("reserved", positive(r.at.reserved_bytes), "live + pending + cached + rounding");
  if (r.outside_bytes)
    row("outside", *r.outside_bytes, "used on the device, not reserved here (contexts take up to 2 GiB)");
  else if (r.has_oom)
    out += "  outside          not known: give the device's --capacity\n";
  if (!r.risers.empty()) {
    out += fmt::format("\n  kept rising over {} quiet moments\n", r.valley_count);
    for (std::size_t i = 0; i < r.risers.size() && i < work.options.snapshot.top; ++i) {
      out += fmt::format("    {:>11}  {} > {}  {}\n", change_words(r.risers[i].to_bytes - r.risers[i].from_bytes),
                         bytes_words(r.risers[i].from_bytes), bytes_words(r.risers[i].to_bytes),
                         printable(site_words(work.symbols, r.risers[i].stack)));
      const auto lines = stack_words(work.symbols, r.risers[i].stack, kStackLines);
      for (std::size_t l = 1; l < lines.size(); ++l) out += fmt::format("                   called by {}\n", lines[l]);
    }
  }
  out += "\n  who held it then\n";
  sites_text(out, work, r.sites, r.at.live_bytes, "    ");
}

void oom_json(JsonText& j, const SnapshotWork& work, const OomReport& r) {
  j.begin_object().field("device", r.device).field("has_oom", r.has_oom).field("ooms", r.oom_count);
  j.field("condition", condition_name(r.condition)).field("because", r.because).field("next_step", r.next_step);
  moment_json(j, r.at);
  j.field("cached_bytes", r.cached_bytes);
  j.field("rounding_bytes", r.rounding_bytes);
  if (r.has_oom) j.field("asked_bytes", r.asked_bytes).field("device_free_bytes", r.device_free_bytes);
  if (r.outside_bytes) j.field("outside_bytes", *r.outside_bytes);
  j.field("valleys", r.valley_count).key("risers").begin_array();
  for (const OomReport::Riser& riser : r.risers) {
    j.begin_object().field("site", site_words(work.symbols, riser.stack)).field("from_bytes", riser.from_bytes);
    j.field("to_bytes", riser.to_bytes).key("stack");
    stack_json(j, work.symbols, riser.stack);
    j.end_object();
  }
  j.end_array().key("sites");
  sites_json(j, work, r.sites);
  j.end_object();
}

}  // namespace

TimelineOptions timeline_options(const Options& options) {
  TimelineOptions out;
  out.points = options.json ? 500 : 30;
  out.sites = options.snapshot.top;
  return out;
}

int snapshot_timeline(SnapshotWork& work) {
  const Snapshot& snapshot = work.snapshots.front();
  std::vector<Timeline> timelines;
  for (const StreamReplay& stream : work.streams) timelines.push_back(stream.timeline());
  for (const std::uint32_t device : traced_devices(work))
    timelines.push_back(timeline_of(snapshot, device, work.symbols, timeline_options(work.options)));
  if (timelines.empty()) return work.fail(no_trace(work));
  std::string out;
  JsonText j;
  j.begin_object()
      .field("schema", "vramtrack.snapshot.timeline.v1")
      .field("file", snapshot.file)
      .key("devices")
      .begin_array();
  for (const Timeline& timeline : timelines) {
    if (work.options.json) {
      timeline_json(j, work, timeline);
    } else {
      if (!out.empty()) out += '\n';
      timeline_text(out, work, timeline);
    }
  }
  j.end_array().end_object().newline();
  return work.finish(work.options.json ? j.text() : out, kSnapshotDone);
}

int snapshot_oom(SnapshotWork& work) {
  const Snapshot& snapshot = work.snapshots.front();
  std::vector<std::uint32_t> devices = traced_devices(work);
  if (devices.empty()) return work.fail(no_trace(work));
  // Without --device those that failed; where none did, all.
  std::vector<std::uint32_t> failed;
  for (const std::uint32_t device : devices)
    if (snapshot.trace_of(device)->counts[static_cast<std::size_t>(Action::oom)] > 0) failed.push_back(device);
  if (!work.device() && !failed.empty()) devices = failed;
  std::string out;
  JsonText j;
  j.begin_object()
      .field("schema", "vramtrack.snapshot.oom.v1")
      .field("file", snapshot.file)
      .key("devices")
      .begin_array();
  for (const std::uint32_t device : devices) {
    const std::uint64_t reserved = total_usage(snapshot, device).reserved_bytes;
    if (work.options.capacity_bytes && *work.options.capacity_bytes < reserved)
      return work.fail(
          fmt::format("--capacity: device {} had {} reserved, more than {}; give the capacity of that device", device,
                      bytes_words(reserved), bytes_words(*work.options.capacity_bytes)));
    const OomReport report = oom_of(snapshot, device, work.symbols, work.options.capacity_bytes);
    if (work.options.json) {
      oom_json(j, work, report);
    } else {
      if (!out.empty()) out += '\n';
      oom_text(out, work, report, snapshot.trace_of(device)->first_time_us);
    }
  }
  j.end_array().end_object().newline();
  return work.finish(work.options.json ? j.text() : out, kSnapshotDone);
}

}  // namespace vramtrack::cli
