// PeriodReport: everything that `vramtrack report` says of a period, before it becomes text, Markdown, JSON or a page.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/view.hpp"
#include "period/history.hpp"

namespace vramtrack {

/// One alert of the period; as it was told then where that was recorded.
struct PeriodAlert {
  Alert alert;
  bool watch_ended = false;  ///< it stood when its watch ended: how it went on is not known
};

struct PeriodSeries {
  SeriesView view;          ///< as at the end of the period, or of its last watch; its own `alerts` are not used
  bool gone = false;        ///< not seen at the end of the period, and nobody saw it end
  bool has_verdict = true;  ///< false: only summaries are left of it, too coarse to judge
  std::vector<PeriodAlert> alerts;
  std::vector<HistoryPoint> history;  ///< of the period only
  /// Of the whole recording, not of the period only.
  std::optional<Timestamp> first_seen;
  bool seen_from_start = false;  ///< it was there before: first_seen is not when it began
};

/// What the figures in money are made from (docs/report.md).
struct CostRules {
  struct LastCheckpoint {
    std::string job;  ///< as in JobRisk::id, or a pid; empty: of all jobs
    Timestamp time;
  };
  double usd_per_gpu_hour = 0;  ///< 0: not known
  std::optional<double> checkpoint_every_s;
  std::vector<LastCheckpoint> last_checkpoints;
};

/// Work that was lost, or would be. nullopt: not known.
struct LostWork {
  std::optional<Interval> gpu_h;
  std::optional<Interval> usd;
};

/// One job and the work that its crash loses.
struct JobLoss {
  /// From where the lost work counts.
  enum class Basis : std::uint8_t { last_checkpoint, checkpoint_every, start, first_seen };
  std::string id;    ///< Slurm job id, pod UID, container id, or pid; empty: no visible process grows
  std::string kind;  ///< "Slurm job", "pod", "container", "process"; empty as id
  std::string command;
  std::vector<std::uint32_t> pids;
  std::vector<std::string> devices;  ///< on which it holds memory: all of them end with it
  Basis basis = Basis::start;
  LostWork lost;  ///< not known where nobody knows whose work it is
};

/// One job that is predicted to run out of memory.
struct JobRisk : JobLoss {
  Interval oom_in_s;  ///< from the end of the period
};

/// One job that did.
struct JobCrash : JobLoss {
  Timestamp time;
};

/// Memory of one device that was held and did no work, as far as can be told.
struct IdleDevice {
  std::string device_id;
  double observed_h = 0;  ///< of the period with samples
  double orphaned_h = 0;  ///< more than the driver's share was held by no process that was seen
  double unused_h = 0;    ///< memory was held, and no kernel ran; only where utilisation is known
  double share_h = 0;     ///< both, weighted by the share of the device's memory that was so held
  std::uint64_t most_bytes = 0;
  bool processes_known = false;    ///< without: orphaned_h is not known (and 0)
  bool utilisation_known = false;  ///< without: unused_h is not known (and 0)
};

struct Money {
  std::optional<double> usd_per_gpu_hour;
  std::vector<JobRisk> jobs;      ///< the greatest loss first
  LostWork at_risk;               ///< of those jobs whose loss is known, together
  std::vector<JobCrash> crashes;  ///< in the order of their times
  LostWork crashed;               ///< together
  std::vector<IdleDevice> idle;   ///< one a device
  double idle_gpu_h = 0;          ///< orphaned and unused
  double idle_share_h = 0;
};

/// One act of a policy, as the record of acts has it (docs/formats/acts.md). Foreign texts.
struct PeriodAct {
  Timestamp time;
  std::string policy;
  std::string action;   ///< empty: of the ladder as a whole
  std::string event;    ///< "done", "failed", "refused", "would", "undone", "end"
  std::string subject;  ///< "pid 4242 (python train.py, alice)"
  std::string text;     ///< what was done, or why not
  std::string because;  ///< the evidence of that moment
  bool dry_run = false;
};

struct PeriodReport {
  std::vector<std::string> files;  ///< the store, or the recording's files
  std::optional<Timestamp> since;  ///< as asked for
  std::optional<Timestamp> until;
  std::optional<Timestamp> first;  ///< of the samples in the period
  std::optional<Timestamp> last;
  bool clock_is_relative = false;
  bool is_log = false;  ///< made from logs, and not from a store
  std::uint64_t samples = 0;
  double bucket_s = 0;               ///< width of a HistoryPoint
  std::vector<PeriodSeries> series;  ///< devices first (by index), then processes by device and peak
  std::vector<Notice> notices;
  std::vector<PeriodAct> acts;  ///< in order
  std::vector<std::string> warnings;
  std::uint64_t skipped_lines = 0;
  CostRules rules;
  Money money;
};

/// What one process holds on one device.
bool is_process(const PeriodSeries& series);

/// An alert of a leak that was not withdrawn: exit code 1.
bool has_leak(const PeriodReport& report);

/// Of which series the points are given to the reader: devices, processes that grow or had an alert, and the greatest
/// few of each device. A page with hundreds of histories would be too large for a ticket.
std::vector<bool> charted_series(const PeriodReport& report);

/// Fills report.money from the rest of the report. Pure; O(series * points).
void reckon(PeriodReport& report);

/// The job that a process belongs to: its kind and id, the first that is known of Slurm job, pod, container, process.
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
/// One file without any reference to another and without scripts; the JSON and a CSV of the charts are in it.
std::string report_html(const PeriodReport& report);
/// time, series, min, mean, max of every point: what is behind the charts.
std::string report_csv(const PeriodReport& report);

}  // namespace vramtrack
