// What the engine keeps for one series: its detectors, its past, its alerts.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "core/regex.hpp"
#include "core/sample.hpp"
#include "core/verdict.hpp"
#include "core/view.hpp"
#include "detect/attribution.hpp"
#include "detect/cycles.hpp"
#include "detect/detector.hpp"
#include "detect/facts.hpp"
#include "detect/floor_curve.hpp"
#include "detect/history.hpp"
#include "detect/period.hpp"
#include "engine/draft.hpp"
#include "engine/paging.hpp"

namespace vramtrack {

/// The configured ignore-patterns, compiled once. A pattern that does not compile matches nothing (the configuration's
/// reader has already rejected it).
class IgnorePatterns {
 public:
  explicit IgnorePatterns(const std::vector<std::string>& patterns);
  [[nodiscard]] bool match(const ProcessInfo& process) const;

 private:
  std::vector<Regex> patterns_;
};

/// Whether it is memory that a framework's allocator holds in one process.
constexpr bool is_of_allocator(Metric metric) {
  return metric == Metric::allocator_allocated || metric == Metric::allocator_reserved;
}

struct DeviceState;

Severity severity_of(const Finding& finding, const SeverityConfig& config);

struct SeriesState {
  static constexpr std::size_t kMaxAlerts = 256;
  static constexpr std::size_t kMaxSuspicions = 64;

  SeriesState(SeriesId series, const Catalog& catalog, const Config& config, const IgnorePatterns& ignore);

  /// False if no detector has seen the sample: it is older than the last one, or the process has ended.
  bool observe(const Sample& sample);
  /// Passes the detectors the level where memory ends, if its device's capacity is known: for a device, its capacity
  /// minus what the driver keeps; for a process, what it holds plus its device's free memory; the remainder likewise.
  /// `holds`: what its process holds on the device, if that is more than the series. `wall_bytes`: where a limit set by
  /// others ends it, if that is known. REQUIRES: device.
  void refresh_limit(std::optional<std::uint64_t> holds = {}, std::optional<double> wall_bytes = {});
  /// The last sample is the first of another run of the device, which is judged by itself: makes new detectors and
  /// gives them the limits and experience of the old ones. REQUIRES: !ended.
  void judge_anew(const DetectionConfig& config, const Scale& figures);
  /// What its detector knows besides the samples: see Detector::set_experience.
  void set_experience(const Experience* experience);
  /// What is known besides memory: created, and passed to the detector, on the first call.
  Facts& ensure_facts();
  /// Keeps the findings as what is known of the process now that it has ended.
  void conclude() { last_found = found(); }
  /// The process has ended: keeps the past, frees the detectors. REQUIRES: conclude() was called.
  void end(End how);

  /// How long memory that a process held may take to be freed, and to be seen as freed: a driver takes up to a minute
  /// for a large process, and the fall is seen one sample later, or two if one is missed.
  [[nodiscard]] double release_s() const;
  /// The suspicion that is active; nullptr if there is none.
  [[nodiscard]] Alert* suspicion() {
    return suspicions.empty() || suspicions.back().cleared ? nullptr : &suspicions.back();
  }
  [[nodiscard]] const Alert* suspicion() const {
    return suspicions.empty() || suspicions.back().cleared ? nullptr : &suspicions.back();
  }
  [[nodiscard]] bool leaks() const { return leaks_since.has_value(); }
  /// It may leak, but is not shown as a leak.
  [[nodiscard]] bool is_suspected() const { return !leaks() && suspicion() != nullptr; }
  /// The alert that is active; nullptr if there is none. It may outlast its leak near a full card.
  [[nodiscard]] Alert* alert() { return alerts.empty() || alerts.back().cleared ? nullptr : &alerts.back(); }
  [[nodiscard]] const Alert* alert() const {
    return alerts.empty() || alerts.back().cleared ? nullptr : &alerts.back();
  }
  /// Whether it is what a process holds on a device.
  [[nodiscard]] bool is_process() const { return key.pid != 0 && key.metric == Metric::process_used; }
  /// Whether its device is judged by it: see DeviceState::total(). REQUIRES: device.
  [[nodiscard]] bool is_total() const;
  /// Whether its memory is part of the device's; host memory of a process is, if the device shares that.
  [[nodiscard]] bool is_in_device() const;
  /// Whether the process is the one that `suspect` names.
  [[nodiscard]] bool is(const std::optional<Suspect>& suspect) const;
  [[nodiscard]] double rise_since(Timestamp onset) const;
  /// From the mean level around `from` to that around `to`; 0: unknown.
  [[nodiscard]] double rise_between(Timestamp from, Timestamp to) const;
  /// See SeriesView::level_bytes; nullopt without an onset.
  [[nodiscard]] std::optional<double> level_of(const Finding& finding) const;
  [[nodiscard]] ProcessGrowth growth_since(Timestamp onset, const Catalog& catalog) const;
  /// Whether its device's curve counts for it: the device's total rises like a leak, and it explains that.
  [[nodiscard]] bool follows_total() const;
  /// The series whose curve counts for it.
  [[nodiscard]] const SeriesState& line() const;
  /// The same after the end of the last growth.
  [[nodiscard]] const SeriesState& last_line() const;
  // Its detector's opinion, or that of line() where that is more certain. REQUIRES: detector.
  [[nodiscard]] bool alerting() const;
  [[nodiscard]] bool suspecting() const;
  [[nodiscard]] Finding finding() const;
  /// finding() with dissent; once it has ended, the last finding.
  [[nodiscard]] Found found() const;
  void name_framework(Verdict& verdict, const Catalog& catalog) const;
  [[nodiscard]] SeriesView view(const Catalog& catalog, bool explain) const;

  SeriesId id;
  SeriesKey key;
  std::unique_ptr<Detector> detector;                 ///< null once the process has ended
  std::vector<std::unique_ptr<Detector>> dissenters;  ///< the other detectors, for Verdict::dissent
  History history;
  std::unique_ptr<FloorCurve> floors;  ///< only for an allocator's series
  std::unique_ptr<Facts> facts;        ///< null if none are known
  bool reports_busy = false;           ///< its driver reports how busy its process is
  bool has_run = false;                ///< its driver has reported that its process runs something on the device
  PeriodEstimate period;
  std::vector<Alert> alerts;
  std::vector<Alert> suspicions;        ///< see SeriesView::suspicions; for a standing one, `cleared` is empty
  Found last_found;                     ///< once `ended`
  std::optional<End> reported_end;      ///< for an allocator's series beside its device's total: memory ran out
  DeviceState* device = nullptr;        ///< set by the SeriesTable that owns both
  std::optional<double> limit_bytes;    ///< as passed to the detectors
  std::optional<double> ceiling_bytes;  ///< it ends here at the latest: see Engine::set_ceiling
  ProcessLoad load;
  std::optional<Timestamp> reviewed;
  bool reviewed_for_leak = false;  ///< whether it was to be shown as a leak then
  Timestamp peak_time{};           ///< the time of the last new peak that was more than 1 % above the one before
  Timestamp prior_time{};          ///< the time of the sample before the last
  Timestamp top_time{};            ///< where the fall in the last samples began; else the last sample
  Timestamp first_time{};
  Timestamp last_time{};
  std::uint64_t samples = 0;
  std::uint64_t last_bytes = 0;
  std::uint64_t top_bytes = 0;  ///< at `top_time`
  std::uint64_t peak_bytes = 0;
  std::optional<Timestamp> leaks_since;  ///< when it began to be shown as a leak; nullopt: it is not
  Standstill standstill;                 ///< of the growth, since the detector has followed it
  std::uint32_t rise_number = 0;         ///< of `standstill`: FollowedRise::number
  Move move;                             ///< of `standstill`, as of the last review
  std::string paging;                    ///< why nobody is notified of the leak yet, as of the last review
  std::optional<CycleTrend> runs_trend;  ///< for a process: each run of its program, up to this one, peaks higher
  std::optional<double> explains;        ///< its share of its device's last growth, where line() is the device's total
  std::uint64_t trend_at_bytes = 0;      ///< the peak at which that was last examined
  bool queued = false;
  bool ended = false;
  Timestamp ended_at{};  ///< the tick in which that became known
  bool paused = false;
  bool ignored = false;

 private:
  void make_detectors(const DetectionConfig& config, const Scale& figures);

  const Experience* experience_ = nullptr;
};

}  // namespace vramtrack
