// Activity: what was live over a recording of any length, by site, in bounded memory: parts of equally many events, of
// which neighbours are joined when there are too many. Each part keeps its highest moment, and who held what then.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "trace/event.hpp"

namespace vramtrack::trace {

/// Who allocated, as the recording numbers them.
using Holder = std::uint32_t;

class Activity {
 public:
  /// `most_parts`: an even number; at the end there are between half of it and all of it, if there were this many
  /// events.
  explicit Activity(std::size_t most_parts) : most_parts_(most_parts) {}

  /// What was live before the first event.
  void begin_with(Holder holder, std::int64_t bytes);
  /// The live bytes of `holder` changed by `bytes`; `reserved_bytes`: what the allocator holds then, 0: not known.
  /// Constant time, amortised.
  void take(std::int64_t time_us, Holder holder, std::int64_t bytes, std::int64_t reserved_bytes);

  struct Point {
    std::uint64_t event = 0;  ///< from 0, of the highest moment
    std::int64_t time_us = kNoTime;
    std::int64_t live_bytes = 0;  ///< then
    std::int64_t least_bytes = 0;
    std::int64_t reserved_bytes = 0;
  };
  /// From a point on, a holder has this much more than before, or less.
  struct Change {
    Holder holder = 0;
    std::uint32_t point = 0;
    std::int64_t bytes = 0;
  };
  /// The highest moments, in order.
  [[nodiscard]] std::vector<Point> points() const;
  /// All changes, of each holder in the order of points; one point may have several of a holder.
  void changes(const std::function<void(const Change&)>& see) const;
  /// What each holder had at most at one of the points, the highest first (then by number); none that had never
  /// anything.
  [[nodiscard]] std::vector<std::pair<Holder, std::int64_t>> peaks() const;
  [[nodiscard]] std::uint64_t event_count() const { return events_; }
  [[nodiscard]] std::size_t part_count() const { return parts_.size(); }
  /// The same in parts of `2^times` of these: a coarser level of detail.
  [[nodiscard]] Activity joined(unsigned times) const;

 private:
  /// By holder, each once, except for zero. Those of the last part, which is open, are as they came.
  using Deltas = std::vector<std::pair<Holder, std::int64_t>>;
  struct Part {
    Deltas all;         ///< from its begin to its end
    Deltas since_peak;  ///< from its highest moment to its end
    Point peak;
  };
  static void sum_up(Deltas& deltas);
  static void close(Part& part);
  /// The first is to be closed then.
  static void join(Part& first, const Part& second);

  std::size_t most_parts_;
  std::uint64_t events_in_part_ = 1;
  std::uint64_t open_events_ = 0;
  std::uint64_t events_ = 0;
  std::int64_t live_bytes_ = 0;
  Deltas begin_;
  std::vector<Part> parts_;
};

}  // namespace vramtrack::trace
