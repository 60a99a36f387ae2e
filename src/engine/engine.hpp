// Engine: the loop's body. Takes batches, runs the detectors, keeps alerts, publishes the View.
// Live and replay are the same code: time arrives with the samples.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "core/sample.hpp"
#include "core/series.hpp"
#include "core/view.hpp"

namespace vramtrack {

/// An alert as it is after a change, for surfaces that print as things happen.
struct AlertChange {
  Alert alert;
  AlertNews news = AlertNews::raised;
};

/// One per recording or live watch. Used from one thread; the View it returns may be shared freely.
class Engine {
 public:
  /// `catalog` must outlive the engine. `config` is copied. REQUIRES: config.detection.detector is registered.
  /// `max_ended_series`: of processes that have ended, so many are kept, the oldest forgotten first. A recording is
  /// analysed whole; a watch that runs for months must not grow.
  Engine(const Config& config, Catalog& catalog, std::size_t max_ended_series = kKeepAll);
  static constexpr std::size_t kKeepAll = static_cast<std::size_t>(-1);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Takes a batch in. Samples must be in time order over all series (those of one instant form one tick);
  /// a sample older than the last of its series is dropped. O(samples).
  void ingest(const Batch& batch);

  /// Completes the last tick: call when a recording has ended.
  void finish();

  /// Called at every raise, escalation and clear, from within ingest().
  void on_alert(std::function<void(const AlertChange&)> callback);

  /// The present state, built on demand: O(series). `explain` fills SeriesView::explain.
  [[nodiscard]] std::shared_ptr<const View> view(bool explain = false) const;

  /// Series looked at so far on behalf of events, changes of the catalog, attributions and Views: what an end of a
  /// process adds to this does not grow with the number of series.
  [[nodiscard]] std::uint64_t series_visits() const;

 private:
  struct Core;
  std::unique_ptr<Core> core_;
};

}  // namespace vramtrack
