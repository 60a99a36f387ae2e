// The summary of reserved memory by device, pool and stream.
#include <fmt/format.h>

#include <optional>
#include <set>
#include <utility>

#include "core/format.hpp"
#include "trace/assess.hpp"
#include "trace/category.hpp"
#include "trace/profile.hpp"
#include "trace/render/categories.hpp"
#include "trace/render/parts.hpp"
#include "trace/render/render.hpp"
#include "trace/usage.hpp"

namespace vramtrack::trace {
namespace {

/// The bytes reserved in private pools, and the number of such pools.
std::pair<std::uint64_t, std::uint64_t> private_pools(const DeviceUsage& device) {
  std::set<PoolId> pools;
  std::uint64_t bytes = 0;
  for (const PoolUsage& pool : device.pools) {
    if (pool.pool == PoolId{}) continue;
    pools.insert(pool.pool);
    bytes += pool.usage.reserved_bytes;
  }
  return {bytes, pools.size()};
}

std::string percent_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? "" : fmt::format("{:.0f} %", 100 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string pool_words(const PoolUsage& pool) {
  std::string words = pool_name(pool.pool);
  words += pool.is_large ? " large" : " small";
  if (pool.is_expandable) words += " expandable";
  return words;
}

void device_text(std::string& out, const Snapshot& snapshot, const Symbols& symbols, StackCategories& stacks,
                 const DeviceUsage& device, std::size_t top, bool is_host) {
  const Usage& u = device.total;
  const Assessment assessment = assess(u, snapshot.settings);
  const DeviceTrace* const trace = snapshot.trace_of(device.device);
  out += fmt::format("\n{}: {}\n", memory_name(snapshot, device.device),
                     is_host                    ? "pinned host memory"
                     : snapshot.is_heap_profile ? fmt::format("{} are live", format_size(u.requested_bytes))
                                                : assessment.because);
  if (!is_host && !assessment.next_step.empty())
    out += fmt::format(
        "  {}do: {}\n",
        assessment.condition == Condition::steady ? "" : fmt::format("[{}] ", condition_name(assessment.condition)),
        assessment.next_step);
  if (const std::uint64_t ooms = trace == nullptr ? 0 : trace->counts[static_cast<std::size_t>(Action::oom)]; ooms > 0)
    out += fmt::format("  it ran OUT OF MEMORY {} in the trace: 'vramtrack snapshot oom' shows what filled it\n",
                       ooms == 1 ? "once" : fmt::format("{} times", format_number(ooms)));
  const auto row = [&](std::string_view name, std::uint64_t bytes, std::string_view meaning) {
    out += fmt::format("  {:<22} {:>12} {:>6}  {}\n", name, format_size(bytes), percent_of(bytes, u.reserved_bytes),
                       meaning);
  };
  if (snapshot.is_heap_profile) {
    row("live", u.requested_bytes, fmt::format("in {}, by the profile", format_count(u.live_block_count, "block")));
  } else {
    row("reserved", u.reserved_bytes,
        fmt::format("{}, {}", is_host ? "pinned" : "taken from the driver", format_count(u.segment_count, "segment")));
    row("  requested", u.requested_bytes,
        fmt::format("what the program asked for and holds, {}", format_count(u.live_block_count, "block")));
    row("  internal", u.internal_bytes(), "rounding up of those (allocated = requested + internal)");
    row("  pending free", u.pending_free_bytes, "given back, a stream may still use it");
    row("  releasable", u.releasable_bytes,
        is_host ? "cached by the host allocator"
        : u.private_releasable_bytes == 0
            ? "cached, empty_cache() returns it"
            : fmt::format("cached, empty_cache() returns it; {} of it only once their graph or pool is deleted",
                          format_size(u.private_releasable_bytes)));
    row("  pinned", u.pinned_bytes,
        fmt::format("free between live blocks, largest piece {}", format_size(u.largest_pinned_bytes)));
    if (const auto [bytes, count] = private_pools(device); count > 0)
      row("of it in private pools", bytes,
          fmt::format("{}: of CUDA graphs (named by their number) and of MemPool()", format_count(count, "pool")));
    if (u.unaccounted_bytes > 0) row("  unaccounted", u.unaccounted_bytes, "no block of the file covers it");
  }
  // A device that has released everything has no pool, only its trace; a single common pool needs no table.
  if (device.pools.size() > 1 ||
      (device.pools.size() == 1 && (device.pools[0].pool != PoolId{} || device.pools[0].stream != 0))) {
    out += fmt::format("\n  {:<26} {:>16} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "pool", "stream",
                       "reserved", "allocated", "requested", "internal", "pending", "releasable", "pinned");
    std::size_t shown = 0;
    for (const PoolUsage& pool : device.pools) {
      if (shown++ == top) {
        out += fmt::format("  and {} more\n", device.pools.size() - top);
        break;
      }
      const Usage& p = pool.usage;
      out +=
          fmt::format("  {:<26} {:>16} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}\n", pool_words(pool),
                      pool.stream == 0 ? "default" : fmt::format("{:#x}", pool.stream), format_size(p.reserved_bytes),
                      format_size(p.allocated_bytes), format_size(p.requested_bytes), format_size(p.internal_bytes()),
                      format_size(p.pending_free_bytes), format_size(p.releasable_bytes), format_size(p.pinned_bytes));
    }
  }
  const auto lines = by_line(live_profile(snapshot, device.device), symbols);
  const Labels labels = labels_of(snapshot, device.device);
  if (!lines.empty()) {
    out += "\n  who holds it\n";
    for (std::size_t i = 0; i < lines.size() && i < top; ++i) {
      out += fmt::format("  {:>12} {:>6} {:>16}  {}\n", format_size(lines[i].bytes),
                         percent_of(static_cast<std::uint64_t>(lines[i].bytes), u.requested_bytes),
                         format_count(static_cast<std::uint64_t>(lines[i].blocks), "block"),
                         line_words(symbols, lines[i]));
      if (const auto words = labels_words(symbols, labels_of_line(symbols, labels, lines[i].stack)); !words.empty())
        out += fmt::format("{:>38}  labels: {}\n", "", words);
    }
    if (lines.size() > top)
      out += fmt::format("  and {} more line{}\n", lines.size() - top, lines.size() - top == 1 ? "" : "s");
  }
  if (const CategoryTotals categories = categories_of(snapshot, stacks, device.device); has_any(categories)) {
    out += "\n  what it is\n";
    out += categories_text(symbols, categories, "  ");
  }
  if (trace == nullptr || trace->event_count == 0) return;
  const auto at_begin = static_cast<std::int64_t>(u.requested_bytes) - trace->net_bytes;
  out += fmt::format("\n  trace: {}", format_count(trace->event_count, "entry"));
  if (out.ends_with("entrys")) out.replace(out.size() - 6, 6, "entries");
  if (trace->first_time_us != kNoTime)
    out += fmt::format(" over {:.3g} s", static_cast<double>(trace->last_time_us - trace->first_time_us) * 1e-6);
  for (std::size_t a = 0; a < kActionCount; ++a)
    if (trace->counts[a] > 0) out += fmt::format(", {} {}", format_number(trace->counts[a]), kActionNames[a]);
  out += fmt::format("\n  at its beginning {} were live, at most {} (entry {})\n", format_size(at_begin),
                     format_size(at_begin + trace->peak_net_bytes), format_number(trace->peak_event));
}

void usage_json(JsonText& j, const Usage& u) {
  j.field("reserved_bytes", u.reserved_bytes).field("allocated_bytes", u.allocated_bytes);
  j.field("requested_bytes", u.requested_bytes).field("internal_bytes", u.internal_bytes());
  j.field("pending_free_bytes", u.pending_free_bytes).field("inactive_bytes", u.inactive_bytes);
  j.field("releasable_bytes", u.releasable_bytes).field("pinned_bytes", u.pinned_bytes);
  j.field("private_releasable_bytes", u.private_releasable_bytes);
  j.field("largest_free_bytes", u.largest_free_bytes).field("largest_pinned_bytes", u.largest_pinned_bytes);
  j.field("unaccounted_bytes", u.unaccounted_bytes);
  j.field("utilisation", u.utilisation()).field("scatter", u.scatter());
  j.field("segments", u.segment_count)
      .field("live_blocks", u.live_block_count)
      .field("free_blocks", u.free_block_count);
}

void device_json(JsonText& j, const Snapshot& snapshot, const Symbols& symbols, StackCategories& stacks,
                 const DeviceUsage& device, std::size_t top, bool is_host) {
  j.begin_object().field("device", device.device).field("is_host", is_host);
  usage_json(j, device.total);
  const Assessment assessment = assess(device.total, snapshot.settings);
  if (!is_host) {
    j.field("condition", condition_name(assessment.condition)).field("because", assessment.because);
    j.field("next_step", assessment.next_step);
  }
  j.key("pools").begin_array();
  for (const PoolUsage& pool : device.pools) {
    j.begin_object();
    j.key("pool_id").begin_array().value(pool.pool.first).value(pool.pool.second).end_array();
    j.field("name", pool_name(pool.pool))
        .field("is_large", pool.is_large)
        .field("is_expandable", pool.is_expandable)
        .field("stream", pool.stream);
    usage_json(j, pool.usage);
    j.end_object();
  }
  j.end_array();
  j.key("sites");
  sites_json(j, symbols, live_profile(snapshot, device.device), top, labels_of(snapshot, device.device));
  j.key("categories");
  categories_json(j, symbols, categories_of(snapshot, stacks, device.device), top);
  const DeviceTrace* const trace = snapshot.trace_of(device.device);
  if (trace != nullptr && trace->event_count > 0) {
    const auto at_begin = static_cast<std::int64_t>(device.total.requested_bytes) - trace->net_bytes;
    j.key("trace").begin_object().field("entries", trace->event_count);
    for (std::size_t a = 0; a < kActionCount; ++a) j.field(kActionNames[a], trace->counts[a]);
    if (trace->first_time_us != kNoTime)
      j.field("first_time_us", trace->first_time_us).field("last_time_us", trace->last_time_us);
    j.field("live_at_start_bytes", at_begin).field("peak_live_bytes", at_begin + trace->peak_net_bytes);
    j.end_object();
  }
  j.end_object();
}

}  // namespace

std::string summary_text(std::span<Snapshot> snapshots, const Symbols& symbols, const Shown& shown) {
  std::string out;
  StackCategories stacks(symbols);
  for (Snapshot& snapshot : snapshots) {
    if (!out.empty()) out += '\n';
    std::uint64_t events = 0;
    for (const DeviceTrace& trace : snapshot.traces) events += trace.event_count;
    out += fmt::format("{}: {}, {}, {} trace entries\n", printable(snapshot.file), format_size(snapshot.file_bytes),
                       format_count(snapshot.segments.size(), "segment"), format_number(events));
    if (snapshot.settings && !snapshot.settings->text.empty())
      out += fmt::format("PYTORCH_CUDA_ALLOC_CONF={}\n", printable(snapshot.settings->text));
    const auto devices = usage_of(snapshot);
    for (const DeviceUsage& device : devices)
      if (!shown.device || device.device == *shown.device)
        device_text(out, snapshot, symbols, stacks, device, shown.sites, snapshot.is_host);
    if (!shown.device && !snapshot.is_host && snapshot.has_host_memory()) {
      const HostMemory host(snapshot);
      for (const DeviceUsage& pinned : usage_of(snapshot))
        device_text(out, snapshot, symbols, stacks, pinned, shown.sites, true);
    }
    if (devices.empty())
      out += fmt::format("\nno {} holds anything{}\n", snapshot.is_host ? "pinned host memory" : "device",
                         snapshot.is_host ? ""
                                          : " in PyTorch's caching allocator (with PYTORCH_NO_CUDA_MEMORY_CACHING=1, "
                                            "cudaMallocAsync or a pluggable allocator it has no blocks to show)");
  }
  return out;
}

std::string summary_json(std::span<Snapshot> snapshots, const Symbols& symbols, const Shown& shown) {
  JsonText j;
  StackCategories stacks(symbols);
  j.begin_object().field("schema", "vramtrack.snapshot.summary.v1").key("snapshots").begin_array();
  for (Snapshot& snapshot : snapshots) {
    j.begin_object().field("file", snapshot.file).field("file_bytes", snapshot.file_bytes);
    if (snapshot.settings) j.field("alloc_conf", snapshot.settings->text);
    j.key("devices").begin_array();
    for (const DeviceUsage& device : usage_of(snapshot))
      if (!shown.device || device.device == *shown.device)
        device_json(j, snapshot, symbols, stacks, device, shown.sites, snapshot.is_host);
    if (!shown.device && !snapshot.is_host && snapshot.has_host_memory()) {
      const HostMemory host(snapshot);
      for (const DeviceUsage& pinned : usage_of(snapshot))
        device_json(j, snapshot, symbols, stacks, pinned, shown.sites, true);
    }
    j.end_array().end_object();
  }
  j.end_array().end_object().newline();
  return j.take();
}

}  // namespace vramtrack::trace
