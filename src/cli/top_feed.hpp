// What top shows, and where it comes from: own engine, playback, agent. All fill the same Model.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/live.hpp"
#include "core/config.hpp"
#include "engine/engine.hpp"
#include "source/source.hpp"
#include "store/store.hpp"
#include "tui/keys.hpp"
#include "tui/model.hpp"
#include "tui/store_history.hpp"
#include "tui/timeline.hpp"

namespace vramtrack::cli {

using SteadyTime = std::chrono::steady_clock::time_point;

/// Something to look at, as functions; whoever runs it knows no more.
struct TopSource {
  /// Does what is due now (polls, plays a stretch; at most some 50 ms of work) and says when it wants to be called
  /// again; `max`: never. Sets `changed` when the View has.
  std::function<SteadyTime(SteadyTime now, bool& changed)> step;
  std::function<std::shared_ptr<const View>()> view;
  tui::Feed feed;
  /// Fills the rest of the Model: mode, source, playback, warnings, earlier alerts.
  std::function<void(tui::Model&)> describe;
  /// Of playback; empty otherwise.
  std::function<void(tui::Play)> play;
  /// At the end, in order.
  std::function<void()> finish;
  /// An agent keeps acknowledgements itself; empty otherwise.
  std::function<Status(const tui::AlertId&)> acknowledge;
};

/// What this program has seen of a series, and before that what a store has of it (null: nothing).
std::vector<tui::Point> joined_history(tui::StoreHistory* store, const tui::Timeline& seen, const SeriesKey& key,
                                       Timestamp from, Timestamp to, std::size_t most);

/// This machine's GPUs, polled and recorded as by `watch`. `sources` must have been opened on `catalog`.
TopSource live_source(const Config& config, std::unique_ptr<Catalog> catalog, std::vector<LiveSource> sources);

/// The agent behind that Unix socket. Errors: it does not answer.
Result<TopSource> agent_source(const std::string& socket);

/// A recording or a simulation. `open` opens it anew from the beginning.
struct PlaybackOptions {
  tui::Mode mode = tui::Mode::replay;
  std::string name;
  double speed = 0;  ///< 0: chosen so that it takes some minutes, where its length is known
  TimeRange range;
  std::optional<std::pair<Timestamp, Timestamp>> extent;
  std::string store_path;  ///< of a store: what it holds before `range` is history; empty otherwise
  std::function<Result<std::unique_ptr<Source>>(Catalog&)> open;
};
Result<TopSource> playback_source(const Config& config, PlaybackOptions options);

}  // namespace vramtrack::cli
