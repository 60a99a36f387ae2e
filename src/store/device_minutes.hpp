// The maxima of devices' gauges, minute by minute. A report finds memory there that was held but not used, and the
// dashboard draws them next to the memory.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/result.hpp"
#include "core/sample.hpp"
#include "store/sqlite.hpp"

namespace vramtrack {

/// Collects readings and writes the maximum of each minute. Memory: one entry per device and minute that waits to be
/// written, at most kMostWaiting.
class DeviceMinuteWriter {
 public:
  static Result<DeviceMinuteWriter> open(sql::Database& database);

  void collect(const DeviceReading& reading);
  [[nodiscard]] bool empty() const { return waiting_.empty(); }
  /// Call it within a transaction, after the series were written, and committed() once that is. A device for which
  /// no memory was ever recorded gets no row.
  Status write();
  void committed() { waiting_.clear(); }

 private:
  static constexpr std::size_t kMostWaiting = 4096;
  /// Percent busy, degrees Celsius, watts and megahertz, in the order of the table's columns.
  using Figures = std::array<std::optional<std::int64_t>, 4>;
  /// True if that changed `into`.
  static bool raise(Figures& into, const Figures& figures);
  explicit DeviceMinuteWriter(sql::Statement put) : put_(std::move(put)) {}

  sql::Statement put_;
  std::map<std::pair<std::int64_t, std::string>, Figures> waiting_;  ///< by minute_s and device
  std::map<std::string, std::pair<std::int64_t, Figures>> latest_;   ///< waiting or in the file, as far as known
};

}  // namespace vramtrack
