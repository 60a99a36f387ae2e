// Readings of several GPUs in rows that do not name one: the position of a row in its reading identifies its GPU.
#pragma once

#include <cmath>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "core/series.hpp"
#include "source/log/rows.hpp"
#include "source/log/unnamed_gpus.hpp"

namespace vramtrack {

/// Holds the rows of a reading until it ends. A row counts only if its reading is complete, because otherwise it is not
/// known which row is missing or superfluous. An interrupted reading continues in the next one. `Row` has a `time` and
/// a `line`. Not thread-safe.
template <class Row>
class PositionedRows {
 public:
  /// `gpus`: the number of rows in a complete reading; 1: there is nothing to hold.
  explicit PositionedRows(std::size_t gpus = 1) : gpus_(gpus) {}

  [[nodiscard]] std::size_t gpus() const { return gpus_; }
  [[nodiscard]] bool holds_any() const { return !reading_.empty(); }
  /// Whether a row with this time begins another reading.
  [[nodiscard]] bool is_of_other_reading(Timestamp time) const {
    return holds_any() && std::abs(seconds_between(reading_.back().time, time)) > kTogether_s;
  }
  /// Whether the current reading has a row for each GPU.
  [[nodiscard]] bool is_complete() const { return gpus_ > 1 && reading_.size() == gpus_; }
  /// The rows of the current reading.
  [[nodiscard]] std::vector<Row>& reading() { return reading_; }

  /// Ends the reading: calls `read(row, position)` for each row of a complete one, with `rows.line` set to its line.
  /// Other rows are skipped. `at_end`: the log has ended, so the reading may be truncated, but begins like the others.
  template <class Read>
  void end(LogRows& rows, bool at_end, Read read) {
    const std::uint64_t line = rows.line;
    const bool is_continued = begun_.size() + reading_.size() == gpus_;
    if (is_continued && !begun_.empty()) {
      std::move(reading_.begin(), reading_.end(), std::back_inserter(begun_));
      reading_ = std::exchange(begun_, {});
    } else {
      drop(begun_, rows);
    }
    if (reading_.size() == gpus_ || (at_end && reading_.size() < gpus_))
      release(rows, read);
    else if (at_end)
      drop(reading_, rows);
    else
      begun_ = std::exchange(reading_, {});
    rows.line = line;
  }

 private:
  template <class Read>
  void release(LogRows& rows, Read& read) {
    std::vector<Row> all = std::exchange(reading_, {});
    for (std::size_t i = 0; i < all.size(); ++i) {
      rows.line = all[i].line;
      read(all[i], i);
    }
  }

  void drop(std::vector<Row>& dropped, LogRows& rows) const {
    const std::string why = reading_of_another_size(dropped.size(), gpus_);
    for (const Row& row : dropped) rows.skip(row.line, why);
    dropped.clear();
  }

  std::size_t gpus_;
  std::vector<Row> reading_;
  std::vector<Row> begun_;  ///< the previous reading, if rows were missing: the current one may continue it
};

}  // namespace vramtrack
