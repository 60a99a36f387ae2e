// PeriodReport: the content of `vramtrack report` for a period, before it becomes text, Markdown, JSON or a page.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/scale.hpp"
#include "core/view.hpp"
#include "period/history.hpp"

namespace vramtrack {

/// One alert of the period, as it was reported at the time if that was recorded.
struct PeriodAlert {
  Alert alert;
  bool watch_ended = false;  ///< it was active when its watch ended: the rest is unknown
};

struct PeriodSeries {
  SeriesView view;          ///< at the end of the period or of its last watch; its own `alerts` are not used
  bool gone = false;        ///< not seen at the end of the period, and its end was not seen, either
  bool has_verdict = true;  ///< false: only summaries remain, too coarse to judge
  std::vector<PeriodAlert> alerts;
  std::vector<HistoryPoint> history;  ///< the history of the period only
  /// The first sample in the whole recording, not only in the period.
  std::optional<Timestamp> first_seen;
  bool seen_from_start = false;  ///< it existed before: first_seen is not its beginning
};

/// The rules by which costs are computed (docs/report.md).
struct CostRules {
  struct LastCheckpoint {
    std::string job;  ///< as in JobRisk::id, or a pid; empty: for all jobs
    Timestamp time;
  };
  double usd_per_gpu_hour = 0;  ///< 0: unknown
  std::optional<double> checkpoint_every_s;
  std::vector<LastCheckpoint> last_checkpoints;
};

/// Work that was lost, or would be lost. nullopt: unknown.
struct LostWork {
  std::optional<Interval> gpu_h;
  std::optional<Interval> usd;
};

/// One job and the work that its crash loses.
struct JobLoss {
  /// The starting point from which lost work is counted.
  enum class Basis : std::uint8_t { last_checkpoint, checkpoint_every, start, first_seen };
  std::string id;    ///< Slurm job id, pod UID, container id, or pid; empty: no visible process grows
  std::string kind;  ///< "Slurm job", "pod", "container", "process"; empty as id
  std::string command;
  std::vector<std::uint32_t> pids;
  std::vector<std::string> devices;  ///< the devices on which it holds memory: a crash costs all of them
  Basis basis = Basis::start;
  LostWork lost;  ///< unknown if its owner is unknown
};

/// One job that is predicted to run out of memory.
struct JobRisk : JobLoss {
  Interval oom_in_s;  ///< from the end of the period
};

/// One job that ran out of memory.
struct JobCrash : JobLoss {
  Timestamp time;
};

/// Memory of one device that was held but did no work, as far as known.
struct IdleDevice {
  std::string device_id;
  double observed_h = 0;  ///< the hours of the period with samples
  double orphaned_h = 0;  ///< more than the driver's share was held, but by no visible process
  double unused_h = 0;    ///< memory was held but no kernel ran; only if utilisation is known
  double share_h = 0;     ///< both, weighted by the share of the device's memory that was held
  std::uint64_t most_bytes = 0;
  bool processes_known = false;    ///< false: orphaned_h is unknown (and 0)
  bool utilisation_known = false;  ///< false: unused_h is unknown (and 0)
};

struct Money {
  std::optional<double> usd_per_gpu_hour;
  std::vector<JobRisk> jobs;      ///< the greatest loss first
  LostWork at_risk;               ///< sum over the jobs whose loss is known
  std::vector<JobCrash> crashes;  ///< in the order of their times
  LostWork crashed;               ///< sum over the crashes
  std::vector<IdleDevice> idle;   ///< one per device; none if the recording has no clock
  double idle_gpu_h = 0;          ///< orphaned and unused
  double idle_share_h = 0;
};

/// One act of a policy, from the record of acts (docs/formats/acts.md). The texts are untrusted.
struct PeriodAct {
  Timestamp time;
  std::string policy;
  std::string action;   ///< empty: the ladder as a whole
  std::string event;    ///< "done", "failed", "refused", "would", "undone", "end"
  std::string subject;  ///< "pid 4242 (python train.py, alice)"
  std::string text;     ///< the act, or why it was not done
  std::string because;  ///< the evidence at that time
  bool dry_run = false;
};

struct PeriodReport {
  std::vector<std::string> files;  ///< the store, or the recording's files
  std::optional<Timestamp> since;  ///< as requested
  std::optional<Timestamp> until;
  std::optional<Timestamp> first;  ///< of the samples in the period
  std::optional<Timestamp> last;
  bool clock_is_relative = false;
  bool is_log = false;  ///< made from logs, not from a store
  Scale scale;          ///< the scale of the recording
  std::uint64_t samples = 0;
  double bucket_s = 0;               ///< width of a HistoryPoint
  std::vector<PeriodSeries> series;  ///< devices first (by index), then processes by device and peak
  std::vector<Notice> notices;
  std::vector<PeriodAct> acts;  ///< in order
  std::vector<std::string> warnings;
  std::uint64_t skipped_lines = 0;
  CostRules rules;
  Money money;

  /// As people read it.
  [[nodiscard]] std::string moment(Timestamp time) const { return scale.moment(time, clock_is_relative); }
};

/// Whether the series is the memory of one process on one device.
bool is_process(const PeriodSeries& series);

/// Whether there is an alert about a leak that was not withdrawn: exit code 1.
bool has_leak(const PeriodReport& report);

/// The series whose points are included: devices, processes that grow or had an alert, and the few largest processes of
/// each device. A page with hundreds of histories would be too large for a ticket.
std::vector<bool> charted_series(const PeriodReport& report);

/// Fills report.money from the rest of the report. Pure; O(series * points).
void reckon(PeriodReport& report);

/// The job that a process belongs to: its kind and id; the first known one of Slurm job, pod, container, process.
struct JobName {
  std::string kind;
  std::string id;
  friend bool operator==(const JobName&, const JobName&) = default;
};
JobName job_of(const SeriesView& process);
/// "Slurm job 1234", "container 0123456789ab", "process 4242"
std::string job_words(const std::string& kind, const std::string& id);

// The forms. Each ends with a newline.

std::string report_text(const PeriodReport& report, bool colour);
std::string report_markdown(const PeriodReport& report);
/// One object, vramtrack.report.v1 (docs/report.md); its series are those of docs/formats/analysis.md.
std::string report_json(const PeriodReport& report);
/// One file without references to others and without scripts; it includes the JSON and a CSV of the charts.
std::string report_html(const PeriodReport& report);
/// time, series, min, mean, max of every point: the data of the charts.
std::string report_csv(const PeriodReport& report);

}  // namespace vramtrack
