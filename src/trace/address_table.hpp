// AddressTable: maps addresses to entries. It uses open addressing; erasing leaves no tombstones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "trace/hash.hpp"

namespace vramtrack::trace {

/// `Cell` is a plain struct with `address` and `is_used()`; a default-constructed one is unused. Takes one to two times
/// its size per entry.
template <class Cell>
class AddressTable {
 public:
  /// The entry at `address`, or null. Valid until the next put or erase.
  Cell* find(std::uint64_t address) {
    if (cells_.empty()) return nullptr;
    for (std::size_t at = home(address); cells_[at].is_used(); at = (at + 1) & (cells_.size() - 1))
      if (cells_[at].address == address) return &cells_[at];
    return nullptr;
  }

  /// REQUIRES: nothing is at its address; it is_used().
  void put(const Cell& cell) {
    if (used_ * 4 >= cells_.size() * 3) grow();
    place(cell);
    ++used_;
  }

  /// REQUIRES: `known` came from find().
  void erase(Cell* known) {
    const std::size_t mask = cells_.size() - 1;
    auto hole = static_cast<std::size_t>(known - cells_.data());
    // Later entries of the same run move up, unless they are at their home position (Knuth, 6.4, algorithm R).
    for (std::size_t at = (hole + 1) & mask; cells_[at].is_used(); at = (at + 1) & mask) {
      const std::size_t wanted = home(cells_[at].address);
      if (((at - wanted) & mask) < ((at - hole) & mask)) continue;
      cells_[hole] = cells_[at];
      hole = at;
    }
    cells_[hole] = {};
    --used_;
  }

  [[nodiscard]] std::size_t size() const { return used_; }
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Cell& cell : cells_)
      if (cell.is_used()) visit(cell);
  }

 private:
  [[nodiscard]] std::size_t home(std::uint64_t address) const {
    return static_cast<std::size_t>(mixed((address ^ seed_) * seed_)) & (cells_.size() - 1);
  }
  void place(const Cell& cell) {
    std::size_t at = home(cell.address);
    while (cells_[at].is_used()) at = (at + 1) & (cells_.size() - 1);
    cells_[at] = cell;
  }
  void grow() {
    std::vector<Cell> old(cells_.empty() ? 64 : cells_.size() * 2);
    old.swap(cells_);
    for (const Cell& cell : old)
      if (cell.is_used()) place(cell);
  }

  std::uint64_t seed_ = hash_seed();
  std::vector<Cell> cells_;
  std::size_t used_ = 0;
};

}  // namespace vramtrack::trace
