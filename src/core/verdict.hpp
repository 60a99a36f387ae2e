// What vramtrack concludes: a detector's Finding, the judged Verdict, the Alert that was raised.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/series.hpp"
#include "core/stall.hpp"
#include "core/time.hpp"

namespace vramtrack {

/// What the series is doing now. `growing`: it rises, and whether that is a leak cannot be decided yet. `loading`: it
/// rises because its program loads onto the device what it reads, or has not begun to work yet.
enum class State : std::uint8_t {
  steady,
  warming_up,
  cycling,
  growing,
  leaking,
  slow_growth,
  spiked,
  falling,
  too_short,
  loading
};

/// The shape of the growth, in the terms of the documentation.
enum class Pattern : std::uint8_t { none, gradual_leak, sudden_spike, cyclic, step_increase, unknown };

/// What became of a spike.
enum class SpikeOutcome : std::uint8_t { none, stabilised, still_growing };

enum class Severity : std::uint8_t { ok, watch, warning, critical };

/// How certain the leak is. `suspected`: it may be one; `confirmed`: it is shown to be one, and an alert is raised when
/// little time is left (engine/paging.hpp); `confirmed_at_end`: a recording ended before more could be known, and the
/// suspicion is certain enough for that case; no alert.
enum class Stage : std::uint8_t { none, suspected, confirmed, confirmed_at_end };

/// How an alert ended. `released`: the memory was released; `withdrawn`: the evidence did not hold up; `resumed`: the
/// stalled process makes progress again.
enum class AlertEnd : std::uint8_t { standing, released, process_ended, withdrawn, resumed };

/// What an alert is about. `stall`: a process holds memory but makes no progress; its Finding gives the time and the
/// cause. `unreleased`: a process ended (at its Finding's onset), but memory that it held is still in use. `headroom`:
/// the known need of a process exceeds what is free; only on request (alert.headroom). `host_out_of_memory`: the
/// kernel ended a process because the host's memory ran out; it is over when it is raised.
enum class AlertKind : std::uint8_t { leak, stall, unreleased, headroom, host_out_of_memory };

/// What has just happened to an alert. `escalated`: it was already standing, and its severity has gone up.
enum class AlertNews : std::uint8_t { raised, escalated, cleared };

/// How a run ended. `out_of_memory`: growth met the limit, or the source reported it; `ended_near_limit`: little memory
/// was free, for whatever reason; `host_out_of_memory`: the kernel ended the process because the memory of the host, or
/// of its cgroup, ran out. In rising order: of two conclusions about one end, the greater holds (std::max).
enum class EndKind : std::uint8_t { ended, ended_near_limit, out_of_memory, host_out_of_memory };

/// The words of one of the enumerations above, in its order.
template <class E>
std::span<const std::string_view> words_of();
template <>
std::span<const std::string_view> words_of<State>();
template <>
std::span<const std::string_view> words_of<Pattern>();
template <>
std::span<const std::string_view> words_of<SpikeOutcome>();
template <>
std::span<const std::string_view> words_of<Severity>();
template <>
std::span<const std::string_view> words_of<Stage>();
template <>
std::span<const std::string_view> words_of<AlertEnd>();
template <>
std::span<const std::string_view> words_of<AlertNews>();
template <>
std::span<const std::string_view> words_of<EndKind>();
template <>
std::span<const std::string_view> words_of<AlertKind>();
template <>
std::span<const std::string_view> words_of<StallJudgement>();
template <>
std::span<const std::string_view> words_of<StallCause>();

std::string_view to_string(State state);
std::string_view to_string(Pattern pattern);
std::string_view to_string(SpikeOutcome outcome);
std::string_view to_string(Severity severity);
std::string_view to_string(Stage stage);
std::string_view to_string(AlertEnd end);
std::string_view to_string(AlertNews news);
std::string_view to_string(EndKind kind);
std::string_view to_string(AlertKind kind);
std::string_view to_string(StallJudgement judgement);
std::string_view to_string(StallCause cause);

/// A quantity with its uncertainty: its 10th, 50th and 90th percentiles; low <= mid <= high.
struct Interval {
  double low = 0;
  double mid = 0;
  double high = 0;
  friend bool operator==(const Interval&, const Interval&) = default;
};

// A member that is added below must also be declared in core/verdict_fields.hpp.

/// One detector's opinion of one series.
struct Finding {
  std::string detector;  ///< its registered name
  bool leak = false;     ///< whether it is shown to be a leak
  Stage stage = Stage::none;
  State state = State::too_short;
  Pattern pattern = Pattern::none;
  SpikeOutcome spike = SpikeOutcome::none;
  double confidence = 0;  ///< 0..1, probability of a leak
  Interval growth_bytes_per_s;
  double r_squared = 0;                             ///< 0..1
  std::optional<Interval> oom_in_s;                 ///< only if the capacity is known and an end can be predicted
  std::optional<Timestamp> onset;                   ///< when the growth began
  std::optional<double> oom_if_growth_continues_s;  ///< while `growing`: what the middle of oom_in_s would be
  std::string because;                              ///< in words, with the figures
};

/// Whether the finding is about growth that may exhaust memory: a leak, or a possible one.
bool grows(const Finding& finding);

/// The process, on the device's host, whose growth explains the device's growth. pid 0: the device grows, but no
/// visible process does (`command` then states that).
struct Suspect {
  std::uint32_t pid = 0;
  std::uint64_t pid_start_ticks = 0;
  std::string command;
  double share = 0;  ///< the share of the device's growth since onset, 0..1
};

/// The end of a process or, for a device, of the process that used most of it or that grew.
struct End {
  EndKind how = EndKind::ended;
  Timestamp time;         ///< the time of the last sample before it
  std::uint32_t pid = 0;  ///< 0: unknown
  std::uint64_t pid_start_ticks = 0;
  std::string command;                       ///< empty when unknown
  std::uint64_t used_bytes = 0;              ///< the memory used by the series, at `time`
  std::optional<double> growth_bytes_per_s;  ///< at `time`, if it grew
  std::optional<Timestamp> onset;            ///< the onset of that growth
  std::optional<double> confidence;          ///< probability that it was a leak, as last reported
  std::optional<double> r_squared;           ///< of that growth
  bool while_loading = false;                ///< memory ran out while its program loaded, or may have: it did not fit
};

/// One stretch in which a device was in use: more than a driver keeps for itself, or than other programs held before.
struct Run {
  Timestamp begin;               ///< its first sample
  std::optional<Timestamp> end;  ///< its last sample; nullopt: it is still running
  std::uint64_t peak_bytes = 0;
  EndKind how = EndKind::ended;              ///< if it has ended
  std::uint32_t pid = 0;                     ///< the pid of the process that ended with it; 0: unknown
  std::optional<double> growth_bytes_per_s;  ///< at its end, or now; nullopt if it did not grow
  std::optional<Timestamp> onset;            ///< the onset of that growth
  std::optional<Timestamp> first_alert;      ///< when the first alert that was not withdrawn was raised
};

/// Seconds from a run's first alert to its end; nullopt if there was no alert, or if the run is still on. Derived.
std::optional<double> run_lead_s(const Run& run);

/// The judged conclusion about one series.
struct Verdict {
  Timestamp time;
  SeriesId series{};
  Severity severity = Severity::ok;
  Finding finding;               ///< the winning one
  std::vector<Finding> dissent;  ///< the others
  std::optional<Suspect> suspect;
  std::string framework;            ///< empty when unknown
  std::vector<std::string> causes;  ///< the framework's usual causes of a leak
  std::vector<std::string> advice;  ///< what to try next
  std::optional<End> end;           ///< of a process that has ended; of a device: its last one, unless it leaks now
};

/// One alert from its raising to its end, or a suspicion, of which nobody is notified. The figures are those at the
/// time of raising (for a suspicion: of its confirmation, if there was one); severity is the highest reached.
struct Alert {
  SeriesId series{};
  Timestamp raised;
  std::optional<Timestamp> cleared;
  AlertEnd ended = AlertEnd::standing;
  Severity severity = Severity::watch;
  Finding finding;
  std::optional<double> suspected_for_s;  ///< how long it was suspected before it was raised
  std::string end_reason;                 ///< in words, when it ended
  AlertKind kind = AlertKind::leak;
  std::optional<EndKind> end_kind;  ///< if it ended with its run: how the run ended
  /// Why people were notified then, in words; empty for a suspicion, of which nobody was, and for other kinds.
  std::string paged_because;
  /// The incident (core/incident.hpp): alerts that report one leak share it. Empty in a suspicion, and in alerts
  /// recorded before incidents existed.
  std::string incident;
};

/// Seconds from the raising of an alert to its actual end; nullopt while it stands. Derived: `cleared` minus `raised`.
std::optional<double> lead_s(const Alert& alert);
/// The old name of suspected_for_s, kept for one release.
std::optional<double> suspected_s(const Alert& alert);

}  // namespace vramtrack
