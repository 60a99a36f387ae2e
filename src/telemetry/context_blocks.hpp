// ContextBlocks: which blocks of a followed program are live, and in which of its contexts, so that a context that ends
// takes its own memory along, and no other, and a free ends the block that it was called for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "telemetry/events.h"

namespace vramtrack::telemetry {

/// Covers what drivers allocate; nothing is kept about an allocator's blocks. Memory: 72 bytes a live block, at most 5
/// MiB: blocks beyond kMostBlocks are not ended by their context, and by whichever free names their address. Not
/// thread-safe.
class ContextBlocks {
 public:
  static constexpr std::size_t kMostBlocks = 1U << 16U;

  /// All owners of primary contexts are known, because the libraries were probed before the program began; until a
  /// block shows that there is another one (the CUDA runtime can own it without the function). While they are not
  /// known (the default) only a reset ends a primary context, and not its last owner.
  void know_owners() { knows_owners_ = true; }

  enum class Arrival : std::uint8_t {
    fresh,
    replaces,  ///< another block that was live at the address: its free is reported later, as that call returns later
    known,     ///< a primary context with one owner more, or that was most likely there before: no new memory
  };
  Arrival allocated(const telemetry_event& event);
  /// Whether it ends what is there now; not if the address was given out again after the call began.
  bool freed(const telemetry_event& event);
  /// TELEMETRY_EVENT_CONTEXT: the addresses that are released with it, in ascending order.
  std::vector<std::uint64_t> changed(const telemetry_event& event);

 private:
  struct Block {
    std::uint64_t context = 0;  ///< 0: not known, and then most likely the device's primary one
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
