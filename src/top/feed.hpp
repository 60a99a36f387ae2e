// The data sources of top: its own engine, playback, or an agent. All fill the same Model.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "live/loop.hpp"
#include "source/source.hpp"
#include "store/store.hpp"
#include "top/keys.hpp"
#include "top/model.hpp"
#include "top/store_history.hpp"
#include "top/timeline.hpp"

namespace vramtrack::top {

/// A data source for the screens, as functions; the program that runs it needs nothing else.
struct TopSource {
  /// Does the work that is due (polls, plays a part; at most some 50 ms) and returns when to call it again; `max`:
  /// never. Sets `changed` if the View has changed.
  std::function<SteadyTime(SteadyTime now, bool& changed)> step;
  std::function<std::shared_ptr<const View>()> view;
  Feed feed;
  /// Fills the rest of the Model: mode, source, playback, warnings, earlier alerts.
  std::function<void(Model&)> describe;
  /// Only for playback; otherwise empty.
  std::function<void(Play)> play;
  /// Call at the end for an orderly shutdown.
  std::function<void()> finish;
  /// An agent keeps acknowledgements itself; otherwise empty.
  std::function<Status(const AlertId&)> acknowledge;
};

/// The history of a series as seen by this program, preceded by that from a store (null: none).
std::vector<Point> joined_history(StoreHistory* store, const Timeline& seen, const SeriesKey& key, Timestamp from,
                                  Timestamp to, std::size_t most);

/// This machine's GPUs, polled and recorded as by `watch`. `clock`: machine_clock(), except in tests.
TopSource live_source(const Config& config, LoopInput input, Clock clock);

/// The agent that listens on this Unix socket. Error: it does not answer.
Result<TopSource> agent_source(const std::string& socket);

/// A recording or a simulation. `open` opens it again from the beginning.
struct PlaybackOptions {
  Mode mode = Mode::replay;
  std::string name;
  double speed = 0;  ///< 0: a speed at which it takes some minutes, if its length is known
  TimeRange range;
  std::optional<std::pair<Timestamp, Timestamp>> extent;
  bool is_closed = true;           ///< its end decides which suspicions remain: RecordedPart::is_closed
  std::vector<std::string> files;  ///< as for Pipeline::set_files
  std::string store_path;          ///< the store, if it is one: its data before `range` is history; otherwise empty
  std::function<Result<std::unique_ptr<Source>>(Catalog&)> open;
  Clock clock = machine_clock();
};
Result<TopSource> playback_source(const Config& config, PlaybackOptions options);

}  // namespace vramtrack::top
