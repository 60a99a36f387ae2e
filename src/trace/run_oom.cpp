#include "trace/run_oom.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>

#include "core/format.hpp"
#include "core/json_text.hpp"
#include "core/option.hpp"
#include "core/order.hpp"
#include "trace/render/parts.hpp"

namespace vramtrack::trace {
namespace {

const ProcessTrace* first_failed(const ProbeTrace& trace) {
  const ProcessTrace* first = nullptr;
  const auto when = [](const ProcessTrace& process) {
    return process.process().begin_realtime_us + static_cast<std::int64_t>(process.failure()->time_us);
  };
  for (const auto& process : trace.processes())
    if (process->failure() != nullptr && (first == nullptr || when(*process) < when(*first))) first = process.get();
  return first;
}

std::uint32_t key_of(const SiteLine& line) {
  return line.is_known ? index_of(line.frame) : IdTable::kNone;
}

std::vector<OomSite> sites_at(const ProcessTrace& process, ProbeNames& names, const TraceReport& report) {
  const MemoryFailure& failure = *process.failure();
  std::map<std::uint32_t, OomSite> by_line;
  for (std::size_t i = 0; i < failure.sites.size(); ++i) {
    const CallSite& site = process.sites()[i];
    if (failure.sites[i].blocks <= 0 || site.space != MemorySpace::device || site.device != failure.device) continue;
    const SiteLine line = names.line(names.stack(process, site.stack));
    OomSite& its = by_line[key_of(line)];
    its.line = line;
    if (const probe::CallInfo* info = probe::info_of(site.call)) its.call = info->name;
    its.live.bytes += failure.sites[i].bytes;
    its.live.blocks += failure.sites[i].blocks;
  }
  for (const ReportSite& site : report.sites)
    if (const auto found = by_line.find(key_of(site.line));
        found != by_line.end() && site.leak && site.space == MemorySpace::device)
      found->second.leak = true;
  std::vector<OomSite> sites;
  for (auto& [key, site] : by_line) sites.push_back(site);
  order(sites, [](const OomSite& a, const OomSite& b) { return a.live.bytes > b.live.bytes; });
  return sites;
}

/// Uses the records made at this failure, because a run may have several.
void find_others(const ProbeTrace& trace, const std::string& uuid, std::int64_t failed_us, RunOom& oom) {
  constexpr std::int64_t kOneLookUs = 2'000'000;
  std::int64_t nearest = std::numeric_limits<std::int64_t>::max();
  for (const ProbeHolder& holder : trace.holders())
    nearest = std::min(nearest, std::abs(holder.realtime_us - failed_us));
  for (const ProbeHolder& holder : trace.holders()) {
    if (holder.device_uuid != uuid || holder.pid == oom.pid) continue;
    if (std::abs(holder.realtime_us - failed_us) > nearest + kOneLookUs) continue;
    oom.others.push_back(holder);
    oom.others_bytes += holder.bytes;
  }
  order(oom.others, [](const ProbeHolder& a, const ProbeHolder& b) { return a.bytes > b.bytes; });
}

std::string size(std::int64_t bytes) {
  return format_size(bytes);
}
std::string size(std::uint64_t bytes) {
  return format_size(static_cast<std::int64_t>(bytes));
}

std::string place(const SiteLine& line, std::string_view call, const Symbols& symbols) {
  return line.is_known ? printable(frame_words(symbols, line.frame)) : fmt::format("(no stack recorded) {}", call);
}

std::string refusal(const RunOom& oom) {
  return fmt::format("the limit{} refused it; the device itself was not asked",
                     oom.limit_bytes == 0 ? "" : " of " + size(oom.limit_bytes));
}

/// Decides on the cause: whatever accounts for half of the memory would have to change.
void conclude(RunOom& oom, const TraceReport& report, const Symbols& symbols) {
  std::int64_t leaked = 0;
  for (const OomSite& site : oom.sites)
    if (site.leak) leaked += site.live.bytes;
  const auto half = static_cast<std::uint64_t>(std::max<std::int64_t>(0, oom.held_bytes)) / 2;
  if (leaked > 0 && 2 * leaked >= oom.live_bytes) {
    oom.cause = RunOomCause::leak;
    oom.because = fmt::format("leaking lines held {} of the {} that were live", size(leaked), size(oom.live_bytes));
    const auto worst =
        std::max_element(report.findings.begin(), report.findings.end(), [](const Finding& a, const Finding& b) {
          return std::pair(a.leak, a.live.bytes) < std::pair(b.leak, b.live.bytes);
        });
    const ReportSite& site = report.sites[worst->sites.front()];
    oom.next_step = worst->keeper
                        ? advice_on(*worst)
                        : fmt::format("find what keeps the memory of {}", place(site.line, site.call, symbols));
  } else if (oom.asked_bytes > 0 &&
             static_cast<std::uint64_t>(std::max<std::int64_t>(0, oom.cached_bytes)) >= oom.asked_bytes) {
    oom.cause = RunOomCause::fragmentation;
    oom.because = fmt::format("the framework had {} cached, but not in one piece", size(oom.cached_bytes));
    oom.next_step = "with PyTorch, set PYTORCH_ALLOC_CONF=expandable_segments:True";
  } else if (oom.is_refused) {
    oom.cause = RunOomCause::limit;
    oom.because = refusal(oom);
    oom.next_step = fmt::format("raise {}, or reduce the largest line below", name_of(Option::limit));
  } else if (oom.others_bytes > half && oom.others_bytes >= oom.asked_bytes) {
    oom.cause = RunOomCause::others;
    oom.because = fmt::format("other processes held {} of the device", size(oom.others_bytes));
    oom.next_step = "run on a device of your own, or end what no longer needs its memory";
  } else if (oom.asked_bytes > half) {
    oom.cause = RunOomCause::request;
    oom.because = "the allocation itself was larger than half of all that the process held";
    oom.next_step = "reduce it: a smaller batch, shorter sequences, or one chunk at a time";
  } else {
    oom.because = "the program's own live memory filled the device";
    oom.next_step = "reduce the largest line below: a smaller batch, checkpointing, or a lower precision";
  }
}

}  // namespace

std::optional<RunOom> oom_of_run(const ProbeTrace& trace, ProbeNames& names, const TraceReport& report) {
  const ProcessTrace* process = first_failed(trace);
  if (process == nullptr) return std::nullopt;
  const MemoryFailure& failure = *process->failure();
  RunOom oom;
  oom.pid = process->process().pid;
  oom.command = process->command();
  oom.after_s = static_cast<double>(failure.time_us) * 1e-6;
  oom.asked_bytes = failure.asked_bytes;
  oom.asked_by = names.line(names.stack(*process, failure.stack));
  oom.is_refused = failure.is_refused;
  oom.limit_bytes = failure.limit_bytes;
  if (!failure.is_refused && failure.figure_bytes > 0) oom.device_free_bytes = failure.figure_bytes;
  oom.cached_bytes = failure.cached_bytes;
  oom.sites = sites_at(*process, names, report);
  for (const OomSite& site : oom.sites) oom.live_bytes += site.live.bytes;
  oom.held_bytes = oom.live_bytes + oom.cached_bytes;
  oom.device = device_words(failure.device, {});
  if (const auto known = process->devices().find(failure.device); known != process->devices().end()) {
    const DeviceOfTrace& device = known->second;
    oom.device = device_words(failure.device, device.name);
    if (device.total_bytes > 0) oom.total_bytes = device.total_bytes;
    find_others(trace, device.uuid, process->process().begin_realtime_us + static_cast<std::int64_t>(failure.time_us),
                oom);
  }
  conclude(oom, report, names.symbols());
  return oom;
}

std::string run_oom_text(const RunOom& oom, const ProbeNames& names, std::size_t sites) {
  const Symbols& symbols = names.symbols();
  std::string out = fmt::format("OUT OF MEMORY: process {} asked for {} on {}{} after {}\n", oom.pid,
                                size(oom.asked_bytes), printable(oom.device),
                                oom.total_bytes ? fmt::format(" of {}", size(*oom.total_bytes)) : std::string(),
                                format_span(oom.after_s));
  if (oom.asked_by.is_known) out += fmt::format("  asked at {}\n", place(oom.asked_by, "", symbols));
  if (oom.is_refused && oom.cause != RunOomCause::limit) out += fmt::format("  {}\n", refusal(oom));
  out += fmt::format("  because {}\n  next: {}\n", oom.because, oom.next_step);
  out += fmt::format("  it held {}: {} live, {} cached by the framework", size(oom.held_bytes), size(oom.live_bytes),
                     size(oom.cached_bytes));
  if (oom.device_free_bytes) out += fmt::format("; the device had {} free", size(*oom.device_free_bytes));
  out += '\n';
  for (std::size_t i = 0; i < oom.sites.size() && i < sites; ++i) {
    const OomSite& site = oom.sites[i];
    out += fmt::format("  {:>10} in {}  {}{}\n", size(site.live.bytes),
                       format_count(static_cast<std::uint64_t>(std::max<std::int64_t>(0, site.live.blocks)), "block"),
                       place(site.line, site.call, symbols), site.leak ? "  LEAK" : "");
  }
  if (oom.sites.size() > sites) out += fmt::format("  and {} more lines\n", oom.sites.size() - sites);
  if (!oom.others.empty()) {
    out += fmt::format("  others on the device held {}:", size(oom.others_bytes));
    for (std::size_t i = 0; i < oom.others.size() && i < 3; ++i)
      out += fmt::format("{} {} by process {}{}", i == 0 ? "" : ",", size(oom.others[i].bytes), oom.others[i].pid,
                         oom.others[i].command.empty() ? "" : fmt::format(" ({})", printable(oom.others[i].command)));
    if (oom.others.size() > 3) out += fmt::format(" and {} more", oom.others.size() - 3);
    out += '\n';
  }
  return out;
}

std::string run_oom_json(const RunOom& oom, const ProbeNames& names) {
  const Symbols& symbols = names.symbols();
  JsonText json;
  json.begin_object().field("schema", "vramtrack.run_oom.v1").field("pid", oom.pid).field("command", oom.command);
  json.field("device", oom.device).field("after_s", oom.after_s).field("asked_bytes", oom.asked_bytes);
  json.field("asked_by", place(oom.asked_by, "", symbols)).field("refused_by_limit", oom.is_refused);
  json.field("because", oom.because).field("next_step", oom.next_step).field("held_bytes", oom.held_bytes);
  json.field("live_bytes", oom.live_bytes).field("cached_bytes", oom.cached_bytes);
  json.field("others_bytes", oom.others_bytes).key("sites").begin_array();
  for (const OomSite& site : oom.sites)
    json.begin_object()
        .field("line", place(site.line, site.call, symbols))
        .field("live_bytes", site.live.bytes)
        .field("live_count", site.live.blocks)
        .field("leak", site.leak)
        .end_object();
  json.end_array().key("others").begin_array();
  for (const ProbeHolder& other : oom.others)
    json.begin_object()
        .field("pid", other.pid)
        .field("bytes", other.bytes)
        .field("command", other.command)
        .end_object();
  json.end_array().end_object().newline();
  return json.take();
}

}  // namespace vramtrack::trace
