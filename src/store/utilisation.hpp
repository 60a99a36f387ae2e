// How busy devices were, minute by minute: the greatest share of time for which some kernel ran, so that a report can
// identify memory that was held but not used.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/result.hpp"
#include "core/sample.hpp"
#include "store/sqlite.hpp"

namespace vramtrack {

/// Collects readings and writes the greatest of each minute. Memory: one entry per device and minute that waits to be
/// written, at most kMostWaiting.
class UtilisationWriter {
 public:
  static Result<UtilisationWriter> open(sql::Database& database);

  void collect(const DeviceReading& reading);
  [[nodiscard]] bool empty() const { return waiting_.empty(); }
  /// Call it within a transaction, after the series were written, and then committed() once it is. A device for which
  /// no memory was ever recorded gets no row.
  Status write();
  void committed() { waiting_.clear(); }

 private:
  static constexpr std::size_t kMostWaiting = 4096;
  explicit UtilisationWriter(sql::Statement put) : put_(std::move(put)) {}

  sql::Statement put_;
  std::map<std::pair<std::int64_t, std::string>, int> waiting_;  ///< (minute_s, device) -> percent
  std::map<std::string, std::pair<std::int64_t, int>> latest_;   ///< what is known to be waiting or in the file
};

}  // namespace vramtrack
