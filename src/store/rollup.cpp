#include "store/rollup.hpp"

#include <algorithm>
#include <array>
#include <tuple>

namespace vramtrack {
namespace {

void absorb(RollupCell& into, const RollupCell& part) {
  into.min = std::min(into.min, part.min);
  into.max = std::max(into.max, part.max);
  into.count += part.count;
  into.sum += part.sum;
}

}  // namespace

void RollupTable::add(std::int64_t time_ns, std::uint32_t series, std::uint64_t value) {
  std::int64_t phase_ns = time_ns % width_ns_;
  if (phase_ns < 0) phase_ns += width_ns_;
  // A bucket that began before the earliest representable time starts there.
  const std::int64_t start_ns = time_ns < INT64_MIN + phase_ns ? INT64_MIN : time_ns - phase_ns;
  push({start_ns, series, value, value, 1, value});
}

bool RollupTable::add(const Chunk& rollups, const std::uint32_t* only) {
  if (rollups.columns != kColumns) return false;
  for (const Chunk::Series& series : rollups.series)
    for (std::uint32_t i = 0; i < series.count; ++i)
      if (rollups.value(series, i, 3) == 0) return false;
  for (const Chunk::Series& series : rollups.series) {
    if (only && series.id != *only) continue;
    for (std::uint32_t i = 0; i < series.count; ++i) {
      const std::uint64_t min = rollups.value(series, i, 0);
      const std::uint64_t mean = min + rollups.value(series, i, 1);
      const std::uint64_t count = rollups.value(series, i, 3);
      push({rollups.times_ns[rollups.ticks[series.first + i]], series.id, min, min + rollups.value(series, i, 2), count,
            Uint128{mean} * count});
    }
  }
  return true;
}

void RollupTable::push(const RollupCell& cell) {
  if (!cells_.empty() && cells_.back().start_ns == cell.start_ns && cells_.back().series == cell.series) {
    absorb(cells_.back(), cell);
    return;
  }
  if (cells_.size() >= merge_at_) {
    merge();
    merge_at_ = std::max<std::size_t>(kMergeAt, 2 * cells_.size());
  }
  cells_.push_back(cell);
}

void RollupTable::merge() {
  std::sort(cells_.begin(), cells_.end(), [](const RollupCell& a, const RollupCell& b) {
    return std::tie(a.start_ns, a.series) < std::tie(b.start_ns, b.series);
  });
  std::size_t kept = 0;
  for (const RollupCell& cell : cells_) {  // `kept` never passes it
    if (kept > 0 && cells_[kept - 1].start_ns == cell.start_ns && cells_[kept - 1].series == cell.series) {
      absorb(cells_[kept - 1], cell);
    } else {
      cells_[kept++] = cell;
    }
  }
  cells_.resize(kept);
}

const std::vector<RollupCell>& RollupTable::cells() {
  merge();
  return cells_;
}

void put_cells(std::span<const RollupCell> cells, ChunkBuilder& builder) {
  for (const RollupCell& cell : cells) {
    if (cell.count == 0) continue;  // only damaged counts can add up to this
    const auto mean = static_cast<std::uint64_t>((cell.sum + cell.count / 2) / cell.count);
    const std::array<std::uint64_t, RollupTable::kColumns> values = {cell.min, mean - cell.min, cell.max - cell.min,
                                                                     cell.count};
    builder.add(cell.start_ns, cell.series, values);
  }
}

}  // namespace vramtrack
