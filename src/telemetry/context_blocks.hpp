// ContextBlocks: which blocks of a followed program live in which of its contexts, so that a context that ends takes
// its own memory along, and no other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "telemetry/events.h"

namespace vramtrack::telemetry {

/// Of CUDA's driver and of HIP; of blocks of other interfaces nothing is kept. Memory: 64 bytes a live block, at most
/// 4 MiB: blocks beyond kMostBlocks are not ended by their context. Not thread-safe.
class ContextBlocks {
 public:
  static constexpr std::size_t kMostBlocks = 1U << 16U;

  /// Whether all owners of primary contexts are known: of a program that began after the tracing did. Of others only
  /// a reset ends one, and not its last owner (the default).
  void know_owners() { knows_owners_ = true; }

  void allocated(const telemetry_event& event);
  void freed(std::uint64_t address) { blocks_.erase(address); }
  /// TELEMETRY_EVENT_CONTEXT: the addresses that are given back with it, in ascending order.
  std::vector<std::uint64_t> changed(const telemetry_event& event);

 private:
  struct Block {
    std::uint64_t context = 0;  ///< 0: not known, and then most likely the device's primary one
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
