// Pipeline: what becomes of a batch of samples: it is recorded and judged, and those who listen are told.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "core/view.hpp"
#include "engine/engine.hpp"
#include "live/sources.hpp"
#include "report/story.hpp"
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
  /// The same for people, to whom a leak of a device and of its process is one: nullopt where it has been told.
  std::optional<AlertNews> story;
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
    std::uint64_t raised = 0;   ///< as people count them: AlertTold::story
    std::uint64_t cleared = 0;  ///< likewise
  };

  /// `catalog` must outlive the pipeline, `config` is copied. `max_ended_series`: as Engine's.
  Pipeline(const Config& config, Catalog& catalog, std::size_t max_ended_series = Engine::kKeepAll);

  /// Tells `listener` of everything from now on. Those who listen first are told first.
  void listen(Listener listener) { listeners_.push_back(std::move(listener)); }

  /// From now on programs are compared with their earlier runs. REQUIRES: take() was not called yet.
  void remember(std::optional<ProgramMemory> memory);

  /// Takes in what the store at `path` holds of the last watch, up to `now`, without recording or telling it: true when
  /// there was any. The alerts that stand there stand here. REQUIRES: take() was not called yet, and record_into()
  /// comes next.
  bool resume(const std::string& path, Timestamp now);

  /// Records all batches and alerts from now on into `store`, beginning at `now`.
  void record_into(std::unique_ptr<Store> store, Timestamp now);

  /// What the machine's clocks say at the next tick: the store ages by it.
  void keep_time(const ClockMark& mark) {
    if (store_) store_->keep_time(mark);
  }

  /// What stands in the way of the sources at present, a text each: views have it, and what keeps the store from
  /// writing.
  void set_source_warnings(std::vector<std::string> warnings) { source_warnings_ = std::move(warnings); }

  /// Takes in one tick, whole.
  void take(const Batch& tick);

  /// What the store at `path` knows of the week before `now`. REQUIRES: remember() was called, and record_into() comes
  /// next.
  void read_days_of(const std::string& path, Timestamp now);

  /// From here on nothing is known of what came before `now`, but for what is remembered of programs, as if another
  /// watch had begun; the counts go on.
  void begin_anew(Timestamp now);

  /// Writes what has not been written yet. The store stays open.
  void flush();

  /// Tells every listener.
  void warn(const std::string& text) const;

  /// After the last batch. Made once for all who ask between two batches, unless it explains.
  [[nodiscard]] std::shared_ptr<const View> view(bool explain = false) const;
  [[nodiscard]] const Counts& counts() const { return counts_; }
  /// Null: nothing is recorded.
  [[nodiscard]] const Store* store() const { return store_.get(); }
  [[nodiscard]] const Catalog& catalog() const { return catalog_; }

 private:
  void new_engine();
  void record_start(Timestamp now);
  void hear(const AlertChange& change);
  void check_store(const Status& status) const;
  void tell_changes();
  [[nodiscard]] std::shared_ptr<const View> new_view(bool explain) const;

  const Config config_;
  Catalog& catalog_;
  std::size_t max_ended_series_;
  std::vector<Listener> listeners_;
  std::unique_ptr<Engine> engine_;
  mutable std::shared_ptr<const View> view_;  ///< null: not asked for since the engine changed
  std::unique_ptr<Store> store_;
  std::vector<std::string> source_warnings_;
  std::vector<AlertChange> changes_;  ///< of this tick
  Stories stories_;
  std::optional<ProgramMemory> memory_;
  bool resuming_ = false;  ///< what happens has been recorded and told before
  bool resumed_ = false;
  Counts counts_;
};

/// "3 alerts raised, 1 cleared".
std::string alert_counts(const Pipeline::Counts& counts);

}  // namespace vramtrack
