#include "report/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/format.hpp"

namespace vramtrack {

std::string_view pattern_words(Pattern pattern) {
  constexpr std::array<std::string_view, 6> kWords = {"no pattern",    "gradual leak",  "sudden spike",
                                                      "cyclic growth", "step increase", "no known pattern"};
  return kWords[static_cast<std::size_t>(pattern)];
}

const Alert* alert_at_end(const SeriesView& series) {
  if (!series.verdict.end) return nullptr;
  const Timestamp end = series.verdict.end->time;
  const auto stood = [end](const Alert& a) {
    return a.finding.leak && a.ended != AlertEnd::withdrawn && a.raised <= end && (!a.cleared || *a.cleared >= end);
  };
  const auto alert = std::find_if(series.alerts.begin(), series.alerts.end(), stood);
  return alert == series.alerts.end() ? nullptr : &*alert;
}

namespace {

std::string state_words(const Finding& f) {
  switch (f.state) {
    case State::steady:
      return "steady";
    case State::warming_up:
      return "warming up";
    case State::cycling:
      return "cycling";
    case State::growing:
      return "growing, not yet decidable";
    case State::leaking:
      return "rising like a leak, not enough evidence";
    case State::slow_growth:
      return "slow growth";
    case State::spiked:
      if (f.spike == SpikeOutcome::stabilised) return "spiked, then stabilised";
      return f.spike == SpikeOutcome::still_growing ? "spiked, still growing" : "spiked";
    case State::falling:
      return "falling";
    case State::too_short:
      return "too short to tell";
  }
  return "unknown";
}

/// Of a run that is over and is worth a word: "LEAKED until memory ran out".
std::string ended_words(const SeriesView& series) {
  const std::string_view did = alert_at_end(series) != nullptr ? "LEAKED" : "";
  switch (series.verdict.end->how) {
    case EndKind::out_of_memory:
      return did.empty() ? "ran out of memory" : "LEAKED until memory ran out";
    case EndKind::ended_near_limit:
      return did.empty() ? "ended near the limit" : "LEAKED and ended near the limit";
    case EndKind::ended:
      return did.empty() ? "" : "LEAKED until its process ended";
  }
  return {};
}

}  // namespace

std::string end_story(const SeriesView& series, const View& view) {
  if (!series.verdict.end) return {};
  const End& end = *series.verdict.end;
  const auto moment = [&](Timestamp at) { return format_moment(at, view.clock_is_relative); };
  const auto used = static_cast<double>(end.used_bytes);
  const bool of = series.key.pid == 0 && series.device.capacity_bytes;
  std::string out =
      fmt::format("{} {} at {}", end.how == EndKind::ended ? "was at" : "reached",
                  of ? format_bytes_of(used, static_cast<double>(*series.device.capacity_bytes)) : format_bytes(used),
                  moment(end.time));
  if (end.pid == 0)
    out += "; then its memory was released";
  else
    out += fmt::format("; pid {}{} ended then", end.pid,
                       end.command.empty() ? "" : fmt::format(" ({})", printable(end.command)));
  const Alert* const alert = alert_at_end(series);
  if (end.growth_bytes_per_s) {
    out +=
        fmt::format("; it had {} {}", alert != nullptr ? "leaked" : "grown by", format_rate(*end.growth_bytes_per_s));
    if (end.onset) out += " since " + moment(*end.onset);
  }
  if (alert != nullptr)
    out += fmt::format("; the first alert {} {} before", view.files.empty() ? "came" : "would have come",
                       format_duration(seconds_between(alert->raised, end.time)));
  return out;
}

std::string verdict_words(const SeriesView& series) {
  const Finding& f = series.verdict.finding;
  if (series.verdict.end)
    if (std::string words = ended_words(series); !words.empty())
      return series.key.pid != 0 || f.state == State::too_short ? words
                                                                : fmt::format("{}; now {}", words, state_words(f));
  return f.leak ? fmt::format("LEAK ({})", pattern_words(f.pattern)) : state_words(f);
}

std::string device_words(const SeriesView& series) {
  const DeviceInfo& d = series.device;
  const std::string id = d.index ? std::to_string(*d.index) : printable(series.key.device_id);
  std::string words = (d.parent_id.empty() ? "GPU " : "MIG ") + id;
  if (!d.name.empty()) words += ' ' + printable(d.name);
  return words;
}

std::string process_words(const SeriesView& series) {
  std::string words = fmt::format("pid {}", series.key.pid);
  if (!series.process) return words;
  const ProcessInfo& p = *series.process;
  const std::string& command = p.command.empty() ? p.name : p.command;
  if (!command.empty()) words += ' ' + printable(command);
  if (!p.user.empty()) words += " (" + printable(p.user) + ')';
  return words;
}

std::string suspect_words(const Suspect& suspect) {
  if (suspect.pid == 0)
    return fmt::format("no visible process explains {} of the growth",
                       format_percent(std::clamp(suspect.share, 0.0, 1.0)));
  return fmt::format("pid {} {}: {} of the growth", suspect.pid, printable(suspect.command),
                     format_percent(std::clamp(suspect.share, 0.0, 1.0)));
}

std::string end_words(const SeriesView& series) {
  const Finding& f = series.verdict.finding;
  return f.leak && f.oom_in_s ? format_oom(*f.oom_in_s) : std::string();
}

std::string end_of_alert_words(const Alert& alert) {
  if (alert.ended == AlertEnd::process_ended) return alert.end_reason.empty() ? "process ended" : alert.end_reason;
  return fmt::format("{}{}{}", to_string(alert.ended), alert.end_reason.empty() ? "" : ", ", alert.end_reason);
}

std::string next_step(const SeriesView& series) {
  const Verdict& v = series.verdict;
  if (v.end) return {};  // no advice for the dead
  const Finding& f = v.finding;
  const bool device = series.key.pid == 0;
  if (f.leak) {
    std::string step = "save a checkpoint";
    if (f.oom_in_s) step += f.oom_in_s->low < 1 ? " now" : " within " + format_duration(f.oom_in_s->low);
    if (device && v.suspect && v.suspect->pid == 0)
      return step + "; run vramtrack as root, outside of containers, to see the process that grows";
    if (v.suspect && v.suspect->pid != 0) step += fmt::format("; then look into pid {}", v.suspect->pid);
    for (const std::string& cause : v.causes)
      if (cause.substr(0, 5) == "try: ") return step + "; " + cause;
    return step;
  }
  if (f.state == State::growing) return "keep watching: it is too early to tell whether this is a leak";
  if (f.state == State::spiked && f.spike == SpikeOutcome::still_growing)
    return "keep watching: memory still grows after the jump";
  if (f.state == State::too_short) return "record for longer, or sample more often (--interval)";
  return {};
}

Tone tone_of(const SeriesView& series) {
  const Finding& f = series.verdict.finding;
  if (f.leak ||
      (series.verdict.end && (alert_at_end(series) != nullptr || series.verdict.end->how == EndKind::out_of_memory)))
    return Tone::bad;
  switch (f.state) {
    case State::growing:
    case State::leaking:
    case State::slow_growth:
      return Tone::notice;
    case State::spiked:
      return f.spike == SpikeOutcome::stabilised ? Tone::good : Tone::notice;
    case State::too_short:
      return Tone::faint;
    default:
      return Tone::good;
  }
}

std::string toned(std::string_view text, Tone tone, const ReportStyle& style) {
  constexpr std::array<std::string_view, 5> kCodes = {"", "\033[32m", "\033[33m", "\033[1;31m", "\033[2m"};
  if (!style.colour || tone == Tone::plain) return std::string(text);
  return fmt::format("{}{}\033[0m", kCodes[static_cast<std::size_t>(tone)], text);
}

}  // namespace vramtrack
