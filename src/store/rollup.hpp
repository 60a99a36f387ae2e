// Rollups: min, mean, max and count of each series in each minute or hour.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "store/chunk.hpp"

namespace vramtrack {

// A sum of 64-bit values; __extension__: ISO C++ has no such type, and takes no `using` for it.
__extension__ typedef unsigned __int128 Uint128;  // NOLINT(modernize-use-using)

/// The values of one series in one bucket. Parts of a bucket are kept separately until they are read or merged: a
/// bucket is not held open across chunks.
struct RollupCell {
  std::int64_t start_ns = 0;
  std::uint32_t series = 0;
  std::uint64_t min = 0;
  std::uint64_t max = 0;
  std::uint64_t count = 0;
  Uint128 sum = 0;
};

/// Collects cells of one width from samples and from rollup chunks. Memory: 64 bytes per distinct cell, at times twice
/// that.
class RollupTable {
 public:
  /// Columns of a rollup chunk: min, mean - min (rounded to a byte), max - min, count.
  static constexpr unsigned kColumns = 4;

  explicit RollupTable(std::int64_t width_ns) : width_ns_(width_ns) {}

  /// Cheapest if the samples of a series come together and in time order.
  void add(std::int64_t time_ns, std::uint32_t series, std::uint64_t value);
  /// Adds the cells of a rollup chunk of the same width; with `only`, just those of that series. False if it is not a
  /// rollup chunk, because it has other columns or its counts are zero (then nothing is added).
  bool add(const Chunk& rollups, const std::uint32_t* only = nullptr);

  /// The cells by start, then series; parts of one cell are merged.
  const std::vector<RollupCell>& cells();
  void clear() { cells_.clear(); }

 private:
  void push(const RollupCell& cell);
  void merge();

  std::int64_t width_ns_;
  std::vector<RollupCell> cells_;
  static constexpr std::size_t kMergeAt = 1024;
  std::size_t merge_at_ = kMergeAt;
};

/// Adds `cells` to an empty `builder` of RollupTable::kColumns columns.
void put_cells(std::span<const RollupCell> cells, ChunkBuilder& builder);

}  // namespace vramtrack
