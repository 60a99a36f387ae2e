// Pipeline: the path of a batch of samples: it is recorded and judged, and the listeners are notified.
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
#include "store/store.hpp"

namespace vramtrack {

/// A live engine keeps at most this many processes that have ended: a watch may run for months.
inline constexpr std::size_t kMaxEndedSeries = 256;

/// One change of an alert, with the View of the tick that caused it.
struct AlertNotice {
  const View& view;
  const SeriesView& series;
  const Alert& alert;
  AlertNews news;
  const IncidentChange& incident;  ///< what is reported: several alerts about one leak are one incident
};

/// A listener receives what happens. Printing, drawing, serving, notifying and acting are listeners, and the programs
/// that watch differ in nothing else. Functions may be empty. They are called on the pipeline's thread, in this order
/// within a tick, and must not call the pipeline's take().
struct Listener {
  Warn warning;                                   ///< a source, the store or the clock: one text for people
  std::function<void(const Event&)> event;        ///< a process ended, a device was lost, an XID
  std::function<void(const AlertNotice&)> alert;  ///< raised, escalated or cleared
  std::function<void(const Batch&)> tick;         ///< after all of these; view() is the View after the batch
};

/// Not thread-safe. A tick in which no alert changes builds no View: listeners ask for one if they need it.
class Pipeline {
 public:
  struct Counts {
    std::uint64_t ticks = 0;
    std::uint64_t samples = 0;
    std::uint64_t raised = 0;   ///< incidents
    std::uint64_t cleared = 0;  ///< incidents that are over
  };

  /// `catalog` must outlive the pipeline; `config` is copied. `max_ended_series`: as for Engine.
  Pipeline(const Config& config, Catalog& catalog, std::size_t max_ended_series = Engine::kKeepAll);

  /// Notifies `listener` of everything from now on. Listeners are notified in the order in which they were added.
  void listen(Listener listener) { listeners_.push_back(std::move(listener)); }

  /// From now on, programs are compared with their earlier runs. REQUIRES: take() was not called yet.
  void remember(std::optional<ProgramMemory> memory);

  /// Takes in what the store at `path` holds of the last watch, up to `now`, without recording or reporting it: true if
  /// there was any. The alerts that are active there are also active here. REQUIRES: take() was not called yet, and
  /// record_into() comes next.
  bool resume(const std::string& path, Timestamp now);

  /// Records all batches and alerts from now on into `store`, beginning at `now`.
  void record_into(std::unique_ptr<Store> store, Timestamp now);

  /// The readings of the machine's clocks at the next tick: the store uses them for retention.
  void keep_time(const ClockMark& mark) {
    if (store_) store_->keep_time(mark);
  }

  /// The current problems of the sources, one text each: views include them, together with the reason why the store
  /// cannot write.
  void set_source_warnings(std::vector<std::string> warnings) { source_warnings_ = std::move(warnings); }

  /// The files that the ticks are read from; none for a watch, or for a store, whose watch reported its alerts: views
  /// name them, and they determine what is reported.
  void set_files(std::vector<std::string> files) { files_ = std::move(files); }

  /// Takes in one whole tick.
  void take(const Batch& tick);

  /// Takes in the data of the week before `now` in the store at `path`. REQUIRES: remember() was called, and
  /// record_into() comes next.
  void read_days_of(const std::string& path, Timestamp now);

  /// No data will ever follow: see Engine::end_of_recording. Listeners receive what that decides. REQUIRES: take()
  /// is not called again before begin_anew().
  void end_of_recording();

  /// From here on, nothing is known of what came before `now`, except for what is remembered of programs, as if another
  /// watch had begun; the counts continue.
  void begin_anew(Timestamp now);

  /// Writes what has not been written yet. The store stays open.
  void flush();

  /// Notifies every listener.
  void warn(const std::string& text) const;

  /// The View after the last batch. Built once for all callers between two batches, except with explanations.
  [[nodiscard]] std::shared_ptr<const View> view(bool explain = false) const;
  [[nodiscard]] const Counts& counts() const { return counts_; }
  /// Null if nothing is being recorded.
  [[nodiscard]] const Store* store() const { return store_.get(); }
  [[nodiscard]] const Catalog& catalog() const { return catalog_; }

 private:
  void new_engine();
  void record_start(Timestamp now);
  void add_change(const AlertChange& change);
  void check_store(const Status& status) const;
  void report_changes();
  [[nodiscard]] std::shared_ptr<const View> new_view(bool explain) const;

  const Config config_;
  Catalog& catalog_;
  std::size_t max_ended_series_;
  std::vector<Listener> listeners_;
  std::unique_ptr<Engine> engine_;
  mutable std::shared_ptr<const View> view_;  ///< null: not requested since the engine changed
  std::unique_ptr<Store> store_;
  std::vector<std::string> source_warnings_;
  std::vector<std::string> files_;
  std::vector<AlertChange> changes_;  ///< the changes of this tick
  std::optional<ProgramMemory> memory_;
  bool resuming_ = false;  ///< whether the events have already been recorded and reported
  bool resumed_ = false;
  Counts counts_;
};

/// "3 alerts raised, 1 cleared".
std::string alert_counts(const Pipeline::Counts& counts);

}  // namespace vramtrack
