// Keeps the file's series, devices and processes in step with a Catalog.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/series.hpp"
#include "store/sqlite.hpp"

namespace vramtrack {

/// Gives each series of the catalog its id in the file. New ids are handed out before their rows are
/// written, so that samples can be packed while the disk refuses; write() puts the rows into the same
/// transaction as the first samples that use them.
class CatalogWriter {
 public:
  /// Neither `database` nor `catalog` is owned; both must outlive this.
  static Result<CatalogWriter> open(sql::Database& database, const Catalog& catalog);

  /// The file's id of `series`. One look into the file for each series, then an array access.
  Result<std::uint32_t> id_of(SeriesId series);

  /// Writes new series, and devices and processes that changed. Call within a transaction, then
  /// committed() once that has been committed; after a rollback the next write() writes them again.
  Status write();
  void committed();

 private:
  explicit CatalogWriter(const Catalog& catalog) : catalog_(&catalog) {}

  const Catalog* catalog_;
  sql::Statement find_series_, put_series_, put_device_, put_process_;
  std::uint32_t last_id_ = 0;
  std::vector<std::uint32_t> ids_;  ///< by SeriesId; 0: not asked for yet
  std::vector<std::pair<std::uint32_t, SeriesId>> unwritten_;
  bool described_ = false;  ///< whether described_revision_ means anything
  std::uint64_t described_revision_ = 0;
  std::vector<std::size_t> devices_, processes_;  ///< fingerprints of what the file holds, by place in the catalog
  std::vector<std::size_t> new_devices_, new_processes_;
  std::uint64_t new_revision_ = 0;
};

}  // namespace vramtrack
