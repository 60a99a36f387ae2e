// The memory that the process holds now, by level and address. It is needed because frees do not report a size,
// contexts free everything they own, and limits need sums.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "probe/self.hpp"
#include "probe/wire.hpp"

namespace vramtrack::probe {

struct Holding {
  std::uint64_t address = 0;  ///< 0: the cell is empty
  std::uint64_t bytes = 0;
  std::uint32_t stack = 0;
  Call call = Call::none;
  std::int8_t device = 0;
  Level level = Level::driver;
  bool is_recorded = true;  ///< false: not sampled; its free is not written either
};
static_assert(sizeof(Holding) == 24);

/// Thread-safe; 24 bytes per cell, at most four fifths of the cells used, so 30 to 60 bytes per holding. Memory comes
/// from the system, never from malloc. Some 50 ns per call.
class HoldingTable {
 public:
  /// Replaces the holding there, and returns the old one (address 0: none). REQUIRES: address != 0.
  Holding put(const Holding& holding);
  /// Removes and returns the holding; address 0: unknown.
  Holding take(Level level, std::uint64_t address);
  [[nodiscard]] Holding find(Level level, std::uint64_t address) const;
  /// Removes all that `wanted` accepts and calls `visit` for each, with no lock held.
  template <class Wanted, class Visit>
  void take_all(Wanted wanted, Visit visit) {
    for (Shard& shard : shards_)
      for (std::size_t at = 0;;) {
        Holding found = take_next(shard, at, wanted);
        if (found.address == 0) break;
        visit(found);
      }
  }
  /// Call in a child after a fork, which holds nothing.
  void reset();

 private:
  struct Shard {
    Spin spin;
    Holding* cells = nullptr;
    std::size_t capacity = 0;  ///< a power of two
    std::size_t used = 0;
  };
  template <class Wanted>
  Holding take_next(Shard& shard, std::size_t& at, Wanted wanted) {
    const Locked locked(shard.spin);
    for (; at < shard.capacity; ++at) {
      const Holding found = shard.cells[at];
      if (found.address == 0 || !wanted(found)) continue;
      erase(shard, at);
      return found;  // erase() may have moved another into this cell: examine it again
    }
    return {};
  }
  Shard& shard_of(std::uint64_t hash) const;
  static bool grow(Shard& shard);
  static std::size_t slot(const Shard& shard, Level level, std::uint64_t address);
  static void erase(Shard& shard, std::size_t at);

  mutable std::array<Shard, 16> shards_;
};

HoldingTable& holdings();

}  // namespace vramtrack::probe
