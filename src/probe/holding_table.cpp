#include "probe/holding_table.hpp"

namespace vramtrack::probe {
namespace {

constexpr std::size_t kFirstCells = 256;

/// Finaliser of MurmurHash3 (public domain): every bit of the input changes half of the output's.
std::uint64_t mixed(std::uint64_t x) {
  x ^= x >> 33U;
  x *= 0xff51afd7ed558ccdU;
  x ^= x >> 33U;
  x *= 0xc4ceb9fe1a85ec53U;
  return x ^ x >> 33U;
}

std::uint64_t hash_of(Level level, std::uint64_t address) {
  return mixed(address + (level == Level::block ? 0x9e3779b97f4a7c15U : 0));
}

}  // namespace

HoldingTable::Shard& HoldingTable::shard_of(std::uint64_t hash) const {
  return shards_[hash >> 60U];
}

/// The cell of the holding, or the empty one for it. REQUIRES: there is an empty cell.
std::size_t HoldingTable::slot(const Shard& shard, Level level, std::uint64_t address) {
  const std::size_t mask = shard.capacity - 1;
  std::size_t at = hash_of(level, address) & mask;
  while (shard.cells[at].address != 0 && (shard.cells[at].address != address || shard.cells[at].level != level))
    at = (at + 1) & mask;
  return at;
}

bool HoldingTable::grow(Shard& shard) {
  Shard larger;
  larger.capacity = shard.capacity == 0 ? kFirstCells : shard.capacity * 2;
  larger.cells = static_cast<Holding*>(reserve(larger.capacity * sizeof(Holding)));
  if (larger.cells == nullptr) return false;
  for (std::size_t i = 0; i < shard.capacity; ++i)
    if (const Holding& held = shard.cells[i]; held.address != 0)
      larger.cells[slot(larger, held.level, held.address)] = held;
  give_back(shard.cells, shard.capacity * sizeof(Holding));
  shard.cells = larger.cells;
  shard.capacity = larger.capacity;
  return true;
}

Holding HoldingTable::put(const Holding& holding) {
  Shard& shard = shard_of(hash_of(holding.level, holding.address));
  const Locked locked(shard.spin);
  if ((shard.used + 1) * 5 > shard.capacity * 4 && !grow(shard)) return {};
  Holding& cell = shard.cells[slot(shard, holding.level, holding.address)];
  const Holding before = cell;
  if (before.address == 0) ++shard.used;
  cell = holding;
  return before;
}

/// Closes the gap: later cells of the run move up, unless that would move them before their home.
void HoldingTable::erase(Shard& shard, std::size_t at) {
  const std::size_t mask = shard.capacity - 1;
  --shard.used;
  for (std::size_t next = (at + 1) & mask; shard.cells[next].address != 0; next = (next + 1) & mask) {
    const std::size_t home = hash_of(shard.cells[next].level, shard.cells[next].address) & mask;
    if (((next - home) & mask) < ((next - at) & mask)) continue;
    shard.cells[at] = shard.cells[next];
    at = next;
  }
  shard.cells[at] = {};
}

Holding HoldingTable::take(Level level, std::uint64_t address) {
  if (address == 0) return {};
  Shard& shard = shard_of(hash_of(level, address));
  const Locked locked(shard.spin);
  if (shard.capacity == 0) return {};
  const std::size_t at = slot(shard, level, address);
  const Holding found = shard.cells[at];
  if (found.address != 0) erase(shard, at);
  return found;
}

Holding HoldingTable::find(Level level, std::uint64_t address) const {
  if (address == 0) return {};
  Shard& shard = shard_of(hash_of(level, address));
  const Locked locked(shard.spin);
  if (shard.capacity == 0) return {};
  return shard.cells[slot(shard, level, address)];
}

void HoldingTable::reset() {
  for (Shard& shard : shards_) {
    // A shard that was growing leaks its memory, because its size is uncertain.
    if (!shard.spin.reset()) give_back(shard.cells, shard.capacity * sizeof(Holding));
    shard.cells = nullptr;
    shard.capacity = shard.used = 0;
  }
}

}  // namespace vramtrack::probe
