// A hook's data about the objects of an API, by owner and handle: without the heap, from a handful to millions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "probe/self.hpp"

namespace vramtrack::probe {

struct Key {
  std::uint64_t owner = 0;  ///< a device, a context; 0 if handles are globally unique
  std::uint64_t handle = 0;
  friend bool operator==(const Key&, const Key&) = default;
};
template <class Owner, class Handle>
Key key_of(Owner owner, Handle handle) {
  return {reinterpret_cast<std::uint64_t>(owner), reinterpret_cast<std::uint64_t>(handle)};
}

/// Open addressing, thread-safe; constant initialisation. `Value` is plain data. REQUIRES: handles other than 0.
template <class Value>
class Table {
 public:
  void put(const Key& key, const Value& value) {
    const Locked locked(spin_);
    if ((used_ + 1) * 4 > capacity_ * 3 && !grow()) return;
    Cell& cell = cells_[slot(key)];
    if (cell.key.handle == 0) ++used_;
    cell = {key, value};
  }
  bool find(const Key& key, Value& into) const {
    const Locked locked(spin_);
    const Cell* cell = look_up(key);
    if (cell != nullptr) into = cell->value;
    return cell != nullptr;
  }
  bool take(const Key& key, Value& into) {
    const Locked locked(spin_);
    const Cell* cell = look_up(key);
    if (cell == nullptr) return false;
    into = cell->value;
    erase(static_cast<std::size_t>(cell - cells_));
    return true;
  }
  /// Calls `change(Value&)` with the lock held; it must not call this table. False if there is no such key.
  template <class Change>
  bool update(const Key& key, Change change) {
    const Locked locked(spin_);
    Cell* cell = look_up(key);
    if (cell != nullptr) change(cell->value);
    return cell != nullptr;
  }
  /// Calls `visit(Key, Value)` for each entry with the lock held.
  template <class Visit>
  void each(Visit visit) const {
    const Locked locked(spin_);
    for (std::size_t i = 0; i < capacity_; ++i)
      if (cells_[i].key.handle != 0) visit(cells_[i].key, cells_[i].value);
  }
  /// Call in a child after a fork: empties the table.
  void reset() {
    // A table that was growing leaks its memory, because its size is uncertain.
    if (!spin_.reset()) give_back(cells_, capacity_ * sizeof(Cell));
    cells_ = nullptr;
    capacity_ = used_ = 0;
  }
  /// Call in a child after a fork instead to keep the entries, for objects that the child may continue to use.
  void unlock_after_fork() { spin_.reset(); }
  /// Removes the next entry that `wanted(Key)` accepts, from cell `at` on, which starts at 0. False if none is
  /// left.
  template <class Wanted>
  bool take_next(std::size_t& at, Wanted wanted, Value& into) {
    const Locked locked(spin_);
    for (; at < capacity_; ++at) {
      if (cells_[at].key.handle == 0 || !wanted(cells_[at].key)) continue;
      into = cells_[at].value;
      erase(at);
      return true;  // erase() may have moved another into this cell: examine it again
    }
    return false;
  }

 private:
  struct Cell {
    Key key;
    Value value;
  };
  static std::size_t hash_of(const Key& key) {
    std::uint64_t x = (key.owner * 0x9e3779b97f4a7c15U ^ key.handle) * 0xff51afd7ed558ccdU;
    x ^= x >> 32U;
    x *= 0xc4ceb9fe1a85ec53U;
    return x ^ x >> 29U;
  }
  [[nodiscard]] std::size_t slot(const Key& key) const {
    std::size_t at = hash_of(key) & (capacity_ - 1);
    while (cells_[at].key.handle != 0 && !(cells_[at].key == key)) at = (at + 1) & (capacity_ - 1);
    return at;
  }
  Cell* look_up(const Key& key) const {
    if (capacity_ == 0 || key.handle == 0) return nullptr;
    Cell* cell = &cells_[slot(key)];
    return cell->key.handle == 0 ? nullptr : cell;
  }
  bool grow() {
    const std::size_t old_capacity = capacity_;
    Cell* old = cells_;
    auto* larger = static_cast<Cell*>(reserve((capacity_ == 0 ? 64 : capacity_ * 2) * sizeof(Cell)));
    if (larger == nullptr) return false;
    capacity_ = capacity_ == 0 ? 64 : capacity_ * 2;
    cells_ = larger;
    for (std::size_t i = 0; i < old_capacity; ++i)
      if (old[i].key.handle != 0) cells_[slot(old[i].key)] = old[i];
    give_back(old, old_capacity * sizeof(Cell));
    return true;
  }
  /// Closes the gap like HoldingTable::erase.
  void erase(std::size_t at) {
    const std::size_t mask = capacity_ - 1;
    --used_;
    for (std::size_t next = (at + 1) & mask; cells_[next].key.handle != 0; next = (next + 1) & mask) {
      const std::size_t home = hash_of(cells_[next].key) & mask;
      if (((next - home) & mask) < ((next - at) & mask)) continue;
      cells_[at] = cells_[next];
      at = next;
    }
    cells_[at].key = {};
  }

  mutable Spin spin_;
  Cell* cells_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t used_ = 0;
};

}  // namespace vramtrack::probe
