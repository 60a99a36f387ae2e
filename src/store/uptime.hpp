// Uptime: the time by which retention counts. This clock cannot be set.
#pragma once

#include <cstdint>
#include <optional>

#include "core/clock_mark.hpp"
#include "core/result.hpp"
#include "store/sqlite.hpp"

namespace vramtrack {

/// How long the machine was up since its store was made, as far as vramtrack knows: from one mark to the next, even if
/// vramtrack or the machine restarted between them. The time for which it was off is not counted: only the time of day
/// could show it, and that may be wrong. So it never runs faster than the time since boot nor, from the last run to
/// this one, than the time of day: even with a damaged file, rows never look older than they are.
class Uptime {
 public:
  /// A mark is written again when this much time has passed or the clock was set: each one writes a page of the log.
  static constexpr Duration kWriteEvery = std::chrono::minutes{1};
  /// How far the sum in the file may be ahead of its newest row: a block, plus a little for the flush.
  static constexpr Duration kAheadOfRows = std::chrono::minutes{16};

  /// Reads the file's contents. `database` must outlive this object.
  static Result<Uptime> open(sql::Database& database);

  /// Counts the time since the last mark. REQUIRES: mark.since_boot >= 0.
  void advance(const ClockMark& mark);
  [[nodiscard]] std::int64_t ns() const { return uptime_ns_; }
  /// The last mark, of this run or of the one before.
  [[nodiscard]] const std::optional<ClockMark>& last() const { return last_; }

  /// Writes the mark if it is due, or if `now`; within the caller's transaction.
  Status write(bool now);
  /// The caller's transaction has been committed.
  void committed() { written_ = writing_; }

 private:
  explicit Uptime(sql::Statement put) : put_(std::move(put)) {}

  sql::Statement put_;
  std::int64_t uptime_ns_ = 0;
  std::optional<ClockMark> last_, writing_, written_;
  bool last_is_read_ = false;  ///< from the file, not written by this run
};

}  // namespace vramtrack
