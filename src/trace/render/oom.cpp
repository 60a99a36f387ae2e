// What filled the device.
#include <fmt/format.h>

#include <algorithm>

#include "core/format.hpp"
#include "trace/render/parts.hpp"
#include "trace/render/render.hpp"

namespace vramtrack::trace {
namespace {

constexpr std::size_t kStackLines = 4;

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

void device_text(std::string& out, const Symbols& symbols, const OomReport& r, std::int64_t first_us,
                 std::size_t most) {
  out += fmt::format("device {}: {}: {}\n", r.device, verdict_words(r), r.because);
  if (!r.next_step.empty()) out += fmt::format("  do: {}\n", r.next_step);
  out += fmt::format("\n  at {}{}{}\n", moment_words(r.at, first_us),
                     r.at.time_us == kNoTime ? "" : fmt::format(" (entry {})", entry_words(r.at)),
                     r.oom_count > 1 ? fmt::format(", the last of {} ooms", r.oom_count) : "");
  const auto row = [&out](std::string_view name, std::uint64_t bytes, std::string_view meaning) {
    out += fmt::format("  {:<16} {:>11}  {}\n", name, format_size(bytes), meaning);
  };
  const auto positive = [](std::int64_t bytes) { return static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0)); };
  if (r.has_oom)
    row("asked for", r.asked_bytes, r.asked_by == kNoStack ? "" : printable(site_words(symbols, r.asked_by)));
  if (r.has_oom) row("device free", r.device_free_bytes, "as reported by the driver");
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
    for (std::size_t i = 0; i < r.risers.size() && i < most; ++i) {
      out += fmt::format("    {:>11}  {} > {}  {}\n", format_change(r.risers[i].to_bytes - r.risers[i].from_bytes),
                         format_size(r.risers[i].from_bytes), format_size(r.risers[i].to_bytes),
                         printable(site_words(symbols, r.risers[i].stack)));
      const auto lines = stack_words(symbols, r.risers[i].stack, kStackLines);
      for (std::size_t l = 1; l < lines.size(); ++l) out += fmt::format("                   called by {}\n", lines[l]);
    }
  }
  out += "\n  who held it then\n";
  out += sites_text(symbols, r.sites, r.at.live_bytes, most, "    ");
}

void device_json(JsonText& j, const Symbols& symbols, const OomReport& r, std::size_t most) {
  j.begin_object().field("device", r.device).field("has_oom", r.has_oom).field("ooms", r.oom_count);
  j.field("condition", condition_name(r.condition)).field("because", r.because).field("next_step", r.next_step);
  moment_json(j, r.at);
  j.field("cached_bytes", r.cached_bytes);
  j.field("rounding_bytes", r.rounding_bytes);
  if (r.has_oom) j.field("asked_bytes", r.asked_bytes).field("device_free_bytes", r.device_free_bytes);
  if (r.outside_bytes) j.field("outside_bytes", *r.outside_bytes);
  j.field("valleys", r.valley_count).key("risers").begin_array();
  for (const OomReport::Riser& riser : r.risers) {
    j.begin_object().field("site", site_words(symbols, riser.stack)).field("from_bytes", riser.from_bytes);
    j.field("to_bytes", riser.to_bytes).key("stack");
    stack_json(j, symbols, riser.stack);
    j.end_object();
  }
  j.end_array().key("sites");
  sites_json(j, symbols, r.sites, most);
  j.end_object();
}

}  // namespace

std::string oom_text(const Snapshot& snapshot, std::span<const OomReport> reports, const Symbols& symbols,
                     std::size_t sites) {
  std::string out;
  for (const OomReport& one : reports) {
    if (!out.empty()) out += '\n';
    device_text(out, symbols, one, snapshot.trace_of(one.device)->first_time_us, sites);
  }
  return out;
}

std::string oom_json(const Snapshot& snapshot, std::span<const OomReport> reports, const Symbols& symbols,
                     std::size_t sites) {
  JsonText j;
  j.begin_object().field("schema", "vramtrack.snapshot.oom.v1").field("file", snapshot.file);
  j.key("devices").begin_array();
  for (const OomReport& one : reports) device_json(j, symbols, one, sites);
  j.end_array().end_object().newline();
  return j.take();
}

}  // namespace vramtrack::trace
