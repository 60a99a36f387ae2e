// OomReport: what filled a device when an allocation failed; if none failed, at the end of the trace or in the
// snapshot.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trace/diff.hpp"
#include "trace/live_set.hpp"
#include "trace/profile.hpp"
#include "trace/snapshot.hpp"

namespace vramtrack::trace {

struct OomReport {
  std::uint32_t device = 0;
  bool has_oom = false;    ///< the trace has an oom entry, or the program recorded one; false: no judgement
  bool has_trace = false;  ///< false: the figures are those of the snapshot's blocks
  std::uint64_t oom_count = 0;
  Moment at;                      ///< totals when the allocation failed
  std::uint64_t asked_bytes = 0;  ///< size of the failed request
  std::uint64_t device_free_bytes = 0;
  std::uint64_t cached_bytes = 0;    ///< reserved at that time, but not live, pending or rounding: free, but in pieces
  std::uint64_t rounding_bytes = 0;  ///< rounding of live blocks, estimated from the snapshot's share of rounding
  std::optional<std::uint64_t> capacity_bytes;  ///< the capacity of the device, if the caller or the program gave it
  std::optional<std::uint64_t>
      outside_bytes;  ///< in use on the device but not reserved by this allocator; needs the capacity

  /// The device had room for the request, so a limit stopped the process. The limit is at least `least` and less
  /// than `most`.
  struct Limit {
    std::uint64_t least_bytes = 0, most_bytes = 0;
  };
  std::optional<Limit> limit;
  StackId asked_by = kNoStack;
  Origin asked_from;  ///< pool, stream and labels of the failed allocation
  Profile sites;      ///< what was live at that time

  /// A site whose live bytes kept rising over the valleys of the trace.
  struct Riser {
    StackId stack = kNoStack;
    std::int64_t from_bytes = 0, to_bytes = 0;
  };
  std::size_t valley_count = 0;        ///< quiet moments in the trace to compare; fewer than 3 cannot show a leak
  std::int64_t given_back_bytes = 0;   ///< sum of the falls between the first and the last of them
  std::int64_t valley_rise_bytes = 0;  ///< rise of all live bytes from the first of them to the last
  std::vector<Riser> risers;           ///< largest first

  Condition condition =
      Condition::steady;  ///< leak, limit, fragmentation, pending, outside, too_big, full; steady: no oom
  std::string because;
  std::string next_step;
};

/// The devices to report on: the requested one, else those that ran out of memory, else those with a trace, else those
/// that hold memory.
std::vector<std::uint32_t> oom_devices(const Snapshot& snapshot, std::optional<std::uint32_t> device = {});

/// The device's last oom. `capacity_bytes`: the device's, for outside_bytes. Takes about four trace replays.
OomReport oom_of(const Snapshot& snapshot, std::uint32_t device, Symbols& symbols,
                 std::optional<std::uint64_t> capacity_bytes = {});

}  // namespace vramtrack::trace
