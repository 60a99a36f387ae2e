// Readings of several GPUs whose rows name none: the position of a row in its reading is its GPU.
#pragma once

#include <cmath>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "core/series.hpp"
#include "source/log/unnamed_gpus.hpp"

namespace vramtrack {

/// Holds the rows of a reading until it ends, since a row counts only if its reading is complete: it is not known which
/// row is missing, or too many. A reading that was interrupted continues in the next one. `Row` has a `time`. Not
/// thread-safe.
template <class Row>
class PositionedRows {
 public:
  /// `gpus`: rows in a complete reading; 1: there is nothing to hold.
  explicit PositionedRows(std::size_t gpus = 1) : gpus_(gpus) {}

  [[nodiscard]] std::size_t gpus() const { return gpus_; }
  [[nodiscard]] bool holds_any() const { return !reading_.empty(); }
  /// Whether a row of `time` begins another reading.
  [[nodiscard]] bool is_of_other_reading(Timestamp time) const {
    return holds_any() && std::abs(seconds_between(reading_.back().time, time)) > kTogether_s;
  }
  /// Whether the reading that has not ended has a row for each GPU.
  [[nodiscard]] bool is_complete() const { return gpus_ > 1 && reading_.size() == gpus_; }
  /// The rows of the reading that has not ended.
  [[nodiscard]] std::vector<Row>& reading() { return reading_; }

  /// The reading has ended: calls `read(row, position)` for each row of a complete one, and `leave_out(row, why)` for
  /// each row that cannot be read.
  template <class Read, class LeaveOut>
  void end(Read read, LeaveOut leave_out) {
    if (reading_.size() == gpus_) {
      drop(begun_, leave_out);
      release(reading_, read);
    } else if (begun_.size() + reading_.size() == gpus_) {
      std::move(reading_.begin(), reading_.end(), std::back_inserter(begun_));
      reading_.clear();
      release(begun_, read);
    } else {
      drop(begun_, leave_out);
      begun_ = std::exchange(reading_, {});
    }
  }

  /// The log has ended: its last reading may be truncated, but begins like the others.
  template <class Read, class LeaveOut>
  void finish(Read read, LeaveOut leave_out) {
    if (begun_.size() + reading_.size() == gpus_) return end(read, leave_out);
    drop(begun_, leave_out);
    if (reading_.size() > gpus_) return drop(reading_, leave_out);
    release(reading_, read);
  }

 private:
  template <class Read>
  static void release(std::vector<Row>& rows, Read& read) {
    std::vector<Row> all = std::exchange(rows, {});
    for (std::size_t i = 0; i < all.size(); ++i) read(all[i], i);
  }

  template <class LeaveOut>
  void drop(std::vector<Row>& rows, LeaveOut& leave_out) const {
    const std::string why = reading_of_another_size(rows.size(), gpus_);
    for (Row& row : rows) leave_out(row, why);
    rows.clear();
  }

  std::size_t gpus_;
  std::vector<Row> reading_;
  std::vector<Row> begun_;  ///< the reading before, if rows were missing: the current one may continue it
};

}  // namespace vramtrack
