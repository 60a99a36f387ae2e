// Engine: the loop's body. Takes batches, runs the detectors, keeps alerts, publishes the View.
// Live and replay are the same code: time arrives with the samples.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "core/program.hpp"
#include "core/sample.hpp"
#include "core/series.hpp"
#include "core/view.hpp"

namespace vramtrack {

/// An alert as it is after a change, for surfaces that print as things happen.
struct AlertChange {
  Alert alert;
  AlertNews news = AlertNews::raised;
};

struct SiblingSummary;

/// Where what is known of programs is kept: a store, or memory.
struct ProgramMemory {
  /// What is remembered; nullopt: nothing. Asked when a run begins, and before `put`.
  std::function<std::optional<Program>(const ProgramIdentity&)> find;
  /// A run has ended: what is to be remembered now.
  std::function<void(const ProgramIdentity&, const Program&)> put;
  /// Of a device whose processes nobody lists: each time from idle to idle is a run, too.
  bool devices = false;
  /// Added to the times of runs: of recordings without dates, which all begin at once.
  Duration shift{0};
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

  /// Likewise, where nothing more will ever come: a suspicion that is sure enough cannot wait, and becomes an alert.
  void end_of_recording();
  /// From here on programs are compared with their earlier runs; a second call changes where those are kept. REQUIRES
  /// of the first: no sample was taken in yet.
  void remember(ProgramMemory memory);
  /// The floors of the hours of the last week, in order, of a series that comes or is here: what it did on the days
  /// before. REQUIRES: remember() was called.
  void know_days(SeriesId series, const std::vector<std::pair<Timestamp, double>>& hour_floors);
  /// Tells the memory of the runs that go on as of runs that have ended: call when a recording of the past has ended.
  void end_runs();

  /// The series comes to no more than this, whatever is free: an allocator that may reserve a share of the device only.
  void set_ceiling(SeriesId series, double bytes);

  /// Processes of one job are compared with each other across machines when their engines tell each other of them. The
  /// names of groups may hold secrets: `hash`, the same everywhere, makes of each what may be told. REQUIRES: no sample
  /// was taken in yet.
  void share_siblings(std::function<std::string(const std::string&)> hash);
  /// What the others are told of this engine's processes: O(processes).
  [[nodiscard]] std::vector<SiblingSummary> siblings() const;
  /// The processes that run elsewhere now, and no others; call it between two ticks. Those of this machine do
  /// not belong here.
  void know_siblings(const std::vector<SiblingSummary>& theirs);

  /// `alert`, which stands, was raised by an earlier engine that was fed what this one was fed since: it is the alert
  /// that stands here, too, if one does.
  void adopt(const Alert& alert);

  /// Called at every raise, escalation and clear, from within ingest().
  void on_alert(std::function<void(const AlertChange&)> callback);

  /// The present state, built on demand: O(series). `explain` fills SeriesView::explain.
  [[nodiscard]] std::shared_ptr<View> view(bool explain = false) const;

  /// Series looked at so far on behalf of events, changes of the catalog, attributions and Views: what an end of a
  /// process adds to this does not grow with the number of series.
  [[nodiscard]] std::uint64_t series_visits() const;

 private:
  struct Core;
  std::unique_ptr<Core> core_;
};

}  // namespace vramtrack
