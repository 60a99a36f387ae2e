// read_ticks(): a recording or a simulation, tick by tick, as a live watch would have seen it. The only way from a
// recorded source to an engine, apart from top's playback, which stops between any two ticks and so holds the
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

/// Whether a watch begins that did not continue the previous one of its store.
bool starts_anew(const Event& event);

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
  void push(Batch& batch, Timestamp time);

  Source& source_;
  Ticks ticks_;
  Batch stretch_;
  std::vector<Tick>
      queue_;  ///< the ticks from next_ to waiting_ are still to come; the memory of the others is used again
  std::size_t next_ = 0;
  std::size_t waiting_ = 0;
  std::optional<Error> broken_;
  bool any_ = false;
  bool at_end_ = false;
};

/// Receives the ticks of a recording.
struct TickTaker {
  /// May be empty. Called before anything is done with a tick, and returns when it is due; false: stop here.
  std::function<bool(const Tick&)> wait;
  /// Before a tick with which a watch begins that did not continue the previous one: forget what came before.
  std::function<void(Tick&)> begin_anew;
  /// False: it needs no more. The tick's parts may be moved from.
  std::function<bool(Tick&)> take;
};

/// What was read, whether or not it was in the range.
struct TicksRead {
  std::optional<Timestamp> first;
  std::optional<Timestamp> last;  ///< at or after the range's end: there may be more
  bool at_end = false;            ///< nothing was left: neither the range nor the taker ended it before
  std::optional<Error> broken;    ///< why it could not be read to its end; what was read before has been handed over
};

/// What the recording holds, of which nothing was in `range`: "from A to B", or "from A and later" where the range's
/// end ended the reading. Empty: nothing was read.
std::string extent_words(const TicksRead& read, const TimeRange& range, const Catalog& catalog);

/// Hands over the ticks of `source` in `range` until its end, an error, or until `taker` needs no more.
TicksRead read_ticks(Source& source, const TickTaker& taker, const TimeRange& range = {});

/// What a source noted, for people: its warnings and the lines that it skipped.
std::vector<std::string> warnings_of(const SourceNotes& notes);

}  // namespace vramtrack
