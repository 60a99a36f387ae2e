// Renders live memory over the trace.
#include <fmt/format.h>

#include <algorithm>

#include "core/format.hpp"
#include "trace/category.hpp"
#include "trace/render/categories.hpp"
#include "trace/render/parts.hpp"
#include "trace/render/render.hpp"

namespace vramtrack::trace {
namespace {

constexpr std::size_t kChartColumns = 40;

Labels labels_of_peak(const Snapshot& snapshot, const Timeline& t, const Peak& peak) {
  return snapshot.is_heap_profile ? labels_of(snapshot, t.device) : labels_at(snapshot, t.device, peak.at.event);
}

void device_text(std::string& out, const Snapshot& snapshot, const Symbols& symbols, const Timeline& t,
                 std::size_t sites) {
  StackCategories stacks(symbols);
  const std::int64_t first_us = t.begin.time_us;
  out += fmt::format("{}: {} {}; live at the beginning {}, at the end {}\n", memory_name(snapshot, t.device),
                     format_number(t.event_count), snapshot.is_heap_profile ? "samples" : "trace entries",
                     format_size(t.begin.live_bytes), format_size(t.end.live_bytes));
  if (t.mismatch_count > 0)
    out += fmt::format("  {} of the trace and of the segments do not agree; figures at the beginning are approximate\n",
                       format_count(t.mismatch_count, "block"));
  std::int64_t highest = 1;
  for (const Moment& point : t.points) highest = std::max(highest, point.live_bytes);
  out += fmt::format(
      "\n  {:<16} {:>11} {:>11}  peak of each interval, and the sites that held most of what the trace saw allocated\n",
      "when", "live", "reserved");
  for (std::size_t i = 0; i < t.points.size(); ++i) {
    const Moment& point = t.points[i];
    const auto bar = static_cast<std::size_t>(static_cast<double>(kChartColumns) *
                                              static_cast<double>(std::max<std::int64_t>(point.live_bytes, 0)) /
                                              static_cast<double>(highest));
    // The largest with a stack in the trace: memory from before it is in every line, and explains none.
    std::int64_t most = 0;
    std::string site;
    for (std::size_t k = 0; k < t.sites.size(); ++k) {
      if (t.site_bytes[i][k] <= most || t.sites[k] == t.before_trace || t.sites[k] == kNoStack) continue;
      most = t.site_bytes[i][k];
      site = fmt::format("{} {}", format_size(most), site_words(symbols, t.sites[k]));
    }
    std::string blocks;
    for (std::size_t b = 0; b < bar; ++b) blocks += "\u2588";
    out += fmt::format("  {:<16} {:>11} {:>11}  {} {}\n", moment_words(point, first_us), format_size(point.live_bytes),
                       format_size(point.reserved_bytes), fit(blocks, kChartColumns), printable(site));
  }
  for (std::size_t i = 0; i < t.peaks.size(); ++i) {
    const Peak& peak = t.peaks[i];
    out += fmt::format("\n  peak {}: {} live at {}{}, {} reserved\n", i + 1, format_size(peak.at.live_bytes),
                       moment_words(peak.at, first_us),
                       peak.at.time_us == kNoTime ? "" : fmt::format(" (entry {})", entry_words(peak.at)),
                       format_size(peak.at.reserved_bytes));
    if (peak.at.pending_bytes > 0)
      out += fmt::format("    and {} freed but pending\n", format_size(peak.at.pending_bytes));
    for (const std::string& name : peak.inside) out += fmt::format("    inside {}\n", printable(name));
    out += sites_text(symbols, peak.sites, peak.at.live_bytes, sites, "    ", labels_of_peak(snapshot, t, peak));
    if (const CategoryTotals categories = categorize(peak.sites, {}, stacks); has_any(categories))
      out += "    what it is\n" + categories_text(symbols, categories, "   ");
  }
}

void device_json(JsonText& j, const Snapshot& snapshot, const Symbols& symbols, const Timeline& t, std::size_t sites) {
  StackCategories stacks(symbols);
  j.begin_object().field("device", t.device).field("entries", t.event_count).field("mismatches", t.mismatch_count);
  j.key("begin").begin_object();
  moment_json(j, t.begin);
  j.end_object().key("end").begin_object();
  moment_json(j, t.end);
  j.end_object().key("sites").begin_array();
  for (const StackId site : t.sites) {
    j.begin_object().field("site", site_words(symbols, site)).key("stack");
    stack_json(j, symbols, site);
    j.end_object();
  }
  j.end_array().key("points").begin_array();
  for (std::size_t i = 0; i < t.points.size(); ++i) {
    j.begin_object();
    moment_json(j, t.points[i]);
    j.key("site_bytes").begin_array();
    for (const std::int64_t bytes : t.site_bytes[i]) j.value(bytes);
    j.end_array().key("categories").begin_object();
    for (const Category category : t.categories[i].held())
      j.field(category_name(category), t.categories[i][category].bytes);
    j.end_object().end_object();
  }
  j.end_array().key("peaks").begin_array();
  for (const Peak& peak : t.peaks) {
    j.begin_object();
    moment_json(j, peak.at);
    j.key("inside").begin_array();
    for (const std::string& name : peak.inside) j.value(name);
    j.end_array().key("sites");
    sites_json(j, symbols, peak.sites, sites, labels_of_peak(snapshot, t, peak));
    j.key("categories");
    categories_json(j, symbols, categorize(peak.sites, {}, stacks), sites);
    j.end_object();
  }
  j.end_array().end_object();
}

}  // namespace

std::string timeline_text(const Snapshot& snapshot, std::span<const Timeline> timelines, const Symbols& symbols,
                          std::size_t sites) {
  std::string out;
  for (const Timeline& one : timelines) {
    if (!out.empty()) out += '\n';
    device_text(out, snapshot, symbols, one, sites);
  }
  return out;
}

std::string timeline_json(const Snapshot& snapshot, std::span<const Timeline> timelines, const Symbols& symbols,
                          std::size_t sites) {
  JsonText j;
  j.begin_object().field("schema", "vramtrack.snapshot.timeline.v1").field("file", snapshot.file);
  j.key("devices").begin_array();
  for (const Timeline& one : timelines) device_json(j, snapshot, symbols, one, sites);
  j.end_array().end_object().newline();
  return j.take();
}

}  // namespace vramtrack::trace
