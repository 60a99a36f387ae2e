// TickReader: a recording or a simulation, tick by tick, as a live watch would have seen it. The only way from a
// recorded source to an engine.
#pragma once

#include <deque>
#include <optional>

#include "core/result.hpp"
#include "source/source.hpp"
#include "source/ticks.hpp"

namespace vramtrack {

/// All samples of one instant, and the events up to it.
struct Tick {
  Timestamp time;
  Batch batch;
  /// A store holds one watch after another. With this tick a watch begins that did not continue the previous one:
  /// whatever judges the samples must forget what came before. Never true for the first tick.
  bool starts_anew = false;
};

/// Not thread-safe. Memory: one stretch of the source, a few thousand samples.
class TickReader {
 public:
  /// `source` must outlive the reader.
  explicit TickReader(Source& source) : source_(source) {}

  /// The next tick; nullptr at the end, and when reading failed: see broken(). The tick is valid until the next call,
  /// and its parts may be moved from. O(samples).
  Tick* next();
  /// Why the recording could not be read to its end. What was read before has been handed over.
  [[nodiscard]] const std::optional<Error>& broken() const { return broken_; }

 private:
  void keep(Batch& tick, Timestamp time);
  void push(Tick tick);

  Source& source_;
  Ticks ticks_;
  Batch stretch_;
  std::deque<Tick> waiting_;
  std::optional<Tick> now_;
  std::optional<Error> broken_;
  bool any_ = false;
  bool at_end_ = false;
};

}  // namespace vramtrack
