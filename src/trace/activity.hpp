// Activity: live memory over a recording of any length, by site, in bounded memory: parts with equally many events;
// neighbours are joined if there are too many. Each part keeps its highest moment, and what each site held then.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "trace/event.hpp"

namespace vramtrack::trace {

/// The number that the recording gives to an allocating site.
using Holder = std::uint32_t;

class Activity {
 public:
  /// `most_parts`: an even number. At the end there are between half of it and all of it, if there were enough
  /// events.
  explicit Activity(std::size_t most_parts) : most_parts_(most_parts) {}

  /// Adds memory that was live before the first event.
  void begin_with(Holder holder, std::int64_t bytes);
  /// The live bytes of `holder` changed by `bytes`; `reserved_bytes`: what the allocator then holds; 0: unknown.
  /// Amortised constant time.
  void take(std::int64_t time_us, Holder holder, std::int64_t bytes, std::int64_t reserved_bytes);

  struct Point {
    std::uint64_t event = 0;  ///< number of the highest moment's event, from 0
    std::int64_t time_us = kNoTime;
    std::int64_t live_bytes = 0;  ///< at the highest moment
    std::int64_t least_bytes = 0;
    std::int64_t reserved_bytes = 0;
  };
  /// From a point on, a holder has this much more than before (less if negative).
  struct Change {
    Holder holder = 0;
    std::uint32_t point = 0;
    std::int64_t bytes = 0;
  };
  /// The highest moments of the parts, in order.
  [[nodiscard]] std::vector<Point> points() const;
  /// Calls `see` for all changes, those of each holder in the order of points; a point may have several per holder.
  void changes(const std::function<void(const Change&)>& see) const;
  /// The most that each holder had at any of the points, the highest first (then by number), without holders that never
  /// had any.
  [[nodiscard]] std::vector<std::pair<Holder, std::int64_t>> peaks() const;
  [[nodiscard]] std::uint64_t event_count() const { return events_; }
  [[nodiscard]] std::size_t part_count() const { return parts_.size(); }
  /// The same with `2^times` parts joined into one: a coarser level of detail.
  [[nodiscard]] Activity joined(unsigned times) const;

 private:
  /// Changes by holder, each holder once, without zeros. In the last part, which is open, they are in order of arrival.
  using Deltas = std::vector<std::pair<Holder, std::int64_t>>;
  struct Part {
    Deltas all;         ///< from its begin to its end
    Deltas since_peak;  ///< from its highest moment to its end
    Point peak;
  };
  static void sum_up(Deltas& deltas);
  static void close(Part& part);
  /// `first` must then be closed.
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
