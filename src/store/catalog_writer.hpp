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

/// Gives each series of the catalog its id in the file. New ids are handed out before their rows are
/// written, so that samples can be packed while the disk refuses; write() puts the rows into the same
/// transaction as the first samples that use them. A process is written with the first series of it that is
/// asked for: one whose memory is never known leaves no row.
///
/// The catalog may retire a series while samples of it wait: collect() takes copies before that, and what was
/// retired is forgotten here once it has been written. Memory: some 200 bytes a live series, twice that in between.
class CatalogWriter {
 public:
  /// Neither `database` nor `catalog` is owned; both must outlive this.
  static Result<CatalogWriter> open(sql::Database& database, const Catalog& catalog);

  /// Takes over what is new in the catalog: to be called with each batch, before its series can be retired.
  /// Nothing new: one comparison. Else O(new and changed).
  void collect();

  /// The file's id of `series`, which begins at 1. One look into the file for each series, then a hash. 0: it was
  /// retired before this could learn its key, so nothing can name it.
  Result<std::uint32_t> id_of(SeriesId series);

  /// Writes new series, and devices and processes that changed. Call within a transaction, then
  /// committed() once that has been committed; after a rollback the next write() writes them again.
  Status write();
  /// REQUIRES: no sample that id_of() has not been asked for yet is of a retired series.
  void committed();

  /// Series it keeps in memory: at most about twice those that the catalog holds.
  [[nodiscard]] std::size_t size() const { return series_.size(); }

 private:
  struct Series {
    SeriesKey key;
    std::uint32_t file_id = 0;  ///< 0: not asked for yet
  };
  struct Process {
    bool used = false;  ///< a series of it has an id in the file
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
  std::vector<ProcessId> unwritten_processes_;  ///< used, and changed
  std::uint32_t next_series_ = 0;               ///< not collected yet, from here on
  std::uint64_t collected_revision_ = 0;
  std::uint64_t device_revision_ = 0;      ///< of the devices that the file holds
  std::uint64_t new_device_revision_ = 0;  ///< of those last written
};

}  // namespace vramtrack
