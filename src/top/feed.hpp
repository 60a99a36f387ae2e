// The sources of what top shows: its own engine, playback, an agent. All fill the same Model.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "core/scale.hpp"
#include "live/loop.hpp"
#include "source/source.hpp"
#include "store/store.hpp"
#include "top/keys.hpp"
#include "top/model.hpp"
#include "top/store_history.hpp"
#include "top/timeline.hpp"

namespace vramtrack::top {

/// A source for the screens, as functions; the program that runs it knows nothing else about it.
struct TopSource {
  Scale scale;  ///< of a recording; make a ScaleScope of it before anything is drawn or stepped
  /// Does what is due now (polls, plays a stretch; at most some 50 ms of work) and says when it wants to be called
  /// again; `max`: never. Sets `changed` when the View has changed.
  std::function<SteadyTime(SteadyTime now, bool& changed)> step;
  std::function<std::shared_ptr<const View>()> view;
  Feed feed;
  /// Fills the rest of the Model: mode, source, playback, warnings, earlier alerts.
  std::function<void(Model&)> describe;
  /// Of playback; empty otherwise.
  std::function<void(Play)> play;
  /// At the end, in order.
  std::function<void()> finish;
  /// An agent keeps acknowledgements itself; empty otherwise.
  std::function<Status(const AlertId&)> acknowledge;
};

/// What this program has seen of a series, preceded by what a store has of it (null: nothing).
std::vector<Point> joined_history(StoreHistory* store, const Timeline& seen, const SeriesKey& key, Timestamp from,
                                  Timestamp to, std::size_t most);

/// This machine's GPUs, polled and recorded as by `watch`. `clock`: machine_clock(), but in tests.
TopSource live_source(const Config& config, LoopInput input, Clock clock);

/// The agent behind that Unix socket. Errors: it does not answer.
Result<TopSource> agent_source(const std::string& socket);

/// A recording or a simulation. `open` opens it anew from the beginning.
struct PlaybackOptions {
  Mode mode = Mode::replay;
  std::string name;
  double speed = 0;  ///< 0: chosen so that it takes some minutes, where its length is known
  TimeRange range;
  std::optional<std::pair<Timestamp, Timestamp>> extent;
  bool is_closed = true;           ///< its end decides what is suspected then: RecordedPart::is_closed
  std::vector<std::string> files;  ///< as for Pipeline::set_files
  std::string store_path;          ///< of a store: what it holds before `range` is history; empty otherwise
  std::function<Result<std::unique_ptr<Source>>(Catalog&)> open;
  Clock clock = machine_clock();
};
Result<TopSource> playback_source(const Config& config, PlaybackOptions options);

}  // namespace vramtrack::top
