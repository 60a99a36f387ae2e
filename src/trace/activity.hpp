// Activity: what was live over a recording of any length, by site, in bounded memory: parts of equally many events, of
// which neighbours are joined when there are too many. Each part keeps its highest moment, and who held what then.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "trace/event.hpp"

namespace vramtrack::trace {

/// Who allocated, as the recording numbers them.
using Holder = std::uint32_t;

class Activity {
 public:
  /// `most_parts`: an even number; at the end there are between half of it and all of it, if there were so many events.
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
  /// One value of a holder, from a point on until the next.
  struct Step {
    std::uint32_t point = 0;
    std::int64_t bytes = 0;
  };
  struct Curve {
    Holder holder = 0;
    std::int64_t peak_bytes = 0;
    std::vector<Step> steps;
  };
  /// The highest moments, in order.
  [[nodiscard]] std::vector<Point> points() const;
  /// Each holder's bytes at these moments, those with the highest peaks first (then by number).
  [[nodiscard]] std::vector<Curve> curves() const;
  [[nodiscard]] std::uint64_t event_count() const { return events_; }

 private:
  using Deltas = std::unordered_map<Holder, std::int64_t>;
  struct Part {
    Deltas all;         ///< from its begin to its end
    Deltas since_peak;  ///< from its highest moment to its end
    Point peak;
  };
  static void join(Part& first, Part& second);

  std::size_t most_parts_;
  std::uint64_t events_in_part_ = 1;
  std::uint64_t open_events_ = 0;
  std::uint64_t events_ = 0;
  std::int64_t live_bytes_ = 0;
  Deltas begin_;
  std::vector<Part> parts_;
};

}  // namespace vramtrack::trace
