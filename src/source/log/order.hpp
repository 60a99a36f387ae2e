// The order in which a log lists its times, and what backward steps mean: see "Order of time" in
// docs/formats/logs.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/sample.hpp"

namespace vramtrack {

/// Read order that makes timestamps ascending.
enum class LogOrder : std::uint8_t {
  as_written,    ///< in order, or a clock was set back
  newest_first,  ///< from the end of the file
  by_time,       ///< with its rows sorted by time
  unclear,       ///< the backward steps contradict one another
};

/// Backward steps within one series up to this are jitter between rows (clock slew, threads).
inline constexpr Duration kClockJitter = std::chrono::seconds{2};
/// Rows of different series further apart than this do not interleave: one series is listed after another.
inline constexpr Duration kInterleaving = std::chrono::seconds{60};

/// The findings of one pass over the times of a log. Takes 64 bytes per series.
class OrderSurvey {
 public:
  /// Receives the next sample, in file order.
  void see(std::uint64_t line, Timestamp time, SeriesId series);

  /// Whether time steps back at all.
  [[nodiscard]] bool steps_back() const { return ahead_.steps > 0; }
  /// Whether the file lists whole series one after another.
  [[nodiscard]] bool in_blocks() const { return ahead_.blocks; }
  /// Whether time steps back so often that the rows are in no order at all.
  [[nodiscard]] bool is_shuffled() const;
  /// Whether every series steps back and none forward. `wraps`: times of day, which step forward at each midnight.
  [[nodiscard]] bool newest_first(bool wraps) const;
  /// With newest_first(): whether whole series follow one another when the log is read from its end.
  [[nodiscard]] bool in_blocks_from_end() const { return behind_.blocks; }
  /// The line where time first steps back; 0 if it never does.
  [[nodiscard]] std::uint64_t line() const { return line_; }
  [[nodiscard]] std::uint64_t samples() const { return samples_; }
  /// The earliest time of all samples. REQUIRES: samples() > 0.
  [[nodiscard]] Timestamp earliest() const { return earliest_; }
  [[nodiscard]] Timestamp latest() const { return latest_; }
  /// The time of the last sample in the file.
  [[nodiscard]] Timestamp last() const { return last_; }
  /// Time between two samples of a series, as far as the order of the samples shows it.
  [[nodiscard]] Duration period() const;

 private:
  /// Counts the steps against one direction of time.
  struct Direction {
    struct Last {
      std::int64_t furthest = 0;
      std::uint64_t stretch = 0;  ///< index of the part of the file between two steps
    };
    std::vector<Last> last;  ///< per series
    std::int64_t furthest = INT64_MIN / 2;
    std::uint64_t stretch = 1;
    std::uint64_t steps = 0;
    bool blocks = false;
    bool see(std::size_t series, std::int64_t time_ns);
  };
  struct Extent {
    Timestamp last{};
    Timestamp earliest{};
    Timestamp latest{};
    std::uint64_t samples = 0;
  };
  void keep_rise(Duration rise);

  Direction ahead_;
  Direction behind_;
  std::vector<Extent> extents_;  ///< per series
  std::vector<Duration> rises_;  ///< some of the forward steps, evenly over the log
  std::uint64_t rises_seen_ = 0;
  std::uint64_t falls_seen_ = 0;
  std::uint64_t rise_every_ = 1;
  std::uint64_t samples_ = 0;
  std::uint64_t line_ = 0;
  Timestamp earliest_ = Timestamp::max();
  Timestamp latest_ = Timestamp::min();
  Timestamp last_{};
};

/// A second pass, over a log in which times step back: are its rows out of order, or was a clock set back? A stretch is
/// a run of samples of one series without a backward step or a pause. If the stretch after a backward step covers a
/// time in which its series has no other samples, the rows are out of order; if it lies among other samples, a clock
/// was set. A clock with dates never goes back over the whole log, nor twice over the same time: that is neither.
class StretchSurvey {
 public:
  /// `period`: OrderSurvey::period(). A stretch ends if no sample follows for one and a half periods. `is_dated`: the
  /// times are dates, not times since a start.
  StretchSurvey(Duration period, bool is_dated) : pause_(period + period / 2), is_dated_(is_dated) {}

  void see(Timestamp time, SeriesId series);
  /// REQUIRES: all samples were seen. Returns by_time, as_written (a clock was set) or unclear.
  [[nodiscard]] LogOrder order();

 private:
  /// Later stretches are not kept; the first ones decide. 32 MiB.
  static constexpr std::size_t kMostStretches = 1U << 20;

  struct Stretch {
    std::int64_t first_ns = 0;
    std::int64_t last_ns = 0;
    std::int64_t back_ns = 0;  ///< size of the backward step before it; 0: none
    std::uint32_t series = 0;
    bool is_open = false;
  };
  [[nodiscard]] bool begins_before(const Stretch& a, const Stretch& b) const;
  void close(const Stretch& stretch);

  Duration pause_;
  bool is_dated_;
  std::vector<Stretch> open_;  ///< per series
  std::vector<Stretch> closed_;
};

}  // namespace vramtrack
