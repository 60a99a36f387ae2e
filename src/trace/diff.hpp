// SnapshotGrowth: how two or more snapshots of one program differ, stack by stack, and what kind of growth that is.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trace/profile.hpp"
#include "trace/snapshot.hpp"
#include "trace/usage.hpp"

namespace vramtrack::trace {

/// The cause of memory growth or of a failed allocation. See docs/snapshot.md for the rules.
enum class Condition : std::uint8_t {
  steady,         ///< no significant growth
  leak,           ///< live requested bytes grow at a site
  fragmentation,  ///< reserved grows (or does not help) while requested is flat: free memory pinned by live blocks
  cache,          ///< the same, but empty_cache() would release it
  pending,        ///< freed blocks wait for streams
  outside,        ///< the device fills up, but the allocator does not grow
  too_big,        ///< the program requests more at once than there is
  full,           ///< the same, but the request is less than a tenth of what there is: the held memory already fills it
  limit,          ///< the device had room, but a limit of this process (a memory fraction) did not allow it
};
std::string_view condition_name(Condition condition);

/// One stack through all snapshots.
struct SiteGrowth {
  StackId stack = kNoStack;
  std::vector<std::int64_t> bytes;   ///< live requested bytes in each snapshot
  std::vector<std::int64_t> blocks;  ///< live blocks in each snapshot
  std::int64_t new_bytes = 0;        ///< in the last snapshot, of blocks that are not in the first
  bool grew_each_time = false;       ///< bytes rose from each snapshot to the next

  [[nodiscard]] std::int64_t growth_bytes() const { return bytes.back() - bytes.front(); }
  [[nodiscard]] std::int64_t growth_blocks() const { return blocks.back() - blocks.front(); }
};

struct SnapshotGrowth {
  std::vector<SiteGrowth> sites;  ///< every stack whose bytes changed; largest growth first, shrinkage last
  std::vector<Usage> usage;       ///< the usage of each snapshot
  std::vector<std::optional<std::uint64_t>> device_used_bytes;  ///< in each snapshot, if known to the caller
  Condition condition = Condition::steady;
  /// False if the first and the last share hardly any stacks, as if from two programs. Then there is no conclusion.
  bool is_comparable = true;
  std::vector<std::string> notes;  ///< what makes the comparison doubtful
  bool is_certain =
      false;  ///< a leak over three or more snapshots with ever more blocks, or over five; if false, take more
  std::int64_t leaking_bytes = 0;  ///< growth of the sites behind a leak
  std::string because;             ///< the reason for the condition, in words
  std::string next_step;           ///< what to do now
};

struct GrowthOptions {
  std::optional<std::uint32_t> device;
  /// The device's usage that nvidia-smi reported at each snapshot; empty, or one per snapshot.
  std::vector<std::uint64_t> device_used_bytes;
  /// Growth below this is ignored.
  std::uint64_t least_bytes = 64 * 1024;
};

/// At least two snapshots, in the order they were taken, read into the same Symbols. Compares by block and stack, never
/// by segment, so segments that grew, moved or are expandable do not matter. diff(a, b) is -diff(b, a) in every site's
/// bytes. Cost: one pass over the blocks of each.
SnapshotGrowth growth_of(std::span<const Snapshot> snapshots, const GrowthOptions& options = {});

/// The same from known data: `sites` has every stack with memory at any of the moments, `usage` has one entry per
/// moment; `device_used_bytes` may be empty.
SnapshotGrowth growth_between(std::vector<SiteGrowth> sites, std::vector<Usage> usage,
                              std::span<const std::uint64_t> device_used_bytes, std::uint64_t least_bytes);

}  // namespace vramtrack::trace
