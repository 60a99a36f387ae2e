// Packer: turns the journal into chunks and rollups, and keeps the file within its retention and size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "store/chunk.hpp"
#include "store/sqlite.hpp"

namespace vramtrack {

/// Reads committed journal rows into a block in memory; when the block is full, one transaction writes
/// it as a chunk with its rollups and deletes its journal rows, so that each sample is in exactly one of
/// the two at any moment. A crash loses only the block in memory, which the next open reads again.
/// Retention runs with each block and by the store's uptime, which cannot be set: bounded work, no long stall.
class Packer {
 public:
  /// A block ends when its samples span this time, or when it takes this much memory (many series: shorter blocks).
  static constexpr std::int64_t kBlockSpanNs = 15 * 60'000'000'000LL;
  static constexpr std::size_t kBlockBytes = 128U << 10;

  /// `database` must outlive the packer. Notices are appended to `notices`.
  static Result<Packer> open(sql::Database& database, const StoreConfig& config, std::vector<std::string>& notices);

  /// Takes in journal rows that were committed since the last call, and packs blocks that became full. `uptime_ns` is
  /// the store's uptime now, and never decreases. An error leaves everything unchanged; the next call tries again.
  Status advance(Compressor& compressor, std::int64_t uptime_ns);

 private:
  Packer(sql::Database& database, const StoreConfig& config, std::vector<std::string>& notices)
      : database_(&database), notices_(&notices), config_(config) {}

  Status advance_or_throw(Compressor& compressor);
  Status read_journal();  ///< until the block is full or the end of the journal is reached
  [[nodiscard]] bool full() const;
  Status pack(Compressor& compressor);
  Status write_extents_and_rollups(Compressor& compressor);
  Status write_rollup(const std::vector<struct RollupCell>& cells, int resolution_s, bool merged,
                      Compressor& compressor);
  Status merge_hours(Compressor& compressor);
  Status expire();
  Status keep_size();
  Result<std::int64_t> delete_oldest(std::string_view from, std::string_view where);
  Status give_back_space();

  sql::Database* database_;
  std::vector<std::string>* notices_;
  StoreConfig config_;
  sql::Statement next_row_, put_chunk_, put_rollup_, put_extent_, delete_journal_;
  ChunkBuilder block_;
  std::int64_t last_seq_ = 0;  ///< last journal row in (or before) the block
  std::int64_t uptime_ns_ = 0;
  bool vacuum_ = false;  ///< free pages must be released, a few with each call
  bool notified_raw_ = false, notified_minutes_ = false, notified_hours_ = false;
};

}  // namespace vramtrack
