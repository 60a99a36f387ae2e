#include "trace/assess.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/format.hpp"

namespace vramtrack::trace {
namespace {

constexpr double kLeastShare = 0.1;
constexpr std::uint64_t kLeastBytes = 64ULL << 20;

std::string share_words(std::uint64_t part, std::uint64_t whole) {
  return fmt::format("{} ({:.0f} % of the reserved memory)", format_size(part),
                     100 * static_cast<double>(part) / static_cast<double>(std::max<std::uint64_t>(whole, 1)));
}

}  // namespace

std::string fragmentation_advice(const std::optional<AllocatorSettings>& settings) {
  if (settings && settings->expandable_segments.value_or(false))
    return "expandable_segments is on already: make the sizes repeat (pad batches and sequences), or free the "
           "long-lived "
           "blocks that lie between";
  if (settings && settings->max_split_bytes.value_or(-1) > 0)
    return "max_split_size_mb is set: try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True instead of it; "
           "empty_cache() does not help";
  return "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or make the sizes repeat (pad batches and sequences); "
         "empty_cache() does not help";
}

Assessment assess(const Usage& usage, const std::optional<AllocatorSettings>& settings) {
  if (usage.reserved_bytes == 0) return {Condition::steady, "nothing is reserved", ""};
  const std::uint64_t gap = usage.reserved_bytes - std::min(usage.requested_bytes, usage.reserved_bytes);
  const auto least = static_cast<std::uint64_t>(kLeastShare * static_cast<double>(usage.reserved_bytes));
  if (gap < std::max(least, kLeastBytes))
    return {Condition::steady,
            fmt::format("the program holds {:.0f} % of the reserved memory", 100 * usage.utilisation()),
            "to see whether it grows, compare it with later snapshots: vramtrack snapshot leaks A B C"};
  const std::uint64_t most =
      std::max({usage.releasable_bytes, usage.pinned_bytes, usage.pending_free_bytes, usage.internal_bytes()});
  if (most == usage.pinned_bytes && usage.pinned_scatter() < 0.5)
    return {Condition::cache,
            share_words(usage.pinned_bytes, usage.reserved_bytes) +
                fmt::format(" is free next to live blocks, in large pieces (the largest {})",
                            format_size(usage.largest_pinned_bytes)),
            "kept for reuse by the next allocations. empty_cache() cannot return it while those blocks live; with "
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True most of it could be returned"};
  if (most == usage.pinned_bytes)
    return {Condition::fragmentation,
            share_words(usage.pinned_bytes, usage.reserved_bytes) +
                fmt::format(" is free but lies between live blocks; the largest piece is {}",
                            format_size(usage.largest_pinned_bytes)),
            fragmentation_advice(settings)};
  if (most == usage.releasable_bytes && usage.private_releasable_bytes * 2 > usage.releasable_bytes)
    return {Condition::cache,
            share_words(usage.private_releasable_bytes, usage.reserved_bytes) +
                " is the cache of private pools (CUDA graphs, MemPool), in segments without a live block",
            "kept for their graphs alone: nothing else can use it, and empty_cache() returns it only once they are "
            "deleted. Capture graphs that never run together with one pool: torch.cuda.graph(g, pool=other.pool())"};
  if (most == usage.releasable_bytes)
    return {
        Condition::cache,
        share_words(usage.releasable_bytes, usage.reserved_bytes) +
            " is the allocator's cache, in segments without a live block",
        "kept for reuse by the next allocations. Where another process needs it, call torch.cuda.empty_cache() after "
        "the peak"};
  if (most == usage.pending_free_bytes)
    return {Condition::pending,
            share_words(usage.pending_free_bytes, usage.reserved_bytes) +
                " is freed but waits for a stream that may still use it",
            "synchronise the stream passed to record_stream(), or wait for it once per step, before the tensors are "
            "dropped"};
  return {Condition::steady,
          share_words(usage.internal_bytes(), usage.reserved_bytes) + " is lost to rounding up of block sizes",
          "many small or odd sizes: allocate them together; check roundup_power2_divisions in PYTORCH_CUDA_ALLOC_CONF"};
}

}  // namespace vramtrack::trace
