// Reads the time column: dates in all orders that tools write, epoch numbers, relative seconds, times of day, and logs
// without any clock; and counts that begin again with each epoch.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "core/scale.hpp"
#include "core/time.hpp"
#include "core/zone.hpp"

namespace vramtrack {

struct LogOptions;

/// The order of a purely numeric date that does not begin with the year.
enum class DateOrder : std::uint8_t { month_first, day_first };

/// A date and time as written.
struct Civil {
  std::int64_t local_s = 0;  ///< seconds since 1970-01-01T00:00 on the writer's clock (or since midnight)
  std::uint32_t nano = 0;
  bool has_date = false;
  bool has_time = false;
  bool has_seconds = false;
  std::optional<std::int32_t> offset_s;  ///< offset from UTC, if written
  std::size_t length = 0;                ///< number of characters read
};

/// Reads a date and/or time at the start of `text`: ISO 8601 and variants (T or space, - or /, fraction with .
/// or :, Z or offset), 20260611, numeric dates with the year last, the `date` command's "Sun May 4 04:27:32 [AM]
/// [EDT] 2025", "2024年05月01日 23時50分00秒" (also in Japanese and Korean), or just HH:MM:SS; after a date also
/// 214007 and 21-40-07. Returns false if it starts with none of these, or a field is out of range. Years 1970 to
/// 2100.
bool read_civil(std::string_view text, DateOrder order, Civil& out);
/// The same in either order; month first if both are possible.
bool read_civil(std::string_view text, Civil& out);
/// The same if only spaces surround it.
std::optional<Civil> whole_civil(std::string_view text);

/// Whether the digits at the start of `text` can belong to a date or a time, by their number and the characters after
/// them. Runs for every number of every line of text; few pass.
bool may_begin_civil(std::string_view text);

/// Whether `text` begins with a time after "上午", "午後", "오후" and the like.
bool begins_half_day(std::string_view text);

/// Turns the time column of one log into Timestamps. Detects their format from sample values.
class StampReader {
 public:
  enum class Kind : std::uint8_t { civil, time_of_day, epoch, relative, step, none };

  /// The meaning of the column's values according to its title.
  struct Title {
    std::int64_t unit_ns = 0;   ///< nanoseconds per count; 0: not given
    bool step = false;          ///< a count of samples, not of time
    std::string_view counts{};  ///< the thing counted if the values are not dates: "epoch"; a literal
    friend bool operator==(const Title&, const Title&) = default;
  };

  /// Detects how `samples` (values of the time column, in file order) are written; without any, the log has no clock.
  /// Assumptions that the user should know are added to `warnings`. An Error says what was found and what is supported.
  static Result<StampReader> detect(std::span<const std::string_view> samples, Title title, const LogOptions& options,
                                    const Zone& zone, std::vector<std::string>& warnings,
                                    std::optional<DateOrder> order = std::nullopt);
  /// For logs without a clock from tools with a usual period: use at_round().
  static StampReader without_clock(const LogOptions& options, std::vector<std::string>& warnings);
  /// For other logs with neither a clock nor a count: use at_round(). Readings are counted in place of time (see Scale)
  /// unless the options give the interval or the start.
  static StampReader of_readings(const LogOptions& options, std::vector<std::string>& warnings);

  /// Returns false if `text` is not a time in the detected format. About 10 ns within the minute of the previous line.
  bool read(std::string_view text, Timestamp& out);

  /// The time of the `round`-th reading of a log without a clock.
  [[nodiscard]] Timestamp at_round(std::uint64_t round) const {
    return base_ + Duration{static_cast<std::int64_t>(round) * unit_ns_};
  }

  [[nodiscard]] Kind kind() const { return kind_; }
  /// Whether the times are offsets from the epoch rather than dates.
  [[nodiscard]] bool is_relative() const { return relative_; }
  /// The unit of the times: see Scale. Times of day count from the midnight before the first one.
  [[nodiscard]] const Scale& scale() const { return scale_; }
  /// Whether the times are times of day: the date advances by one at each midnight.
  [[nodiscard]] bool wraps() const { return kind_ == Kind::time_of_day; }

 private:
  bool read_civil_slowly(std::string_view text, Timestamp& out);
  bool read_number(std::string_view text, Timestamp& out) const;
  bool read_time_of_day(std::string_view text, Timestamp& out);
  /// Each `what` takes `each_ns` of the time axis.
  void count(std::string_view what, std::int64_t each_ns);

  static constexpr std::size_t kPrefix = 17;  ///< "2026/06/11 15:24:"

  Kind kind_ = Kind::none;
  DateOrder order_ = DateOrder::month_first;
  bool relative_ = false;
  Scale scale_;
  std::int64_t unit_ns_ = 1'000'000'000;
  Timestamp base_{};
  Zone zone_;
  std::int64_t last_s_ = INT64_MIN / 2;  ///< UTC seconds of the last civil stamp, to recognise a repeated hour
  std::int64_t day_s_ = 0;               ///< time of day: seconds of the elapsed days
  std::int64_t last_of_day_s_ = 0;
  bool cached_ = false;
  char prefix_[kPrefix] = {};
  std::string suffix_;  ///< text after the seconds: "", "Z", "+02:00"
  Timestamp minute_{};  ///< UTC of the cached prefix
};

class EpochCounter {
 public:
  /// The continuous count, if the next reading has `count` in `epoch`. A count that falls within its epoch is returned
  /// unchanged, after those of the previous epochs.
  std::uint64_t next(std::uint64_t count, std::uint64_t epoch) {
    if (last_ && epoch > epoch_ && count < *last_) before_ += *last_ + stride_ - count;
    if (epoch < epoch_) before_ = 0;  // another run
    if (last_ && count > *last_) stride_ = count - *last_;
    last_ = count;
    epoch_ = epoch;
    return before_ + count;
  }

 private:
  std::optional<std::uint64_t> last_;
  std::uint64_t epoch_ = 0;
  std::uint64_t stride_ = 1;  ///< difference between the last two counts that rose
  std::uint64_t before_ = 0;  ///< sum of all finished epochs
};

}  // namespace vramtrack
