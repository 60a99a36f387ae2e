// Pipeline: what becomes of a batch of samples: it is recorded and judged, and those who listen are told.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "core/view.hpp"
#include "engine/engine.hpp"
#include "live/sources.hpp"
#include "store/store.hpp"

namespace vramtrack {

/// Processes that have ended are kept up to this number by a live engine: a watch may run for months.
inline constexpr std::size_t kMaxEndedSeries = 256;

/// One change of an alert, with the View of the tick that brought it.
struct AlertTold {
  const View& view;
  const SeriesView& series;
  const Alert& alert;
  AlertNews news;
};

/// Somebody who is told what happens: printing, drawing, serving, notifying and acting are listeners, and nothing else
/// differs between the programs that watch. Functions may be empty. They are called on the pipeline's thread, in this
/// order within a tick, and must not call the pipeline's take().
struct Listener {
  Warn warning;                                 ///< a source, the store or the clock: one text for people
  std::function<void(const Event&)> event;      ///< a process ended, a device was lost, an XID
  std::function<void(const AlertTold&)> alert;  ///< raised, escalated or cleared
  std::function<void(const Batch&)> tick;       ///< after all of these; view() is the View after the batch
};

/// Not thread-safe. A tick in which no alert changes builds no View: that is the listeners' to ask for.
class Pipeline {
 public:
  struct Counts {
    std::uint64_t ticks = 0;
    std::uint64_t samples = 0;
    std::uint64_t raised = 0;
    std::uint64_t cleared = 0;
  };

  /// `catalog` must outlive the pipeline, `config` is copied. `max_ended_series`: as Engine's.
  Pipeline(const Config& config, Catalog& catalog, std::size_t max_ended_series = Engine::kKeepAll);

  /// Tells `listener` of everything from now on. Those who listen first are told first.
  void listen(Listener listener) { listeners_.push_back(std::move(listener)); }

  /// Records all batches and alerts from now on into the store at `store.path`, beginning at `now`. False when it
  /// cannot be opened: listeners have heard why, and the pipeline goes on without it.
  bool record_into(const StoreConfig& store, Timestamp now);

  /// Takes in one tick, whole.
  void take(const Batch& tick);

  /// From here on nothing is known of what came before `now`, as if another watch had begun; the counts go on.
  void begin_anew(Timestamp now);

  /// Writes what has not been written yet. The store stays open.
  void flush();

  /// Tells every listener.
  void warn(const std::string& text) const;

  [[nodiscard]] std::shared_ptr<const View> view(bool explain = false) const { return engine_->view(explain); }
  [[nodiscard]] const Counts& counts() const { return counts_; }
  /// Null: nothing is recorded.
  [[nodiscard]] const Store* store() const { return store_.get(); }
  [[nodiscard]] const Catalog& catalog() const { return catalog_; }

 private:
  void new_engine();
  void record_start(Timestamp now);
  void check_store(const Status& status) const;
  void tell_changes();

  const Config config_;
  Catalog& catalog_;
  std::size_t max_ended_series_;
  std::vector<Listener> listeners_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Store> store_;
  std::vector<AlertChange> changes_;  ///< of this tick
  Counts counts_;
};

/// "3 alerts raised, 1 cleared".
std::string alert_counts(const Pipeline::Counts& counts);

}  // namespace vramtrack
