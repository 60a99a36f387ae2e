// snapshot leaks: what grew from the first snapshot to the last, by stack.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cli/cmd_snapshot.hpp"
#include "core/format.hpp"
#include "trace/diff.hpp"
#include "trace/json_text.hpp"
#include "trace/words.hpp"

namespace vramtrack::cli {
namespace {

using namespace trace;

constexpr std::size_t kStackLines = 6;

std::string verdict_line(const Growth& growth) {
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
      return "PENDING FREES, no leak of the program's";
    default:
      return "GREW OUTSIDE THE ALLOCATOR";
  }
}

/// What is told of one device; none: there is but one.
struct Compared {
  std::optional<std::uint32_t> device;
  Growth growth;
  std::vector<std::string> moments;  ///< what was compared: names of snapshots, or times of one stream
};

/// What a person must hear of first.
int urgency(const Growth& growth) {
  if (!growth.is_comparable) return 3;
  switch (growth.condition) {
    case Condition::leak:
      return growth.is_certain ? 5 : 4;
    case Condition::steady:
      return 0;
    case Condition::cache:
      return 1;
    default:
      return 2;
  }
}

std::string text_of(const SnapshotWork& work, const std::vector<Compared>& all) {
  const Growth& growth = all.front().growth;
  std::string out = all.size() > 1 ? fmt::format("device {}: ", *all.front().device) : "";
  out += fmt::format("{}: {}\n", verdict_line(growth), growth.because);
  if (!growth.next_step.empty()) out += fmt::format("  do: {}\n", growth.next_step);
  for (const std::string& note : growth.notes) out += fmt::format("  note: {}\n", note);
  const auto series = [&](std::string_view name, auto bytes_of) {
    out += fmt::format("  {:<14}", name);
    for (std::size_t i = 0; i < growth.usage.size(); ++i) out += fmt::format(" {:>11}", bytes_words(bytes_of(i)));
    const auto change =
        static_cast<std::int64_t>(bytes_of(growth.usage.size() - 1)) - static_cast<std::int64_t>(bytes_of(0));
    out += fmt::format("   {}\n", change_words(change));
  };
  out += '\n';
  for (std::size_t i = 0; i < all.front().moments.size(); ++i)
    out += fmt::format("  [{}] {}\n", i + 1, all.front().moments[i]);
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

  std::size_t shown = 0;
  std::size_t grown = 0;
  for (const SiteGrowth& site : growth.sites) {
    if (site.growth_bytes() <= 0) break;
    ++grown;
    if (shown == work.options.snapshot.top) continue;
    if (shown++ == 0) out += "\nwhat grew\n";
    std::string bytes;
    for (const std::int64_t b : site.bytes) bytes += (bytes.empty() ? "" : " > ") + bytes_words(b);
    out += fmt::format("{:>3}. {:<12} {:+} blocks  {}\n", shown, change_words(site.growth_bytes()),
                       site.growth_blocks(), printable(site_words(work.symbols, site.stack)));
    out += fmt::format("       {}{}\n", bytes,
                       site.bytes.size() < 3 ? ""
                       : site.grew_each_time ? ", at every step"
                                             : ", not at every step");
    const auto lines = stack_words(work.symbols, site.stack, kStackLines);
    for (std::size_t i = 1; i < lines.size(); ++i) out += fmt::format("         called by {}\n", lines[i]);
    if (site.stack == kNoStack && work.streams.empty())
      out += "         no stack was recorded: call torch.cuda.memory._record_memory_history() before the steps\n";
  }
  if (grown > shown) out += fmt::format("and {} more sites that grew; --top {} shows all\n", grown - shown, grown);
  std::int64_t shrunk = 0;
  std::size_t shrunk_sites = 0;
  for (const SiteGrowth& site : growth.sites)
    if (site.growth_bytes() < 0) {
      shrunk += site.growth_bytes();
      ++shrunk_sites;
    }
  if (shrunk_sites > 0)
    out += fmt::format("\n{} shrank, by {} in all\n", count_words(shrunk_sites, "site"), bytes_words(-shrunk));
  for (std::size_t i = 1; i < all.size(); ++i)
    out += fmt::format("\ndevice {}: {}: {}{}", *all[i].device, verdict_line(all[i].growth), all[i].growth.because,
                       i + 1 < all.size() ? "" : "\n");
  return out;
}

std::string json_of(const SnapshotWork& work, const std::vector<Compared>& all) {
  const Growth& growth = all.front().growth;
  JsonText j;
  j.begin_object().field("schema", "vramtrack.snapshot.leaks.v1");
  j.field("condition", condition_name(growth.condition)).field("is_certain", growth.is_certain);
  j.field("is_comparable", growth.is_comparable).key("notes").begin_array();
  for (const std::string& note : growth.notes) j.value(note);
  j.end_array();
  j.field("because", growth.because).field("next_step", growth.next_step).field("leaking_bytes", growth.leaking_bytes);
  j.key("snapshots").begin_array();
  for (std::size_t i = 0; i < growth.usage.size(); ++i) {
    const Usage& u = growth.usage[i];
    j.begin_object().field("file", all.front().moments[i]).field("requested_bytes", u.requested_bytes);
    j.field("allocated_bytes", u.allocated_bytes).field("pending_free_bytes", u.pending_free_bytes);
    j.field("releasable_bytes", u.releasable_bytes)
        .field("pinned_bytes", u.pinned_bytes)
        .field("reserved_bytes", u.reserved_bytes);
    if (growth.device_used_bytes[i]) j.field("device_used_bytes", *growth.device_used_bytes[i]);
    j.end_object();
  }
  j.end_array().key("sites").begin_array();
  for (std::size_t i = 0; i < growth.sites.size() && i < work.options.snapshot.top; ++i) {
    const SiteGrowth& site = growth.sites[i];
    j.begin_object().field("site", site_words(work.symbols, site.stack)).field("growth_bytes", site.growth_bytes());
    j.field("growth_blocks", site.growth_blocks())
        .field("new_bytes", site.new_bytes)
        .field("grew_each_time", site.grew_each_time);
    j.key("bytes").begin_array();
    for (const std::int64_t b : site.bytes) j.value(b);
    j.end_array().key("blocks").begin_array();
    for (const std::int64_t b : site.blocks) j.value(b);
    j.end_array().key("stack");
    stack_json(j, work.symbols, site.stack);
    j.end_object();
  }
  j.end_array().key("devices").begin_array();
  for (const Compared& each : all) {
    if (!each.device) continue;
    j.begin_object().field("device", *each.device).field("condition", condition_name(each.growth.condition));
    j.field("is_certain", each.growth.is_certain).field("is_comparable", each.growth.is_comparable);
    j.field("leaking_bytes", each.growth.leaking_bytes).field("because", each.growth.because).end_object();
  }
  j.end_array().end_object().newline();
  return j.take();
}

/// Each device of the stream, between its quiet moments.
Result<std::vector<Compared>> compare_moments(const SnapshotWork& work) {
  const std::string& file = work.snapshots.front().file;
  if (!work.options.snapshot.used_bytes.empty())
    return vramtrack::fail("--used: " + file + " is a log of events; --used is for snapshots");
  std::vector<Compared> all;
  for (const StreamReplay& stream : work.streams) {
    Compared device{stream.device(), stream.growth(), {}};
    if (device.growth.usage.empty()) continue;
    const std::int64_t first_us = stream.live().counts().first_time_us;
    for (const Moment& moment : stream.quiet_moments())
      device.moments.push_back(fmt::format("{} at +{:.3f} s (event {})", file,
                                           static_cast<double>(moment.time_us - first_us) * 1e-6,
                                           number_words(moment.event + 1)));
    all.push_back(std::move(device));
  }
  if (all.empty()) return vramtrack::fail(file + " has too few events to tell a growth");
  return all;
}

Result<std::vector<Compared>> compare_snapshots(const SnapshotWork& work) {
  GrowthOptions options;
  options.device = work.device();
  options.device_used_bytes = work.options.snapshot.used_bytes;
  if (!options.device_used_bytes.empty() && options.device_used_bytes.size() != work.snapshots.size())
    return vramtrack::fail(fmt::format("--used has {} sizes for {} snapshots: name one for each, in their order",
                                       options.device_used_bytes.size(), work.snapshots.size()));
  // One that leaks must not hide behind another that gives back: each is judged alone, the worst told first.
  std::set<std::uint32_t> devices;
  for (const Snapshot& snapshot : work.snapshots)
    for (const std::uint32_t device : devices_of(snapshot)) devices.insert(device);
  if (options.device) devices = {*options.device};
  if (devices.size() > 1 && !options.device_used_bytes.empty())
    return vramtrack::fail(
        fmt::format("--used is of one device: name it with --device ({})", fmt::join(devices, ", ")));
  std::vector<std::string> files;
  for (const Snapshot& snapshot : work.snapshots) files.push_back(snapshot.file);
  std::vector<Compared> all;
  for (const std::uint32_t device : devices) {
    options.device = device;
    all.push_back({device, growth_of(work.snapshots, options), files});
  }
  if (all.empty()) all.push_back({std::nullopt, growth_of(work.snapshots, options), files});
  return all;
}

}  // namespace

int snapshot_leaks(SnapshotWork& work) {
  auto compared = work.streams.empty() ? compare_snapshots(work) : compare_moments(work);
  if (!compared) return work.fail(compared.error().message);
  std::vector<Compared>& all = *compared;
  std::stable_sort(all.begin(), all.end(), [](const Compared& a, const Compared& b) {
    const int first = urgency(a.growth);
    const int second = urgency(b.growth);
    return first != second ? first > second : a.growth.leaking_bytes > b.growth.leaking_bytes;
  });
  const Growth& growth = all.front().growth;
  return work.finish(work.options.json ? json_of(work, all) : text_of(work, all),
                     !growth.is_comparable                 ? kSnapshotFailed
                     : growth.condition == Condition::leak ? kSnapshotFound
                                                           : kSnapshotDone);
}

}  // namespace vramtrack::cli
