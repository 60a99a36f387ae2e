// ContextBlocks: which blocks of a followed program are live, and in which context, so that the end of a context frees
// its own memory and no other, and a free ends the block it was called for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "telemetry/events.h"

namespace vramtrack::telemetry {

/// Covers the drivers' allocations; an allocator's blocks are not recorded. Memory: 72 bytes per live block, at most 5
/// MiB: blocks beyond kMostBlocks do not end with their context, and any free of their address ends them. Not
/// thread-safe.
class ContextBlocks {
 public:
  static constexpr std::size_t kMostBlocks = 1U << 16U;

  /// States that all owners of primary contexts are known, because the libraries were probed before the program began.
  /// It holds until a block shows another owner (the CUDA runtime needs no call to become one). Without it (the
  /// default), a primary context ends only with a reset, not with its last owner.
  void set_owners_known() { knows_owners_ = true; }

  enum class Arrival : std::uint8_t {
    fresh,
    replaces,  ///< replaces another live block at the address; its free is reported later, when that call returns
    known,     ///< a primary context that gained an owner, or that probably existed before: no new memory
  };
  Arrival allocated(const telemetry_event& event);
  /// Whether the free ends the block now at the address; false if the address was reused after the call began.
  bool freed(const telemetry_event& event);
  /// TELEMETRY_EVENT_CONTEXT: the addresses that end with the context, in ascending order.
  std::vector<std::uint64_t> changed(const telemetry_event& event);

 private:
  struct Block {
    std::uint64_t context = 0;  ///< 0: unknown, and then probably the device's primary context
    std::uint64_t time_ns = 0;
    std::uint8_t device = 0, call = 0;
  };
  struct Primary {
    std::uint64_t context = 0;
    std::uint32_t owners = 0;
  };
  template <class Ends>
  std::vector<std::uint64_t> end(Ends ends);

  bool knows_owners_ = false;
  std::map<std::uint8_t, Primary> primaries_;  ///< by device
  std::unordered_map<std::uint64_t, Block> blocks_;
};

}  // namespace vramtrack::telemetry
