// Hash tables of fixed size for many threads: no thread waits, and memory is allocated only once, from the system.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "probe/self.hpp"

namespace vramtrack::probe {

/// A 64-bit hash of a sequence of numbers.
class Hash {
 public:
  void add(std::uint64_t number) {
    const Wide product = static_cast<Wide>(state_ ^ number) * 0x9fb21c651e98df25U;
    state_ = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U) ^ 0xa0761d6478bd642fU;
  }
  [[nodiscard]] std::uint64_t value() const { return state_; }

 private:
  __extension__ using Wide = unsigned __int128;
  std::uint64_t state_ = 0xe7037ed1a0b428dbU;
};

/// Memory allocated at the first use; nullptr if there is none.
template <class Cell>
Cell* taken_once(std::atomic<Cell*>& cells, std::size_t count) {
  Cell* now = cells.load(std::memory_order_acquire);
  if (now != nullptr) return now;
  auto* made = static_cast<Cell*>(reserve(count * sizeof(Cell)));
  if (made == nullptr) return nullptr;
  if (cells.compare_exchange_strong(now, made)) return made;
  give_back(made, count * sizeof(Cell));
  return now;
}

/// A cache from key to number: later entries replace earlier ones. A reader that collides with a writer misses.
template <unsigned kBits>
class Recent {
 public:
  static constexpr std::size_t cells_count() { return std::size_t{1} << kBits; }
  bool find(std::uint64_t key, std::uint32_t& number) const {
    const Cell* cells = cells_.load(std::memory_order_acquire);
    if (cells == nullptr) return false;
    const std::size_t at = key >> (64 - kBits);
    for (const std::size_t i : {at, at ^ 1U}) {
      const std::uint64_t value = cells[i].value.load(std::memory_order_relaxed);
      if (value == 0 || (cells[i].check.load(std::memory_order_relaxed) ^ value) != key) continue;
      number = static_cast<std::uint32_t>(value);
      return true;
    }
    return false;
  }
  void put(std::uint64_t key, std::uint32_t number) {
    Cell* cells = taken_once(cells_, cells_count());
    if (cells == nullptr) return;
    std::size_t at = key >> (64 - kBits);
    if (cells[at].value.load(std::memory_order_relaxed) != 0 &&
        cells[at ^ 1U].value.load(std::memory_order_relaxed) == 0)
      at ^= 1U;
    cells[at].value.store(number, std::memory_order_relaxed);
    cells[at].check.store(key ^ number, std::memory_order_relaxed);
  }
  void forget() {
    give_back(cells_.load(std::memory_order_relaxed), cells_count() * sizeof(Cell));
    cells_.store(nullptr, std::memory_order_relaxed);
  }

 private:
  struct Cell {
    std::atomic<std::uint64_t> value;
    std::atomic<std::uint64_t> check;
  };
  std::atomic<Cell*> cells_{nullptr};
};

/// Permanent numbers from 1 for keys. The first thread that requests a key claims it, and the key is valid once that
/// thread has written it; threads that request it in between also get it as new.
template <unsigned kBits>
class Numbers {
 public:
  static constexpr std::size_t cells_count() { return std::size_t{1} << kBits; }
  /// The number of `key`; 0: there are already `most` others. REQUIRES: most < cells_count().
  std::uint32_t number(std::uint64_t key, std::size_t most, bool& is_new) {
    is_new = false;
    Cell* cells = taken_once(cells_, cells_count());
    if (cells == nullptr) return 0;
    key = (key | kClaimed) & ~kWritten;
    for (std::size_t at = key >> (64 - kBits);; at = (at + 1) & (cells_count() - 1)) {
      std::uint64_t found = cells[at].load(std::memory_order_acquire);
      if (found == 0) {
        if (count_.load(std::memory_order_relaxed) >= most) return 0;
        if (cells[at].compare_exchange_strong(found, key, std::memory_order_acq_rel)) {
          count_.fetch_add(1, std::memory_order_relaxed);
          found = key;
        }
      }
      if ((found & ~kWritten) != key) continue;
      is_new = (found & kWritten) == 0;
      return static_cast<std::uint32_t>(at + 1);
    }
  }
  void is_written(std::uint32_t number) {
    cells_.load(std::memory_order_relaxed)[number - 1].fetch_or(kWritten, std::memory_order_release);
  }
  void forget() {
    give_back(cells_.load(std::memory_order_relaxed), cells_count() * sizeof(Cell));
    cells_.store(nullptr, std::memory_order_relaxed);
    count_.store(0, std::memory_order_relaxed);
  }

 private:
  using Cell = std::atomic<std::uint64_t>;
  static constexpr std::uint64_t kWritten = 1;
  static constexpr std::uint64_t kClaimed = 2;
  std::atomic<Cell*> cells_{nullptr};
  std::atomic<std::size_t> count_{0};
};

}  // namespace vramtrack::probe
