// The report on growth from the first snapshot to the last, by stack.
#include <fmt/format.h>

#include "core/format.hpp"
#include "core/option.hpp"
#include "trace/category.hpp"
#include "trace/render/categories.hpp"
#include "trace/render/parts.hpp"
#include "trace/render/render.hpp"

namespace vramtrack::trace {
namespace {

constexpr std::size_t kStackLines = 6;

std::string verdict_line(const SnapshotGrowth& growth) {
  if (!growth.is_comparable) return "cannot tell";
  switch (growth.condition) {
    case Condition::leak:
      return growth.is_certain ? "LEAK"
                               : (growth.usage.size() < 3 ? "GREW (a leak, or a warm-up)" : "GREW (perhaps a leak)");
    case Condition::steady:
      return "no leak";
    case Condition::cache:
      return "no leak: cache";
    case Condition::fragmentation:
      return "FRAGMENTATION, no leak";
    case Condition::pending:
      return "PENDING FREES, not a leak of the program";
    default:
      return "GREW OUTSIDE THE ALLOCATOR";
  }
}

void site_text(std::string& out, const Symbols& symbols, const SiteGrowth& site, std::size_t number) {
  std::string bytes;
  for (const std::int64_t b : site.bytes) bytes += (bytes.empty() ? "" : " > ") + format_size(b);
  out += fmt::format("{:>3}. {:<12} {:+} blocks  {}\n", number, format_change(site.growth_bytes()),
                     site.growth_blocks(), printable(site_words(symbols, site.stack)));
  out += fmt::format("       {}{}\n", bytes,
                     site.bytes.size() < 3 ? ""
                     : site.grew_each_time ? ", at every step"
                                           : ", not at every step");
  const auto lines = stack_words(symbols, site.stack, kStackLines);
  for (std::size_t i = 1; i < lines.size(); ++i) out += fmt::format("         called by {}\n", lines[i]);
}

/// Pinned host memory does not belong to a device: it is reported separately, and does not affect the result.
void host_text(std::string& out, const Symbols& symbols, const SnapshotGrowth& host, std::size_t sites) {
  out += fmt::format("\nhost (pinned memory): {}: {}\n", verdict_line(host), host.because);
  std::size_t shown = 0;
  for (const SiteGrowth& site : host.sites) {
    if (site.growth_bytes() <= 0 || shown == sites) break;
    site_text(out, symbols, site, ++shown);
  }
}

/// The categories of each snapshot; empty if one file was compared with itself at several moments.
std::vector<CategoryTotals> categories_of_each(std::span<const Snapshot> snapshots, const Symbols& symbols,
                                               const DeviceGrowth& growth) {
  std::vector<CategoryTotals> out;
  if (snapshots.size() != growth.growth.usage.size()) return out;
  StackCategories stacks(symbols);
  for (const Snapshot& snapshot : snapshots) out.push_back(categories_of(snapshot, stacks, growth.device));
  return out;
}

void sites_json(JsonText& j, const Symbols& symbols, const SnapshotGrowth& growth, std::size_t most,
                const Labels& labels) {
  j.begin_array();
  for (std::size_t i = 0; i < growth.sites.size() && i < most; ++i) {
    const SiteGrowth& site = growth.sites[i];
    j.begin_object().field("site", site_words(symbols, site.stack)).field("growth_bytes", site.growth_bytes());
    j.field("growth_blocks", site.growth_blocks())
        .field("new_bytes", site.new_bytes)
        .field("grew_each_time", site.grew_each_time);
    j.key("bytes").begin_array();
    for (const std::int64_t b : site.bytes) j.value(b);
    j.end_array().key("blocks").begin_array();
    for (const std::int64_t b : site.blocks) j.value(b);
    j.end_array();
    labelled_stack_json(j, symbols, site.stack, labels);
    j.end_object();
  }
  j.end_array();
}

}  // namespace

std::string leaks_text(std::span<const Snapshot> snapshots, const Symbols& symbols,
                       std::span<const DeviceGrowth> growths, const SnapshotGrowth* host, std::size_t sites) {
  const SnapshotGrowth& growth = growths.front().growth;
  std::string out = growths.size() > 1 ? fmt::format("device {}: ", *growths.front().device) : "";
  out += fmt::format("{}: {}\n", verdict_line(growth), growth.because);
  if (!growth.next_step.empty()) out += fmt::format("  do: {}\n", growth.next_step);
  for (const std::string& note : growth.notes) out += fmt::format("  note: {}\n", note);
  const auto series = [&](std::string_view name, auto bytes_of) {
    out += fmt::format("  {:<14}", name);
    for (std::size_t i = 0; i < growth.usage.size(); ++i) out += fmt::format(" {:>11}", format_size(bytes_of(i)));
    const auto change =
        static_cast<std::int64_t>(bytes_of(growth.usage.size() - 1)) - static_cast<std::int64_t>(bytes_of(0));
    out += fmt::format("   {}\n", format_change(change));
  };
  out += '\n';
  for (std::size_t i = 0; i < snapshots.size(); ++i)
    out += fmt::format("  [{}] {}\n", i + 1, printable(snapshots[i].file));
  out += fmt::format("  {:<14}", "");
  for (std::size_t i = 0; i < growth.usage.size(); ++i) out += fmt::format(" {:>11}", fmt::format("[{}]", i + 1));
  out += '\n';
  series("requested", [&](std::size_t i) { return growth.usage[i].requested_bytes; });
  series("allocated", [&](std::size_t i) { return growth.usage[i].allocated_bytes; });
  series("pending free", [&](std::size_t i) { return growth.usage[i].pending_free_bytes; });
  series("releasable", [&](std::size_t i) { return growth.usage[i].releasable_bytes; });
  series("pinned", [&](std::size_t i) { return growth.usage[i].pinned_bytes; });
  series("reserved", [&](std::size_t i) { return growth.usage[i].reserved_bytes; });
  if (growth.device_used_bytes.front() && growth.device_used_bytes.back())
    series("device used", [&](std::size_t i) { return growth.device_used_bytes[i].value_or(0); });

  if (const std::string text = category_series_text(categories_of_each(snapshots, symbols, growths.front()), "    ");
      !text.empty())
    out += "\n  what it is (requested)\n" + text;
  const Labels labels = labels_of(snapshots.back(), growths.front().device);
  std::size_t shown = 0;
  std::size_t grown = 0;
  for (const SiteGrowth& site : growth.sites) {
    if (site.growth_bytes() <= 0) break;
    ++grown;
    if (shown == sites) continue;
    if (shown++ == 0) out += "\nwhat grew\n";
    site_text(out, symbols, site, shown);
    if (const auto words = labels_words(symbols, labels.of(site.stack)); !words.empty())
      out += fmt::format("         labels: {}\n", words);
    if (site.stack == kNoStack && !snapshots.front().is_event_stream)
      out += "         no stack was recorded: call torch.cuda.memory._record_memory_history() before the steps\n";
  }
  if (grown > shown)
    out += fmt::format("and {} more site{} that grew; {} {} shows all\n", grown - shown, grown - shown == 1 ? "" : "s",
                       name_of(Option::top), grown);
  std::int64_t shrunk = 0;
  std::size_t shrunk_sites = 0;
  for (const SiteGrowth& site : growth.sites)
    if (site.growth_bytes() < 0) {
      shrunk += site.growth_bytes();
      ++shrunk_sites;
    }
  if (shrunk_sites > 0)
    out += fmt::format("\n{} shrank, by {} in all\n", format_count(shrunk_sites, "site"), format_size(-shrunk));
  for (std::size_t i = 1; i < growths.size(); ++i)
    out += fmt::format("\ndevice {}: {}: {}{}", *growths[i].device, verdict_line(growths[i].growth),
                       growths[i].growth.because, i + 1 < growths.size() ? "" : "\n");
  if (host != nullptr) host_text(out, symbols, *host, sites);
  return out;
}

std::string leaks_json(std::span<const Snapshot> snapshots, const Symbols& symbols,
                       std::span<const DeviceGrowth> growths, const SnapshotGrowth* host, std::size_t sites) {
  const SnapshotGrowth& growth = growths.front().growth;
  JsonText j;
  j.begin_object().field("schema", "vramtrack.snapshot.leaks.v1");
  j.field("condition", condition_name(growth.condition)).field("is_certain", growth.is_certain);
  j.field("is_comparable", growth.is_comparable).key("notes").begin_array();
  for (const std::string& note : growth.notes) j.value(note);
  j.end_array();
  j.field("because", growth.because).field("next_step", growth.next_step).field("leaking_bytes", growth.leaking_bytes);
  const auto categories = categories_of_each(snapshots, symbols, growths.front());
  j.key("snapshots").begin_array();
  for (std::size_t i = 0; i < growth.usage.size(); ++i) {
    const Usage& u = growth.usage[i];
    j.begin_object().field("file", snapshots[i].file).field("requested_bytes", u.requested_bytes);
    j.field("allocated_bytes", u.allocated_bytes).field("pending_free_bytes", u.pending_free_bytes);
    j.field("releasable_bytes", u.releasable_bytes)
        .field("pinned_bytes", u.pinned_bytes)
        .field("reserved_bytes", u.reserved_bytes);
    if (growth.device_used_bytes[i]) j.field("device_used_bytes", *growth.device_used_bytes[i]);
    if (i < categories.size()) {
      j.key("categories");
      categories_json(j, symbols, categories[i], sites);
    }
    j.end_object();
  }
  j.end_array().key("sites");
  sites_json(j, symbols, growth, sites, labels_of(snapshots.back(), growths.front().device));
  j.key("devices").begin_array();
  for (const DeviceGrowth& each : growths) {
    if (!each.device) continue;
    j.begin_object().field("device", *each.device).field("condition", condition_name(each.growth.condition));
    j.field("is_certain", each.growth.is_certain).field("is_comparable", each.growth.is_comparable);
    j.field("leaking_bytes", each.growth.leaking_bytes).field("because", each.growth.because).end_object();
  }
  j.end_array();
  if (host != nullptr) {
    j.key("host").begin_object().field("condition", condition_name(host->condition));
    j.field("is_certain", host->is_certain).field("leaking_bytes", host->leaking_bytes);
    j.field("because", host->because).key("sites");
    sites_json(j, symbols, *host, sites, {});
    j.end_object();
  }
  j.end_object().newline();
  return j.take();
}

}  // namespace vramtrack::trace
