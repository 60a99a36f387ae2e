// Keeps the file's series, devices and processes in step with a Catalog.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/series.hpp"
#include "store/sqlite.hpp"

namespace vramtrack {

/// Gives each series of the catalog its id in the file. New ids are handed out before their rows are written, so that
/// samples can be packed while the disk refuses; write() puts the rows into the same transaction as the first samples
/// that use them. A process is written with the first of its series whose id is requested: a process whose memory is
/// never known leaves no row.
///
/// The catalog may retire a series while samples of it are waiting: collect() takes copies before that, and retired
/// series are forgotten here once they have been written. Memory: some 200 bytes per live series, at times twice that.
class CatalogWriter {
 public:
  /// Neither `database` nor `catalog` is owned; both must outlive this object.
  static Result<CatalogWriter> open(sql::Database& database, const Catalog& catalog);

  /// Collects what is new in the catalog; must be called with each batch, before its series can be retired. If
  /// nothing is new: one comparison. Otherwise O(new and changed).
  void collect();

  /// The file's id of `series`; ids begin at 1. One look into the file for each series, then a hash lookup. 0 if it was
  /// retired before this object could learn its key, so that nothing can name it.
  Result<std::uint32_t> id_of(SeriesId series);

  /// Writes new series, and devices and processes that changed. Call it within a transaction, and committed() once that
  /// has been committed; after a rollback, the next write() writes them again.
  Status write();
  /// REQUIRES: every sample of a retired series has already been passed to id_of().
  void committed();

  /// Number of series kept in memory: at most about twice those that the catalog holds.
  [[nodiscard]] std::size_t size() const { return series_.size(); }

 private:
  struct Series {
    SeriesKey key;
    std::uint32_t file_id = 0;  ///< 0: not requested yet
  };
  struct Process {
    bool used = false;  ///< one of its series has an id in the file
    std::optional<ProcessInfo> unwritten;
  };
  using ProcessId = std::pair<std::uint32_t, std::uint64_t>;  ///< pid, start ticks
  struct ProcessIdHash {
    std::size_t operator()(const ProcessId& id) const { return id.second * 0x9e3779b97f4a7c15U + id.first; }
  };

  explicit CatalogWriter(const Catalog& catalog) : catalog_(&catalog) {}
  void forget_retired();

  const Catalog* catalog_;
  sql::Statement find_series_, put_series_, put_device_, put_process_;
  std::uint32_t last_id_ = 0;
  std::unordered_map<std::uint32_t, Series> series_;  ///< by SeriesId
  std::unordered_map<ProcessId, Process, ProcessIdHash> processes_;
  std::vector<std::pair<std::uint32_t, SeriesKey>> unwritten_series_;
  std::vector<ProcessId> unwritten_processes_;  ///< used and changed
  std::uint32_t next_series_ = 0;               ///< the first one that is not collected yet
  std::uint64_t collected_revision_ = 0;
  std::uint64_t device_revision_ = 0;      ///< revision of the devices that the file holds
  std::uint64_t new_device_revision_ = 0;  ///< revision of those last written
};

}  // namespace vramtrack
