#include "core/verdict.hpp"

namespace vramtrack {
namespace {

constexpr std::array<std::string_view, 10> kStates = {"steady",      "warming_up", "cycling", "growing",   "leaking",
                                                      "slow_growth", "spiked",     "falling", "too_short", "loading"};
constexpr std::array<std::string_view, 6> kPatterns = {"none",   "gradual_leak",  "sudden_spike",
                                                       "cyclic", "step_increase", "unknown"};
constexpr std::array<std::string_view, 3> kOutcomes = {"none", "stabilised", "still_growing"};
constexpr std::array<std::string_view, 4> kSeverities = {"ok", "watch", "warning", "critical"};
constexpr std::array<std::string_view, 4> kStages = {"none", "suspected", "confirmed", "confirmed_at_end"};
constexpr std::array<std::string_view, 5> kEnds = {"standing", "released", "process_ended", "withdrawn", "resumed"};
constexpr std::array<std::string_view, 4> kEndKinds = {"ended", "ended_near_limit", "out_of_memory",
                                                       "host_out_of_memory"};
constexpr std::array<std::string_view, 5> kKinds = {"leak", "stall", "unreleased", "headroom", "host_out_of_memory"};
constexpr std::array<std::string_view, 3> kJudgements = {"unclear", "idle", "stalled"};
constexpr std::array<std::string_view, 9> kCauses = {"unknown",  "waits",      "stopped",   "uninterruptible", "exited",
                                                     "orphaned", "collective", "busy_loop", "unread_requests"};
constexpr std::array<std::string_view, 3> kNews = {"raised", "escalated", "cleared"};

template <class E>
std::string_view word_of(E value) {
  return words_of<E>()[static_cast<std::size_t>(value)];
}

}  // namespace

template <>
std::span<const std::string_view> words_of<State>() {
  return kStates;
}
template <>
std::span<const std::string_view> words_of<Pattern>() {
  return kPatterns;
}
template <>
std::span<const std::string_view> words_of<SpikeOutcome>() {
  return kOutcomes;
}
template <>
std::span<const std::string_view> words_of<Severity>() {
  return kSeverities;
}
template <>
std::span<const std::string_view> words_of<Stage>() {
  return kStages;
}
template <>
std::span<const std::string_view> words_of<AlertEnd>() {
  return kEnds;
}
template <>
std::span<const std::string_view> words_of<AlertNews>() {
  return kNews;
}
template <>
std::span<const std::string_view> words_of<EndKind>() {
  return kEndKinds;
}
template <>
std::span<const std::string_view> words_of<AlertKind>() {
  return kKinds;
}
template <>
std::span<const std::string_view> words_of<StallJudgement>() {
  return kJudgements;
}
template <>
std::span<const std::string_view> words_of<StallCause>() {
  return kCauses;
}

std::string_view to_string(State state) {
  return word_of(state);
}
std::string_view to_string(Pattern pattern) {
  return word_of(pattern);
}
std::string_view to_string(SpikeOutcome outcome) {
  return word_of(outcome);
}
std::string_view to_string(Severity severity) {
  return word_of(severity);
}
std::string_view to_string(Stage stage) {
  return word_of(stage);
}
std::string_view to_string(AlertEnd end) {
  return word_of(end);
}
std::string_view to_string(AlertNews news) {
  return word_of(news);
}
std::string_view to_string(EndKind kind) {
  return word_of(kind);
}
std::string_view to_string(AlertKind kind) {
  return word_of(kind);
}
std::string_view to_string(StallJudgement judgement) {
  return word_of(judgement);
}
std::string_view to_string(StallCause cause) {
  return word_of(cause);
}

bool grows(const Finding& finding) {
  return finding.leak || finding.state == State::growing || finding.state == State::slow_growth;
}

std::optional<double> run_lead_s(const Run& run) {
  if (!run.end || !run.first_alert) return std::nullopt;
  return seconds_between(*run.first_alert, *run.end);
}

std::optional<double> lead_s(const Alert& alert) {
  if (!alert.cleared) return std::nullopt;
  return seconds_between(alert.raised, *alert.cleared);
}

std::optional<double> suspected_s(const Alert& alert) {
  return alert.suspected_for_s;
}

}  // namespace vramtrack
