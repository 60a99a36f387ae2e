// The report on what filled the device.
#include <fmt/format.h>

#include <algorithm>

#include "core/format.hpp"
#include "core/option.hpp"
#include "trace/render/parts.hpp"
#include "trace/render/render.hpp"

namespace vramtrack::trace {
namespace {

constexpr std::size_t kStackLines = 4;

std::string verdict_words(const OomReport& r) {
  switch (r.condition) {
    case Condition::too_big:
      return "TOO BIG";
    case Condition::full:
      return "FULL";
    case Condition::leak:
      return "LEAK";
    case Condition::fragmentation:
      return "FRAGMENTATION";
    case Condition::pending:
      return "PENDING FREES";
    case Condition::outside:
      return "OUTSIDE THE ALLOCATOR";
    case Condition::limit:
      return "LIMIT OF THIS PROCESS";
    default:
      return "no out-of-memory";
  }
}

/// ", step 7, CUDA graph 1": what is known about the failed allocation besides its line.
std::string origin_words(const Symbols& symbols, const Origin& origin) {
  std::string out;
  if (origin.metadata != kNoText) out += fmt::format(", {}", printable(symbols.text(origin.metadata)));
  if (origin.compile_context != kNoText)
    out += fmt::format(", compiling {}", printable(symbols.text(origin.compile_context)));
  if (origin.pool != PoolId{}) out += fmt::format(", {}", pool_name(origin.pool));
  return out;
}

void device_text(std::string& out, const Snapshot& snapshot, const Symbols& symbols, const OomReport& r,
                 std::size_t most) {
  const DeviceTrace* const trace = snapshot.trace_of(r.device);
  const std::int64_t first_us = trace == nullptr ? kNoTime : trace->first_time_us;
  out += fmt::format("{}: {}: {}\n", memory_name(snapshot, r.device), verdict_words(r), r.because);
  if (!r.next_step.empty()) out += fmt::format("  do: {}\n", r.next_step);
  if (snapshot.is_heap_profile)
    out += "\n  in the profile\n";
  else if (!r.has_trace)
    out +=
        "\n  in the snapshot, which has no trace: no history was recorded "
        "(torch.cuda.memory._record_memory_history())\n";
  else
    out += fmt::format("\n  at {}{}{}\n", moment_words(r.at, first_us),
                       r.at.time_us == kNoTime ? "" : fmt::format(" (entry {})", entry_words(r.at)),
                       r.oom_count > 1 ? fmt::format(", the last of {} ooms", r.oom_count) : "");
  const auto row = [&out](std::string_view name, std::uint64_t bytes, std::string_view meaning) {
    out += fmt::format("  {:<16} {:>11}  {}\n", name, format_size(bytes), meaning);
  };
  const auto positive = [](std::int64_t bytes) { return static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0)); };
  if (r.has_oom)
    row("asked for", r.asked_bytes,
        (r.asked_by == kNoStack ? "" : printable(site_words(symbols, r.asked_by))) +
            origin_words(symbols, r.asked_from));
  if (r.has_oom) row("device free", r.device_free_bytes, "as reported by the driver");
  if (r.limit)
    row("limit", r.limit->least_bytes,
        format_size(r.limit->most_bytes) == format_size(r.limit->least_bytes)
            ? "what this process may take"
            : fmt::format("or more, and less than {}: what this process may take", format_size(r.limit->most_bytes)));
  row("live", positive(r.at.live_bytes), "requested by the program and held");
  row("pending free", positive(r.at.pending_bytes), "freed, a stream still uses it");
  row("cached", r.cached_bytes, "reserved and free");
  row("rounding", r.rounding_bytes, "of block sizes, as in the snapshot's blocks");
  row("reserved", positive(r.at.reserved_bytes), "live + pending + cached + rounding");
  if (r.outside_bytes)
    row("outside", *r.outside_bytes,
        fmt::format("{:.0f} % of the device's {}, not reserved here (contexts take up to 2 GiB)",
                    100 * static_cast<double>(*r.outside_bytes) / static_cast<double>(*r.capacity_bytes),
                    format_size(*r.capacity_bytes)));
  else if (r.has_oom)
    out += fmt::format("  outside          not known: give the device's {}\n", name_of(Option::capacity));
  const Labels labels = r.has_trace ? labels_at(snapshot, r.device, r.at.event) : labels_of(snapshot, r.device);
  if (!r.risers.empty()) {
    out += fmt::format("\n  kept rising over {} quiet moments\n", r.valley_count);
    for (std::size_t i = 0; i < r.risers.size() && i < most; ++i) {
      out += fmt::format("    {:>11}  {} > {}  {}\n", format_change(r.risers[i].to_bytes - r.risers[i].from_bytes),
                         format_size(r.risers[i].from_bytes), format_size(r.risers[i].to_bytes),
                         printable(site_words(symbols, r.risers[i].stack)));
      const auto lines = stack_words(symbols, r.risers[i].stack, kStackLines);
      for (std::size_t l = 1; l < lines.size(); ++l) out += fmt::format("                   called by {}\n", lines[l]);
      if (const auto words = labels_words(symbols, labels.of(r.risers[i].stack)); !words.empty())
        out += fmt::format("                   labels: {}\n", words);
    }
  }
  out += "\n  who held it then\n";
  out += sites_text(symbols, r.sites, r.at.live_bytes, most, "    ", labels);
}

void device_json(JsonText& j, const Snapshot& snapshot, const Symbols& symbols, const OomReport& r, std::size_t most) {
  j.begin_object().field("device", r.device).field("has_oom", r.has_oom).field("ooms", r.oom_count);
  j.field("has_trace", r.has_trace);
  j.field("condition", condition_name(r.condition)).field("because", r.because).field("next_step", r.next_step);
  moment_json(j, r.at);
  j.field("cached_bytes", r.cached_bytes);
  j.field("rounding_bytes", r.rounding_bytes);
  if (r.has_oom) {
    j.field("asked_bytes", r.asked_bytes).field("device_free_bytes", r.device_free_bytes);
    j.field("asked_by", site_words(symbols, r.asked_by)).key("asked_stack");
    stack_json(j, symbols, r.asked_by);
    j.key("asked_pool_id").begin_array().value(r.asked_from.pool.first).value(r.asked_from.pool.second).end_array();
    if (r.asked_from.metadata != kNoText) j.field("asked_metadata", symbols.text(r.asked_from.metadata));
    if (r.asked_from.compile_context != kNoText)
      j.field("asked_compile_context", symbols.text(r.asked_from.compile_context));
  }
  if (r.limit) j.field("limit_least_bytes", r.limit->least_bytes).field("limit_most_bytes", r.limit->most_bytes);
  if (r.capacity_bytes) j.field("capacity_bytes", *r.capacity_bytes);
  if (r.outside_bytes) j.field("outside_bytes", *r.outside_bytes);
  const Labels labels = r.has_trace ? labels_at(snapshot, r.device, r.at.event) : labels_of(snapshot, r.device);
  j.field("valleys", r.valley_count).key("risers").begin_array();
  for (const OomReport::Riser& riser : r.risers) {
    j.begin_object().field("site", site_words(symbols, riser.stack)).field("from_bytes", riser.from_bytes);
    j.field("to_bytes", riser.to_bytes);
    labelled_stack_json(j, symbols, riser.stack, labels);
    j.end_object();
  }
  j.end_array().key("sites");
  sites_json(j, symbols, r.sites, most, labels);
  j.end_object();
}

}  // namespace

std::string oom_text(std::span<const Snapshot> snapshots, std::span<const std::vector<OomReport>> reports,
                     const Symbols& symbols, std::size_t sites) {
  std::string out;
  for (std::size_t i = 0; i < snapshots.size(); ++i) {
    if (snapshots.size() > 1) out += fmt::format("{}{}\n", i == 0 ? "" : "\n", printable(snapshots[i].file));
    bool is_first = true;
    for (const OomReport& one : reports[i]) {
      if (!is_first) out += '\n';
      is_first = false;
      device_text(out, snapshots[i], symbols, one, sites);
    }
  }
  return out;
}

std::string oom_json(std::span<const Snapshot> snapshots, std::span<const std::vector<OomReport>> reports,
                     const Symbols& symbols, std::size_t sites) {
  JsonText j;
  j.begin_object().field("schema", "vramtrack.snapshot.oom.v1");
  const auto one = [&](std::size_t i) {
    j.field("file", snapshots[i].file).key("devices").begin_array();
    for (const OomReport& device : reports[i]) device_json(j, snapshots[i], symbols, device, sites);
    j.end_array();
  };
  one(0);
  if (snapshots.size() > 1) {
    j.key("snapshots").begin_array();
    for (std::size_t i = 0; i < snapshots.size(); ++i) {
      j.begin_object();
      one(i);
      j.end_object();
    }
    j.end_array();
  }
  j.end_object().newline();
  return j.take();
}

}  // namespace vramtrack::trace
