// Uptime: the time by which retention counts. Nobody can set it.
#pragma once

#include <cstdint>
#include <optional>

#include "core/clock_mark.hpp"
#include "core/result.hpp"
#include "store/sqlite.hpp"

namespace vramtrack {

/// The time for which the machine was up since its store was made, as far as vramtrack knows: from one mark to the
/// next, be there a restart of vramtrack or of the machine between them. The time for which it was off is not counted:
/// only the time of day could tell, and it may be wrong. So it never goes faster than the time since boot, nor, from
/// the last run to this one, than the time of day: what a damaged file says never makes rows look older than they are.
class Uptime {
 public:
  /// A mark is written again when this much time has passed, or the clock was set: each writes a page of the log.
  static constexpr Duration kWriteEvery = std::chrono::minutes{1};
  /// How far the sum in the file may be ahead of its newest row: a block, and a little for what flushes it.
  static constexpr Duration kAheadOfRows = std::chrono::minutes{16};

  /// Reads what the file holds. `database` must outlive this.
  static Result<Uptime> open(sql::Database& database);

  /// Counts the time since the last mark. REQUIRES: mark.since_boot >= 0.
  void advance(const ClockMark& mark);
  [[nodiscard]] std::int64_t ns() const { return uptime_ns_; }
  /// The last mark, be it of this run or of the one before.
  [[nodiscard]] const std::optional<ClockMark>& last() const { return last_; }

  /// Writes the mark when it is due, or when `now`; within the caller's transaction.
  Status write(bool now);
  /// The caller's transaction is in the file.
  void committed() { written_ = writing_; }

 private:
  explicit Uptime(sql::Statement put) : put_(std::move(put)) {}

  sql::Statement put_;
  std::int64_t uptime_ns_ = 0;
  std::optional<ClockMark> last_, writing_, written_;
  bool last_is_read_ = false;  ///< from the file: nobody of this run has seen it
};

}  // namespace vramtrack
