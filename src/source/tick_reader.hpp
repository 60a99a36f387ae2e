// read_ticks(): a recording or a simulation, tick by tick, as a live watch would have seen it. This is the only way
// from a recorded source to an engine, except for top's playback, which can stop between any two ticks and so uses the
// TickReader itself.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "core/time_range.hpp"
#include "source/source.hpp"
#include "source/ticks.hpp"

namespace vramtrack {

/// Whether the event starts a watch that does not continue the previous one in its store.
bool starts_anew(const Event& event);

/// All samples of one instant, and the events up to it.
struct Tick {
  Timestamp time;
  Batch batch;
  /// A store holds one watch after another. True if this tick starts a watch that does not continue the previous one:
  /// any code that judges the samples must then forget what came before. Never true for the first tick.
  bool starts_anew = false;
};

/// Not thread-safe. Memory: one stretch of the source, a few thousand samples.
class TickReader {
 public:
  /// `source` must outlive the reader.
  explicit TickReader(Source& source) : source_(source) {}

  /// The next tick; nullptr at the end, or if reading failed (see broken()). The tick is valid until the next call, and
  /// its parts may be moved from. O(samples).
  Tick* next();
  /// Why the recording could not be read to its end, if so. Everything read before has been handed over.
  [[nodiscard]] const std::optional<Error>& broken() const { return broken_; }

 private:
  void keep(Batch& tick, Timestamp time);
  void push(Batch& batch, Timestamp time);

  Source& source_;
  Ticks ticks_;
  Batch stretch_;
  std::vector<Tick>
      queue_;  ///< ticks from next_ to waiting_ are still to be handed over; the memory of the others is reused
  std::size_t next_ = 0;
  std::size_t waiting_ = 0;
  std::optional<Error> broken_;
  bool any_ = false;
  bool at_end_ = false;
};

/// Receives the ticks of a recording.
struct TickTaker {
  /// May be empty. Called before a tick is used; returns when the tick is due, or false to stop there.
  std::function<bool(const Tick&)> wait;
  /// Called before a tick that starts a watch that does not continue the previous one: forget what came before.
  std::function<void(Tick&)> begin_anew;
  /// Returns false if it needs no more ticks. The tick's parts may be moved from.
  std::function<bool(Tick&)> take;
};

/// What was read, whether or not it was in the range.
struct TicksRead {
  std::optional<Timestamp> first;
  std::optional<Timestamp> last;  ///< at or after the range's end; there may be more
  bool at_end = false;            ///< nothing was left: neither the range nor the taker ended the reading
  std::optional<Error> broken;    ///< why reading failed; everything read before has been handed over
};

/// The extent of a recording that has nothing in `range`: "from A to B", or "from A and later" if reading stopped at
/// the range's end. Empty if nothing was read.
std::string extent_words(const TicksRead& read, const TimeRange& range, const Catalog& catalog);

/// Hands over the ticks of `source` in `range`, until the source ends or fails, or `taker` needs no more.
TicksRead read_ticks(Source& source, const TickTaker& taker, const TimeRange& range = {});

/// The notes of a source, for people: its warnings and the lines that it skipped.
std::vector<std::string> warnings_of(const SourceNotes& notes);

}  // namespace vramtrack
