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
#include "core/incident.hpp"
#include "core/program.hpp"
#include "core/sample.hpp"
#include "core/series.hpp"
#include "core/view.hpp"

namespace vramtrack {

/// An alert as it is after a change, for surfaces that print changes as they happen.
struct AlertChange {
  Alert alert;
  AlertNews news = AlertNews::raised;
  IncidentChange incident;     ///< what is reported: a leak with several alerts is one
  std::vector<Alert> renamed;  ///< other standing alerts, whose incident this change showed to be the same
};

struct SiblingSummary;

/// Where knowledge of programs is kept: a store, or memory.
struct ProgramMemory {
  /// How the identity of what runs on a device begins, which has no process.
  static constexpr const char* kOnDevice = "device\n";
  /// What is remembered; nullopt: nothing. Called when a run begins, and before `put`.
  std::function<std::optional<Program>(const ProgramIdentity&)> find;
  /// A run has ended: replaces what is remembered.
  std::function<void(const ProgramIdentity&, const Program&)> put;
  /// For a device without a list of processes, each time from idle to idle counts as a run, too: of what it is one
  /// that begins at that time. Empty: it is not known, and the run does not count. Null: no run of a device does.
  std::function<std::string(const SeriesKey& device, Timestamp begin)> program_on;
  /// Added to the times of runs: for recordings without dates, which would otherwise all begin at the same time.
  Duration shift{0};
};

/// One per recording or live watch. Used from one thread; the View it returns may be shared freely.
class Engine {
 public:
  /// `catalog` must outlive the engine. `config` is copied. REQUIRES: config.detection.detector is registered.
  /// `max_ended_series`: this many series of ended processes are kept, and the oldest are forgotten first. A recording
  /// is analysed whole, but a watch that runs for months must not grow.
  Engine(const Config& config, Catalog& catalog, std::size_t max_ended_series = kKeepAll);
  static constexpr std::size_t kKeepAll = static_cast<std::size_t>(-1);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Takes in a batch. Samples must be in time order over all series (those of one instant form one tick); a sample
  /// older than the last of its series is dropped. O(samples).
  void ingest(const Batch& batch);

  /// Completes the last tick: call it when a recording has ended.
  void finish();

  /// The same when nothing more will ever come: a suspicion that is certain enough then becomes a leak. No
  /// alert is raised.
  void end_of_recording();
  /// From here on, programs are compared with their earlier runs; a second call changes where those are kept. REQUIRES
  /// for the first call: no sample was taken in yet.
  void remember(ProgramMemory memory);
  /// Gives the hourly floors of the last week, in order, of a series that is here or will come: what it did on earlier
  /// days. REQUIRES: remember() was called.
  void know_days(SeriesId series, const std::vector<std::pair<Timestamp, double>>& hour_floors);
  /// Stores the runs that still continue as if they had ended: call it when a recording of the past has ended.
  void end_runs();

  /// The series can grow no higher, whatever is free: for an allocator that may reserve only a share of the device.
  void set_ceiling(SeriesId series, double bytes);
  /// The program of the series keeps its device busy for this share of the time (docs/design/0027-facts.md): for a
  /// caller that knows it otherwise than by samples. `time` is not before that of an earlier call.
  void set_busy(SeriesId series, Timestamp time, double ratio);

  /// The processes of one job are compared across machines if their engines exchange summaries. Names of groups may
  /// hold secrets: `hash`, which must be the same everywhere, turns each into a name that may be shared. REQUIRES: no
  /// sample was taken in yet.
  void share_siblings(std::function<std::string(const std::string&)> hash);
  /// What other engines get about this engine's processes: O(processes).
  [[nodiscard]] std::vector<SiblingSummary> siblings() const;
  /// Replaces the list of processes that run elsewhere now; call it between two ticks. Processes of this machine do not
  /// belong in it.
  void know_siblings(const std::vector<SiblingSummary>& theirs);

  /// `alert` stands and was raised by an earlier engine, whose samples this engine has been fed, too: if an alert
  /// stands here, it is that one, and its incident continues.
  void adopt(const Alert& alert);
  /// What is raised by `until` of the leak (or other problem) that `alert`, of an earlier watch, was about belongs to
  /// the incident of that alert.
  void recall(const Alert& alert, Timestamp until);

  /// Called at every raise, escalation and clear, when its tick is complete. The device knows more about a leak than
  /// its parts: who causes it and how it ended. Within one tick it therefore reports first that it grows, and last that
  /// it is over.
  void on_alert(std::function<void(const AlertChange&)> callback);

  /// The present state, built on demand: O(series). `explain` fills SeriesView::explain.
  [[nodiscard]] std::shared_ptr<View> view(bool explain = false) const;

  /// Whether the series is shown as a leak now, with or without a notification. O(1).
  [[nodiscard]] bool leaks(SeriesId series) const;

  /// Series visited so far for events, changes of the catalog, attributions and Views: what the end of a process adds
  /// to this does not grow with the number of series.
  [[nodiscard]] std::uint64_t series_visits() const;

 private:
  struct Core;
  std::unique_ptr<Core> core_;
};

}  // namespace vramtrack
