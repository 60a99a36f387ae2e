// What the engine keeps of one series: its detectors, its past, its alerts.
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
#include "detect/detector.hpp"
#include "detect/history.hpp"
#include "detect/period.hpp"

namespace vramtrack {

/// The configured ignore-patterns, compiled once. A pattern that does not compile matches nothing
/// (the configuration's reader has refused it before).
class IgnorePatterns {
 public:
  explicit IgnorePatterns(const std::vector<std::string>& patterns);
  [[nodiscard]] bool match(const ProcessInfo& process) const;

 private:
  std::vector<Regex> patterns_;
};

struct DeviceState;

struct SeriesState {
  static constexpr std::size_t kMaxAlerts = 256;
  static constexpr std::size_t kMaxRuns = 64;

  SeriesState(SeriesId series, const Catalog& catalog, const Config& config, const IgnorePatterns& ignore);

  /// False when no detector has seen the sample: it is older than the last one, or the process has ended.
  bool observe(const Sample& sample);
  /// Tells the detectors where memory ends, when its device's capacity is known: a device ends at its capacity less
  /// what the driver keeps, a process at what it holds plus what its device has free. REQUIRES: device.
  void refresh_limit();
  /// Of a device, after a sample: whether a run begins, goes on or has ended.
  void note_run();
  /// The process has ended: keeps the verdict and the past, frees the detectors.
  void end(End how);

  [[nodiscard]] double rise_since(Timestamp onset) const;
  /// See SeriesView::level_bytes; nullopt without an onset.
  [[nodiscard]] std::optional<double> level_of(const Finding& finding) const;
  [[nodiscard]] ProcessGrowth growth_since(Timestamp onset, const Catalog& catalog) const;
  /// The detector's finding with severity and dissent; no attribution.
  [[nodiscard]] Verdict verdict(const SeverityConfig& severity) const;
  void name_framework(Verdict& verdict, const Catalog& catalog) const;
  [[nodiscard]] SeriesView view(const Catalog& catalog, bool explain) const;

  SeriesId id;
  SeriesKey key;
  std::unique_ptr<Detector> detector;                 ///< null once the process has ended
  std::vector<std::unique_ptr<Detector>> dissenters;  ///< the other detectors, for Verdict::dissent
  History history;
  PeriodEstimate period;
  std::vector<Alert> alerts;
  std::vector<Run> runs;
  Verdict final_verdict;              ///< once `ended`
  std::optional<End> last_end;        ///< of a device: see Verdict::end
  std::uint64_t floor_since_end = 0;  ///< likewise, with the number of samples
  std::uint64_t samples_since_end = 0;
  const DeviceState* device = nullptr;  ///< set by the SeriesTable that owns both
  std::optional<double> limit_bytes;    ///< as the detectors know it
  std::optional<double> utilisation_ratio;
  std::optional<DeviceHealth> health;
  std::optional<LastXid> last_xid;
  std::optional<Timestamp> reviewed;
  std::optional<Timestamp> process_ended;  ///< of a device: when a process on it last ended
  Timestamp prior_time{};                  ///< of the sample before the last
  Timestamp first_time{};
  Timestamp last_time{};
  std::uint64_t samples = 0;
  std::uint64_t last_bytes = 0;
  std::uint64_t peak_bytes = 0;
  bool alerting = false;
  bool queued = false;
  bool ended = false;
  bool paused = false;
  bool ignored = false;

 private:
  SeverityConfig severity_;
};

}  // namespace vramtrack
