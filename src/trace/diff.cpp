#include "trace/diff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <unordered_map>

#include "core/format.hpp"
#include "core/order.hpp"
#include "core/statistics.hpp"
#include "core/units.hpp"

namespace vramtrack::trace {
namespace {

constexpr std::array<std::string_view, 9> kConditionNames = {"steady",  "leak",    "fragmentation", "cache", "pending",
                                                             "outside", "too_big", "full",          "limit"};

/// Rising sizes show a leak if this would happen by chance in at most this share of cases: with five sizes, one in 120.
constexpr double kErrorRate = 0.01;

/// Identifies a block: its place, its stack and its size. An address that was freed and allocated again to the same
/// line with the same size cannot be distinguished, and need not be: the site holds as much as before.
using BlockKey = std::tuple<std::uint32_t, std::uint64_t, std::uint64_t, std::uint32_t>;

template <class Visit>
void for_live(const Snapshot& snapshot, std::optional<std::uint32_t> device, Visit visit) {
  for (const Segment& segment : snapshot.segments) {
    if (device && segment.device != *device) continue;
    for (std::size_t i = segment.first_block; i < segment.first_block + segment.block_count; ++i)
      if (snapshot.blocks[i].state == BlockState::active) visit(segment, snapshot.blocks[i]);
  }
}

std::int64_t change(std::uint64_t from, std::uint64_t to) {
  return static_cast<std::int64_t>(to) - static_cast<std::int64_t>(from);
}

/// Whether a change is noise: less than 1 % of the old value plus a MiB.
bool is_flat(std::uint64_t from, std::uint64_t to) {
  const double moved = static_cast<double>(change(from, to));
  return moved <= std::max(kMiB, 0.01 * static_cast<double>(from));
}

/// Every stack that holds memory in any of the snapshots.
std::vector<SiteGrowth> sites_of(std::span<const Snapshot> snapshots, std::optional<std::uint32_t> device) {
  std::unordered_map<std::uint32_t, SiteGrowth> by_stack;
  const auto site = [&](StackId stack) -> SiteGrowth& {
    SiteGrowth& found = by_stack[index_of(stack)];
    if (found.bytes.empty()) {
      found.stack = stack;
      found.bytes.resize(snapshots.size());
      found.blocks.resize(snapshots.size());
    }
    return found;
  };
  std::set<BlockKey> first;
  for (std::size_t n = 0; n < snapshots.size(); ++n) {
    for_live(snapshots[n], device, [&](const Segment& segment, const Block& block) {
      SiteGrowth& its = site(block.stack);
      its.bytes[n] += static_cast<std::int64_t>(block.requested_bytes);
      ++its.blocks[n];
      const BlockKey key{segment.device, block.address, block.requested_bytes, index_of(block.stack)};
      if (n == 0) first.insert(key);
      if (n + 1 == snapshots.size() && !first.contains(key))
        its.new_bytes += static_cast<std::int64_t>(block.requested_bytes);
    });
  }
  std::vector<SiteGrowth> out;
  for (auto& [stack, its] : by_stack) out.push_back(std::move(its));
  return out;
}

/// Compares the bytes of the stacks common to the first and the last snapshot with the smaller total of bytes that have
/// a stack. Two moments of one program share at least long-lived memory (weights); a hundredth may be chance (a
/// library's own line).
bool share_stacks(const std::vector<SiteGrowth>& all, const SnapshotGrowth& growth) {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t shared = 0;
  for (const SiteGrowth& site : all) {
    if (site.stack == kNoStack) continue;
    first += site.bytes.front();
    last += site.bytes.back();
    shared += std::min(site.bytes.front(), site.bytes.back());
  }
  const std::int64_t smaller = std::min(first, last);
  // A snapshot taken before the program held much shares nothing with a later one, but is of the same program.
  const bool alike = smaller * 10 >= std::max(first, last) && smaller > 0;
  const bool recorded = static_cast<std::uint64_t>(smaller) * 2 >=
                        std::min(growth.usage.front().requested_bytes, growth.usage.back().requested_bytes);
  return !alike || !recorded || shared * 100 >= smaller;
}

std::string devices_words(const Snapshot& snapshot) {
  const std::vector<std::uint32_t> devices = devices_of(snapshot);
  return devices.empty() ? "none" : fmt::format("{}", fmt::join(devices, ", "));
}

std::int64_t last_time_us(const Snapshot& snapshot) {
  std::int64_t last = kNoTime;
  for (const DeviceTrace& trace : snapshot.traces)
    if (trace.last_time_us != kNoTime) last = last == kNoTime ? trace.last_time_us : std::max(last, trace.last_time_us);
  return last;
}

std::vector<std::string> doubts(std::span<const Snapshot> snapshots) {
  std::vector<std::string> out;
  for (std::size_t i = 1; i < snapshots.size(); ++i) {
    const std::int64_t before = last_time_us(snapshots[i - 1]);
    const std::int64_t after = last_time_us(snapshots[i]);
    if (before != kNoTime && after != kNoTime && after < before)
      out.push_back(fmt::format(
          "the traces show that [{}] was taken before [{}]: name them in the order they were taken", i + 1, i));
    const std::string here = devices_words(snapshots[i]);
    const std::string there = devices_words(snapshots[i - 1]);
    if (here != there) out.push_back(fmt::format("[{}] has device {}, [{}] has {}", i, there, i + 1, here));
  }
  return out;
}

struct Conclusion {
  Condition condition = Condition::steady;
  std::string because;
  std::string next_step;
};

std::string requested_words(const SnapshotGrowth& growth) {
  return fmt::format("live requested memory went from {} to {}", format_size(growth.usage.front().requested_bytes),
                     format_size(growth.usage.back().requested_bytes));
}

/// The sites that grew from each snapshot to the next.
struct Growers {
  std::size_t sites = 0;
  std::int64_t bytes = 0;
  std::int64_t by_blocks = 0;  ///< from sites that hold more blocks instead of larger ones
};

Growers growers_of(const SnapshotGrowth& growth) {
  Growers out;
  for (const SiteGrowth& site : growth.sites) {
    if (!site.grew_each_time) continue;
    ++out.sites;
    out.bytes += site.growth_bytes();
    if (site.growth_blocks() > 0) out.by_blocks += site.growth_bytes();
  }
  return out;
}

Conclusion leak_of(const Growers& growers, const SnapshotGrowth& growth) {
  const std::string sites = format_count(growers.sites, "site");
  const std::string requested = requested_words(growth);
  const std::size_t snapshots = growth.usage.size();
  if (snapshots < 3)
    return {Condition::leak, fmt::format("{} grew by {}; {}", sites, format_size(growers.bytes), requested),
            "two snapshots cannot tell a leak from a warm-up: collect garbage (gc.collect()), take a third at the same "
            "point of a later step, and name all three"};
  const std::string grew =
      fmt::format("{} grew at each of {} steps, by {} in total", sites, snapshots - 1, format_size(growers.bytes));
  if (!growth.is_certain)
    return {Condition::leak, fmt::format("{}, but the number of blocks did not grow; {}", grew, requested),
            fmt::format("varying sizes rise by chance in 1 of {1:.0f} sets of {0} snapshots: take {2} snapshots at the "
                        "same point of a step, and name all",
                        snapshots, 1 / rising_order_p(snapshots), least_rising(kErrorRate))};
  return {Condition::leak, fmt::format("{}; {}", grew, requested),
          "look at the lines below, from the top: what they allocate is kept somewhere (a list, a graph, a global, a "
          "cache without a limit)"};
}

/// Whether the requested memory rose from each of three or more snapshots to the next.
bool rises_always(const SnapshotGrowth& growth) {
  for (std::size_t i = 1; i < growth.usage.size(); ++i)
    if (is_flat(growth.usage[i - 1].requested_bytes, growth.usage[i].requested_bytes)) return false;
  return growth.usage.size() >= 3;
}

Conclusion leak_of_no_site(const SnapshotGrowth& growth) {
  return {
      Condition::leak,
      fmt::format("{}, more at each of {} steps, but not at any single site", requested_words(growth),
                  growth.usage.size() - 1),
      "look at the lines below: stacks that are new each time (notebook cells), or branches that are taken in turn, "
      "grow like this"};
}

/// Detects freed blocks that wait for a stream.
std::optional<Conclusion> find_pending(const Usage& a, const Usage& b) {
  if (is_flat(a.active_bytes(), b.active_bytes()) || !is_flat(a.allocated_bytes, b.allocated_bytes) ||
      change(a.pending_free_bytes, b.pending_free_bytes) <= 0)
    return std::nullopt;
  return Conclusion{
      Condition::pending,
      fmt::format("blocks freed but still in use by a stream went from {} to {}, while what the program holds is flat",
                  format_size(a.pending_free_bytes), format_size(b.pending_free_bytes)),
      "a stream passed to record_stream() is behind: synchronise it, or wait for it once per step, before the "
      "tensors are dropped"};
}

/// Detects reserved memory that grew without need: fragments, or a cache.
std::optional<Conclusion> find_idle_reserve(const Usage& a, const Usage& b, const std::string& requested) {
  if (is_flat(a.reserved_bytes, b.reserved_bytes) || !is_flat(a.requested_bytes, b.requested_bytes))
    return std::nullopt;
  const std::string grew = fmt::format("reserved memory grew by {} while {}",
                                       format_size(change(a.reserved_bytes, b.reserved_bytes)), requested);
  if (change(a.pinned_bytes, b.pinned_bytes) > change(a.releasable_bytes, b.releasable_bytes))
    return Conclusion{
        Condition::fragmentation,
        fmt::format("{}; of the free part, {} are pinned by live blocks", grew, format_size(b.pinned_bytes)),
        "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or make the sizes repeat (pad batches); empty_cache() "
        "does not help"};
  return Conclusion{Condition::cache,
                    fmt::format("{}; empty_cache() would return {}", grew, format_size(b.releasable_bytes)),
                    "nothing leaks: this is the allocator's cache. Leave it, or call torch.cuda.empty_cache() once "
                    "after the peak where another process needs the memory"};
}

/// Detects a device that fills up while the allocator does not grow.
std::optional<Conclusion> find_outside(const SnapshotGrowth& growth) {
  const auto& used_a = growth.device_used_bytes.front();
  const auto& used_b = growth.device_used_bytes.back();
  if (!used_a || !used_b || is_flat(*used_a, *used_b) ||
      !is_flat(growth.usage.front().reserved_bytes, growth.usage.back().reserved_bytes))
    return std::nullopt;
  return Conclusion{
      Condition::outside,
      fmt::format("the device's used memory went from {} to {} while the allocator's reserved memory is flat",
                  format_size(*used_a), format_size(*used_b)),
      "PyTorch's allocator did not grow: check NCCL's buffers, libraries with their own pools (cuDNN, CuPy, "
      "nvdiffrast), and other processes ('vramtrack watch --once')"};
}

/// Judges the growth; also sets is_certain and leaking_bytes.
Conclusion judge(SnapshotGrowth& growth, std::uint64_t least_bytes) {
  const Usage& a = growth.usage.front();
  const Usage& b = growth.usage.back();
  const bool many = growth.usage.size() >= 3;
  const std::string requested = requested_words(growth);
  const std::int64_t more = change(a.requested_bytes, b.requested_bytes);
  const Growers growers = growers_of(growth);
  growth.leaking_bytes = growers.bytes;
  if (!growth.is_comparable)
    return {Condition::steady, "the first and the last snapshot have hardly any stacks in common: " + requested,
            "compare snapshots of one run of one program, taken at the same point of a step"};
  // If a site grows while others release as much, memory only moves; it does not grow.
  if (growers.bytes >= static_cast<std::int64_t>(least_bytes) && more > 0 && more * 2 >= growers.bytes) {
    growth.is_certain = (many && growers.by_blocks * 2 >= growers.bytes) ||
                        is_growth(rising_order_p(growth.usage.size()), kErrorRate, static_cast<double>(growers.bytes),
                                  static_cast<double>(least_bytes));
    return leak_of(growers, growth);
  }
  if (rises_always(growth)) {
    growth.leaking_bytes = more;
    return leak_of_no_site(growth);
  }
  growth.leaking_bytes = 0;
  if (auto pending = find_pending(a, b)) return std::move(*pending);
  if (auto idle = find_idle_reserve(a, b, requested)) return std::move(*idle);
  if (auto outside = find_outside(growth)) return std::move(*outside);
  if (is_flat(a.requested_bytes, b.requested_bytes)) return {Condition::steady, requested, ""};
  return {Condition::steady,
          requested + (many ? ", but no site grew at every step: the sizes vary, or the program is warming up"
                            : ", but other sites shrank by as much as these grew: the sizes vary"),
          "take the snapshots at the same point of a step"};
}

}  // namespace

std::string_view condition_name(Condition condition) {
  return kConditionNames[static_cast<std::size_t>(condition)];
}

SnapshotGrowth growth_between(std::vector<SiteGrowth> sites, std::vector<Usage> usage,
                              std::span<const std::uint64_t> device_used_bytes, std::uint64_t least_bytes) {
  SnapshotGrowth growth;
  growth.usage = std::move(usage);
  for (std::size_t i = 0; i < growth.usage.size(); ++i)
    growth.device_used_bytes.emplace_back(i < device_used_bytes.size() ? std::optional(device_used_bytes[i])
                                                                       : std::nullopt);
  for (SiteGrowth& its : sites)
    its.grew_each_time =
        std::adjacent_find(its.bytes.begin(), its.bytes.end(), std::greater_equal<>()) == its.bytes.end();
  order(sites, [](const SiteGrowth& a, const SiteGrowth& b) {
    return a.growth_bytes() != b.growth_bytes() ? a.growth_bytes() > b.growth_bytes() : a.stack < b.stack;
  });
  growth.is_comparable = share_stacks(sites, growth);
  std::erase_if(sites, [](const SiteGrowth& site) {
    return std::adjacent_find(site.bytes.begin(), site.bytes.end(), std::not_equal_to<>()) == site.bytes.end();
  });
  growth.sites = std::move(sites);
  Conclusion conclusion = judge(growth, least_bytes);
  growth.condition = conclusion.condition;
  growth.because = std::move(conclusion.because);
  growth.next_step = std::move(conclusion.next_step);
  return growth;
}

SnapshotGrowth growth_of(std::span<const Snapshot> snapshots, const GrowthOptions& options) {
  std::vector<Usage> usage;
  for (const Snapshot& snapshot : snapshots) usage.push_back(total_usage(snapshot, options.device));
  SnapshotGrowth growth = growth_between(sites_of(snapshots, options.device), std::move(usage),
                                         options.device_used_bytes, options.least_bytes);
  growth.notes = doubts(snapshots);
  return growth;
}

}  // namespace vramtrack::trace
