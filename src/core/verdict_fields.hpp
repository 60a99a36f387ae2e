// The fields of Finding, Suspect, End, Verdict, Alert and Stall, each declared once: its name, its member, its place
// in the flat lines, and its meaning. JSON out (report/fields_json.hpp), JSON in (report/view_json_read.cpp)
// and the store's columns (store/alert_row.cpp) are made by visiting these tables; the tables of the documents, the
// types of the page and Python's classes are compared with them by tests/unit/core/field_documents_test.cpp, which
// also rewrites them.
//
// The kind of a field is not declared: it is the member's type. bool, std::string, an enumeration, Timestamp, Interval,
// a double (see Unit), another declared struct, and optionals and vectors of these.
#pragma once

#include <functional>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "core/verdict.hpp"

namespace vramtrack {

/// The position of a field in the flat lines, counted from 1; 0: not in that line. The positions of a line leave no
/// gap. A position is part of the contract: a new field goes to the end, or between two others if no program can be
/// affected.
struct Positions {
  std::uint8_t verdict = 0;  ///< "verdict" of vramtrack.analysis.v1, of a Verdict and its Finding
  std::uint8_t dissent = 0;  ///< one of its "dissent", of a Finding
  std::uint8_t suspect = 0;  ///< its "suspect", of a Suspect
  std::uint8_t end = 0;      ///< its "end", of an End
  std::uint8_t run = 0;      ///< one of the "runs" of a device, a Run
  std::uint8_t alert = 0;    ///< one of the "alerts", of an Alert and its Finding
  std::uint8_t stall = 0;    ///< "stall" of a process, a Stall
  std::uint8_t status = 0;   ///< a device of vramtrack.status.v1, of a Verdict and its Finding
};

/// The unit of a double; the names of intervals include theirs.
enum class Unit : std::uint8_t { none, ratio, seconds };

/// Exceptions for one field.
struct FieldOptions {
  Unit unit = Unit::none;
  bool null_when_none = false;   ///< in lines, an empty text, 0 and an enumeration's first word become null
  std::string_view attribute{};  ///< its name in Python, where its Verdict has another attribute of this name
  std::string_view columns{};    ///< its columns in the store, if not the name: "oom_*_s" for low, mid and high
};

/// `Get` is a pointer to the member, or a function of the object: such a field is derived; it is written, but never
/// read or stored. `name` is a literal.
template <class Get>
struct Field {
  std::string_view name;
  Get get;
  Positions at;
  std::string_view meaning;
  FieldOptions options;

  static constexpr bool kStored = std::is_member_object_pointer_v<Get>;
  template <class Object>
  [[nodiscard]] constexpr decltype(auto) of(Object& object) const {
    return std::invoke(get, object);
  }
};

template <class Get>
constexpr Field<Get> field(std::string_view name, Get get, Positions at, std::string_view meaning,
                           FieldOptions options = {}) {
  return {name, get, at, meaning, options};
}

/// The table of T; empty for types that are no struct of fields. Its order is that of the View's JSON.
template <class T>
inline constexpr auto kFields = std::tuple<>();

template <class T>
concept HasFields = std::tuple_size_v<decltype(kFields<T>)> >
0;

template <>
inline constexpr auto kFields<Interval> = std::make_tuple(field("low", &Interval::low, {}, "10th percentile"),
                                                          field("mid", &Interval::mid, {}, "50th percentile"),
                                                          field("high", &Interval::high, {}, "90th percentile"));

template <>
inline constexpr auto kFields<Finding> = std::make_tuple(
    field("detector", &Finding::detector, {.verdict = 6, .dissent = 1}, "the detector that made this finding"),
    field("leak", &Finding::leak, {.verdict = 1, .dissent = 2, .alert = 5, .status = 4},
          "true for a leak; a single spike that stabilised is not a leak"),
    field("state", &Finding::state, {.verdict = 2, .dissent = 3, .status = 1},
          "`steady`, `warming_up`, `cycling`, `growing` (rises, not yet decidable), `leaking`, `slow_growth`, "
          "`spiked`, `falling`, `too_short`, `loading` (it rises by what it reads, or before it begins to work)"),
    field("pattern", &Finding::pattern, {.verdict = 3, .dissent = 4, .alert = 6, .status = 2},
          "`gradual_leak`, `sudden_spike`, `cyclic`, `step_increase`, `unknown`, `none`"),
    field("spike", &Finding::spike, {.verdict = 4},
          "the outcome of a spike: `stabilised`, `still_growing`; null: no spike", {.null_when_none = true}),
    field("confidence", &Finding::confidence, {.verdict = 7, .dissent = 5, .alert = 8, .status = 5},
          "probability of a leak", {.unit = Unit::ratio}),
    field("growth_bytes_per_s", &Finding::growth_bytes_per_s, {.verdict = 8, .dissent = 6, .alert = 9, .status = 6},
          "rate of growth; negative when falling", {.columns = "growth_*_bytes_per_s"}),
    field("r_squared", &Finding::r_squared, {.verdict = 9, .dissent = 7}, "how well a straight line fits; 0: no trend",
          {.unit = Unit::ratio}),
    field("oom_in_s", &Finding::oom_in_s, {.verdict = 10, .dissent = 8, .alert = 10, .status = 7},
          "time to out-of-memory, counted from the last sample", {.columns = "oom_*_s"}),
    field("onset", &Finding::onset, {.verdict = 11}, "when the growth began"),
    field("oom_if_growth_continues_s", &Finding::oom_if_growth_continues_s, {.verdict = 18},
          "while `growing`: time to out-of-memory if the growth continues; null otherwise", {.unit = Unit::seconds}),
    field("stage", &Finding::stage, {.verdict = 19, .alert = 11, .status = 9},
          "`suspected`: it may be a leak; `confirmed`: a leak, for which an alert is raised when little time is left; "
          "`confirmed_at_end`: a leak, because the recording ended before more could be known; null: none of these",
          {.null_when_none = true}),
    field("because", &Finding::because, {.verdict = 12, .dissent = 9}, "the reasons, with figures"));

template <>
inline constexpr auto kFields<Suspect> = std::make_tuple(
    field("pid", &Suspect::pid, {.suspect = 1}, "null if the GPU grows and no visible process does",
          {.null_when_none = true}),
    field("pid_start_ticks", &Suspect::pid_start_ticks, {}, "its start, which distinguishes a reused pid"),
    field("command", &Suspect::command, {.suspect = 2}, "its command line", {.null_when_none = true}),
    field("share", &Suspect::share, {.suspect = 3}, "its share of the device's growth since the onset",
          {.unit = Unit::ratio}));

template <>
inline constexpr auto kFields<End> = std::make_tuple(
    field("how", &End::how, {.end = 1},
          "`out_of_memory`: it grew, and its next samples would have reached the limit, or the source reported it; "
          "`host_out_of_memory`: the kernel ended it because the host's memory, or its cgroup's, ran out; "
          "`ended_near_limit`: little was free; `ended`"),
    field("time", &End::time, {.end = 2}, "the time of the last sample before the end"),
    field("pid", &End::pid, {.end = 3}, "the pid of the process that ended; null: not known", {.null_when_none = true}),
    field("pid_start_ticks", &End::pid_start_ticks, {}, "its start, which distinguishes a reused pid"),
    field("used_bytes", &End::used_bytes, {.end = 4}, "memory in use by the series at that time"),
    field("command", &End::command, {.end = 5}, "command line of the process that ended", {.null_when_none = true}),
    field("growth_bytes_per_s", &End::growth_bytes_per_s, {.end = 6},
          "rate of growth at that time; null: it did not grow"),
    field("onset", &End::onset, {.end = 7}, "when that growth began"),
    field("confidence", &End::confidence, {.end = 8}, "probability that it was a leak, as last reported",
          {.unit = Unit::ratio}),
    field("r_squared", &End::r_squared, {.end = 9}, "how well a straight line fits that growth", {.unit = Unit::ratio}),
    field("while_loading", &End::while_loading, {.end = 10},
          "memory ran out while the program loaded, or may have: it did not fit, and did not leak"));

template <>
inline constexpr auto kFields<Run> = std::make_tuple(
    field("begin", &Run::begin, {.run = 1}, "its first sample"),
    field("end", &Run::end, {.run = 2}, "its last sample; null: it is still running"),
    field("peak_bytes", &Run::peak_bytes, {.run = 3}, "highest memory in use on the device"),
    field("how", &Run::how, {.run = 4}, "how it ended: see `verdict.end`; `ended` also while it is still running"),
    field("pid", &Run::pid, {.run = 5}, "the pid of the process that ended with it; null: not known",
          {.null_when_none = true}),
    field("growth_bytes_per_s", &Run::growth_bytes_per_s, {.run = 6},
          "rate of growth at its end, or now if it is still running; null: it did not grow"),
    field("onset", &Run::onset, {.run = 7}, "when that growth began"),
    field("first_alert", &Run::first_alert, {.run = 8}, "when its first alert was raised that was not withdrawn"),
    field("lead_s", &run_lead_s, {.run = 9}, "seconds from that alert to its end; null: none, or it is still running",
          {.unit = Unit::seconds}));

template <>
inline constexpr auto kFields<Verdict> = std::make_tuple(
    field("time", &Verdict::time, {}, "the time of the sample at which it was concluded"),
    field(
        "severity", &Verdict::severity, {.verdict = 5, .status = 3},
        "`ok`; `watch`: a leak; `warning`: out of memory within 24 h; `critical`: within 1 h (`[severity]` sets both)"),
    field("finding", &Verdict::finding, {}, "the finding that won"),
    field("dissent", &Verdict::dissent, {.verdict = 13}, "the findings of the other detectors"),
    field("suspect", &Verdict::suspect, {.verdict = 14, .status = 8},
          "the process whose growth explains the growth of the device"),
    field("framework", &Verdict::framework, {.verdict = 15},
          "framework of the process or the suspect: \"PyTorch\", \"vLLM\", ...", {.null_when_none = true}),
    field("causes", &Verdict::causes, {.verdict = 16}, "the framework's usual causes of a leak"),
    field("advice", &Verdict::advice, {.verdict = 20}, "what to try next"),
    field("end", &Verdict::end, {.verdict = 17},
          "how the process ended; of a device, how the last process ended that grew or used most of it",
          {.attribute = "ending"}));

template <>
inline constexpr auto kFields<Alert> = std::make_tuple(
    field("raised", &Alert::raised, {.alert = 1}, "when the alert was raised"),
    field("cleared", &Alert::cleared, {.alert = 2}, "when the alert ended; null: it is active"),
    field("lead_s", &lead_s, {.alert = 3},
          "seconds from when it was raised to the actual end, for example when the process ended or memory ran out; "
          "null: it is "
          "active",
          {.unit = Unit::seconds}),
    field("ended", &Alert::ended, {.alert = 4},
          "`standing`; `released`: the memory was released; `process_ended`; `withdrawn`: the evidence did not hold; "
          "`resumed`: the process makes progress again"),
    field("suspected_for_s", &Alert::suspected_for_s, {.alert = 15},
          "for how long it was suspected before it was raised", {.unit = Unit::seconds, .columns = "suspected_s"}),
    field("suspected_s", &suspected_s, {.alert = 12}, "the old name of `suspected_for_s`, until the next release",
          {.unit = Unit::seconds}),
    field("end_reason", &Alert::end_reason, {}, "why it ended, in words"),
    field("severity", &Alert::severity, {.alert = 7}, "the highest severity that the alert reached"),
    field("finding", &Alert::finding, {}, "as it was when the alert was raised"),
    field(
        "kind", &Alert::kind, {.alert = 13},
        "`leak`; `stall`: a process that holds memory and makes no progress, since its finding's `onset`; "
        "`unreleased`: a process ended at its finding's `onset`, and memory that it held is still in use; `headroom`: "
        "what a process is known to need does not fit into what is free (`alert.headroom`); `host_out_of_memory`: the "
        "kernel ended a process because the host's memory, or its cgroup's, ran out"),
    field("end_kind", &Alert::end_kind, {.alert = 14},
          "if it ended with its run (`process_ended`): `ended`; `ended_near_limit`; `out_of_memory`: memory ran out; "
          "`host_out_of_memory`: the host's memory ran out"),
    field("paged_because", &Alert::paged_because, {.alert = 16},
          "why the alert was raised then: \"memory may run out in 58m; lead-time is 1h 00m\"; null for a suspicion and "
          "for other kinds",
          {.null_when_none = true}),
    field("incident", &Alert::incident, {.alert = 17},
          "the incident: alerts that report the same leak share it; null for a suspicion", {.null_when_none = true}));

template <>
inline constexpr auto kFields<Stall> = std::make_tuple(
    field("judgement", &Stall::judgement, {.stall = 1},
          "`stalled`: it should work but does not; `idle`: it is idle by nature or on purpose; `unclear`"),
    field("cause", &Stall::cause, {.stall = 2},
          "`waits`, `stopped`, `uninterruptible`, `exited`, `orphaned`, `collective`, `busy_loop`, `unread_requests`, "
          "`unknown`"),
    field("since", &Stall::since, {.stall = 3},
          "the time of the last progress that was seen, or the beginning of the watch"),
    field("stalled_for_s", &Stall::stalled_for_s, {.stall = 9}, "for how long no progress was seen",
          {.unit = Unit::seconds}),
    field("stalled_s", &stalled_s, {.stall = 4}, "the old name of `stalled_for_s`, until the next release",
          {.unit = Unit::seconds}),
    field("confidence", &Stall::confidence, {.stall = 5},
          "confidence in the judgement; it weighs the evidence and is not a measured frequency", {.unit = Unit::ratio}),
    field("held_bytes", &Stall::held_bytes, {.stall = 6}, "memory that the process holds, on all devices"),
    field("what", &Stall::what, {.stall = 7}, "what the process is: \"Jupyter kernel\", \"vLLM server\"",
          {.null_when_none = true}),
    field("evidence", &Stall::evidence, {.stall = 8}, "the reasons in words, the most important first"));

/// Calls visit(field) for each field of T, in order.
template <class T, class Visit>
constexpr void for_each_field(Visit visit) {
  std::apply([&](const auto&... each) { (visit(each), ...); }, kFields<T>);
}

/// Calls visit(field, object) for each field of `objects` that is in the line, in the order of the positions.
template <class Visit, class... Objects>
constexpr void for_each_in_line(std::uint8_t Positions::*line, Visit visit, const Objects&... objects) {
  bool found = true;
  for (std::uint8_t position = 1; found; ++position) {
    found = false;
    const auto look = [&](const auto& object) {
      for_each_field<std::remove_cvref_t<decltype(object)>>([&](const auto& each) {
        if (each.at.*line != position) return;
        found = true;
        visit(each, object);
      });
    };
    (look(objects), ...);
  }
}

}  // namespace vramtrack
