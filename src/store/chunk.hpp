// Chunk: the values of many series over one shared time column, packed and compressed. One format serves the journal
// (seconds of samples), the packed raw samples (minutes) and the rollups (four values per point). Byte by byte:
// docs/formats/store.md.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/result.hpp"
#include "store/bytes.hpp"

struct ZSTD_CCtx_s;

namespace vramtrack {

inline constexpr unsigned kMaxColumns = 4;
/// Chunks that would unpack to more than this are rejected: no writer makes them.
inline constexpr std::size_t kMaxChunkBytes = 16U << 20;

/// A decoded chunk. Series ids ascend. `ticks` and `values` are flat: series `s` owns `count` entries of
/// `ticks` from `first`, and for each column c `count` entries of `values` from first * columns + c * count.
struct Chunk {
  struct Series {
    std::uint32_t id = 0;
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };
  unsigned columns = 1;
  std::vector<std::int64_t> times_ns;  ///< one per tick, in the order in which they were added; need not ascend
  std::vector<Series> series;
  std::vector<std::uint32_t> ticks;  ///< index into times_ns, ascending within a series
  std::vector<std::uint64_t> values;

  [[nodiscard]] std::size_t points() const { return ticks.size(); }
  [[nodiscard]] std::uint64_t value(const Series& of, std::size_t i, unsigned column = 0) const {
    return values[std::size_t{of.first} * columns + std::size_t{column} * of.count + i];
  }
};

/// Unpacks. Pure: any input gives a Chunk or an Error that states what is wrong at which offset. Memory is bounded by
/// kMaxChunkBytes, whatever the input claims.
Result<Chunk> decode_chunk(std::span<const std::uint8_t> data);
/// The same on the payload, before compression.
Result<Chunk> decode_payload(std::span<const std::uint8_t> payload);

/// Collects points column by column, at about one byte each, and packs them. Reusable: keeps its buffers.
class ChunkBuilder {
 public:
  explicit ChunkBuilder(unsigned columns = 1) : columns_(columns) {}

  /// Adds a point. Points of one instant should come together, because they then share one tick. A series that occurs
  /// twice in a tick, or a time other than the last one's, starts a new tick. REQUIRES: values.size() == columns.
  void add(std::int64_t time_ns, std::uint32_t series, std::span<const std::uint64_t> values);
  void add(std::int64_t time_ns, std::uint32_t series, std::uint64_t value) { add(time_ns, series, {&value, 1}); }

  /// Packs what was added, uncompressed; the builder is unchanged. REQUIRES: !empty().
  [[nodiscard]] Bytes payload() const;

  void clear();
  [[nodiscard]] bool empty() const { return times_ns_.empty(); }
  [[nodiscard]] std::size_t points() const { return points_; }
  [[nodiscard]] std::size_t encoded_bytes() const { return encoded_bytes_; }  ///< approximate size in memory
  [[nodiscard]] const std::vector<std::int64_t>& times_ns() const { return times_ns_; }
  [[nodiscard]] std::int64_t min_ns() const { return min_ns_; }
  [[nodiscard]] std::int64_t max_ns() const { return max_ns_; }

  /// Calls visit(series id, tick, value of column 0) for each point of each series in turn.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Lane& lane : lanes_) {
      ByteReader ticks(lane.ticks);
      ByteReader values(lane.columns[0].deltas);
      std::uint64_t gap = 0, tick = std::uint64_t{0} - 1, value = 0;
      for (std::uint32_t i = 0; i < lane.count; ++i) {
        if (lane.sparse) {
          gap += unzigzag(*ticks.varint());
          tick += gap;
        } else {
          tick = i;
        }
        value += unzigzag(*values.varint());
        visit(lane.id, static_cast<std::size_t>(tick), value);
      }
    }
  }

 private:
  struct Column {
    Bytes deltas;
    std::uint64_t last = 0;
    std::uint64_t bits = 0;  ///< all values OR-ed together: the trailing zeros give the column's unit
  };
  struct Lane {
    std::uint32_t id = 0;
    std::uint32_t count = 0;
    std::uint32_t last_tick = 0;
    std::uint64_t last_gap = 0;
    bool sparse = false;  ///< if false, it has a point in each of the first `count` ticks, and `ticks` is empty
    Bytes ticks;
    std::array<Column, kMaxColumns> columns;
  };
  Lane& lane_of(std::uint32_t series);

  unsigned columns_;
  std::vector<std::int64_t> times_ns_;
  std::vector<Lane> lanes_;  ///< in order of first occurrence
  std::vector<Lane> spare_;  ///< cleared lanes whose buffers are kept
  std::unordered_map<std::uint32_t, std::size_t> lane_index_;
  std::size_t next_lane_ = 0;  ///< where the next point's lane probably is: series come in the same order in each tick
  std::size_t points_ = 0;
  std::size_t encoded_bytes_ = 0;
  std::int64_t min_ns_ = 0;
  std::int64_t max_ns_ = 0;
};

/// zstd with a content checksum, so that a flipped bit is detected. One per writer; keeps its work space.
class Compressor {
 public:
  Compressor();
  ~Compressor();
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;
  /// `level` 1 (fast) .. 19. Errors: out of memory.
  Result<Bytes> compress(const Bytes& payload, int level);
  /// Frees the work space; the next compress() allocates it again.
  void release();

 private:
  ZSTD_CCtx_s* context_ = nullptr;
};

}  // namespace vramtrack
