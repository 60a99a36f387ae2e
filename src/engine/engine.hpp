// Engine: the body of the loop. Takes batches, runs the detectors, keeps alerts, publishes the View.
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

/// An alert after a change, for surfaces that print changes as they happen.
struct AlertChange {
  Alert alert;
  AlertNews news = AlertNews::raised;
  IncidentChange incident;     ///< what is reported: a leak with several alerts is one incident
  std::vector<Alert> renamed;  ///< other standing alerts that this change showed to belong to the same incident
};

struct SiblingSummary;

/// The place where knowledge of programs is kept: a store, or memory.
struct ProgramMemory {
  /// The beginning of the identity of whatever runs on a device without a process.
  static constexpr const char* kOnDevice = "device\n";
  /// What is remembered; nullopt if nothing is. Called when a run begins, and before `put`.
  std::function<std::optional<Program>(const ProgramIdentity&)> find;
  /// A run has ended: replaces what is remembered.
  std::function<void(const ProgramIdentity&, const Program&)> put;
  /// For a device without a list of processes, each stretch from idle to idle counts as a run, too: returns the program
  /// whose run begins at that time. Empty: unknown, and the run does not count. Null: no run of a device counts.
  std::function<std::string(const SeriesKey& device, Timestamp begin)> program_on;
  /// Added to the times of runs: for recordings without dates, which would otherwise all begin at the same time.
  Duration shift{0};
};

/// One per recording or live watch. Used from one thread; the View it returns may be shared freely.
class Engine {
 public:
  /// `catalog` must outlive the engine. `config` is copied. REQUIRES: config.detection.detector is registered.
  /// `max_ended_series`: how many series of ended processes are kept; the oldest are forgotten first. A recording
  /// is analysed as a whole, but a watch that runs for months must not grow.
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

  /// The same if no data will ever follow: a suspicion that is certain enough then becomes a leak. No
  /// alert is raised.
  void end_of_recording();
  /// From here on, programs are compared with their earlier runs; a second call changes where those are kept. REQUIRES
  /// for the first call: no sample has been taken in yet.
  void remember(ProgramMemory memory);
  /// Passes the hourly floors of the last week, in order, for a series that is here or will come: what it did on past
  /// days. REQUIRES: remember() was called.
  void set_past_days(SeriesId series, const std::vector<std::pair<Timestamp, double>>& hour_floors);
  /// Stores the runs that still continue as if they had ended: call it when a recording of the past has ended.
  void end_runs();

  /// The series cannot grow above this, whatever is free: for an allocator that may reserve only a share of the device.
  void set_ceiling(SeriesId series, double bytes);
  /// The program of the series keeps its device busy for this share of the time (docs/design/0027-facts.md): for a
  /// caller that knows this from another source than samples. `time` is not before that of an earlier call.
  void set_busy(SeriesId series, Timestamp time, double ratio);

  /// The processes of one job are compared across machines if their engines exchange summaries. Names of groups may
  /// contain secrets: `hash`, the same everywhere, turns each into a name that may be shared. REQUIRES: no
  /// sample has been taken in yet.
  void share_siblings(std::function<std::string(const std::string&)> hash);
  /// The summaries of this engine's processes that other engines receive: O(processes).
  [[nodiscard]] std::vector<SiblingSummary> siblings() const;
  /// Replaces the list of processes that run elsewhere now; call it between two ticks. Processes of this machine do not
  /// belong in it.
  void set_remote_siblings(const std::vector<SiblingSummary>& theirs);

  /// `alert` stands and was raised by an earlier engine, whose samples this engine has also taken in: if an alert
  /// stands here, it is that one, and its incident continues.
  void adopt(const Alert& alert);
  /// Alerts raised by `until` for the leak (or other problem) that `alert`, from an earlier watch, was about belong to
  /// the incident of that alert.
  void recall(const Alert& alert, Timestamp until);

  /// Called at every raise, escalation and clear, when its tick is complete. The device knows more about a leak than
  /// its parts: who causes it and how it ended. Within one tick it therefore reports first that it grows, and last that
  /// it is over.
  void on_alert(std::function<void(const AlertChange&)> callback);

  /// The present state, built on demand: O(series). `explain` fills SeriesView::explain.
  [[nodiscard]] std::shared_ptr<View> view(bool explain = false) const;

  /// Whether the series is currently shown as a leak, with or without a notification. O(1).
  [[nodiscard]] bool leaks(SeriesId series) const;

  /// Series visited so far for events, changes of the catalog, attributions and Views: the number that the end of a
  /// process adds does not grow with the number of series.
  [[nodiscard]] std::uint64_t series_visits() const;

 private:
  struct Core;
  std::unique_ptr<Core> core_;
};

}  // namespace vramtrack
