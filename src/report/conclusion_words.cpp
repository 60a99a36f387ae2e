#include "report/conclusion_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/command.hpp"
#include "core/config.hpp"
#include "core/end_words.hpp"
#include "core/format.hpp"
#include "core/framework.hpp"
#include "core/limit_end.hpp"
#include "core/option.hpp"
#include "core/printable.hpp"
#include "core/program_kind.hpp"
#include "core/units.hpp"
#include "report/accounting.hpp"
#include "report/run_facts.hpp"
#include "report/words.hpp"

// A new kind without words must be a compile error here, not a gap on some surface.
#pragma GCC diagnostic error "-Wswitch"

namespace vramtrack {
namespace {

/// How long the end of a run remains the first thing to report.
constexpr double kNews_s = 24 * 3600;

bool is_device(const SeriesView& s) {
  return s.key.pid == 0;
}

bool is_stalled(const SeriesView& s) {
  return s.stall && s.stall->judgement == StallJudgement::stalled && !s.ended;
}

/// How its last run ended, as a verdict; empty: it has not ended, or that is no longer news.
std::string_view past_words(const SeriesView& s) {
  if (!s.verdict.end) return {};
  const EndWords end = words_of_end(*s.verdict.end);
  return leak_at_end(s) != nullptr ? end.leaked : end.verdict;
}

/// What came after the run that `past` is about, next to the figures of that run or before its own.
std::string with_present(std::string_view past, const SeriesView& s) {
  const Finding& f = s.verdict.finding;
  if (!is_device(s) || f.state == State::too_short) return std::string(past);
  return is_of_ended_run(s) ? fmt::format("{} (since then: {})", past, state_words(f))
                            : fmt::format("{}; now {}", past, state_words(f));
}

std::string verdict_words(const SeriesView& s) {
  const Finding& f = s.verdict.finding;
  if (const std::string_view past = past_words(s); !past.empty()) return with_present(past, s);
  if (f.leak) return fmt::format("LEAK ({})", pattern_words(f.pattern));
  return f.stage == Stage::suspected ? "suspected leak, not confirmed" : state_words(f);
}

std::string headline_words(const SeriesView& s, std::string words) {
  if (s.ended && words.find("process ended") == std::string::npos) words += ", process ended";
  if (s.paused) words += ", then the GPU was lost";
  if (s.ignored) words += ", ignored by ignore-patterns";
  return words;
}

std::string_view state_word(State state) {
  switch (state) {
    case State::steady:
      return "steady";
    case State::warming_up:
      return "warming";
    case State::cycling:
      return "cycling";
    case State::growing:
    case State::leaking:
      return "growing";
    case State::slow_growth:
      return "slow";
    case State::spiked:
      return "spiked";
    case State::falling:
      return "falling";
    case State::too_short:
      return "too short";
    case State::loading:
      return "loading";
  }
  return "unknown";
}

/// The condition that needs most attention.
std::string_view word_of(const SeriesView& s, Timestamp now) {
  const Finding& f = s.verdict.finding;
  if (s.paused) return "no answer";
  if (s.ignored) return "ignored";
  if (f.leak) return severity_words(s.verdict.severity);
  if (s.ended) return s.verdict.end ? words_of_end(*s.verdict.end).word : "ended";
  if (f.stage == Stage::suspected) return "suspected";
  if (is_stalled(s)) return "stalled";
  if (f.state != State::growing && f.state != State::leaking && ended_badly(s, now))
    return words_of_end(*s.verdict.end).word;
  return state_word(f.state);
}

/// When the host's memory runs out, no allocation fails: the kernel kills a process, not always the one that grew.
bool ends_with_the_host(const SeriesView& s) {
  return is_of_host(s.key.metric) || s.device.shares_host_memory;
}

std::string forecast_words(const SeriesView& s, const Finding& f, const Scale& scale) {
  if (f.oom_in_s && ends_with_the_host(s))
    return f.oom_in_s->mid < 1 ? "the host's memory runs out now: the kernel will end a process"
                               : "the kernel will end a process in " + scale.eta(*f.oom_in_s);
  if (f.oom_in_s) return scale.oom(*f.oom_in_s);
  if (!f.oom_if_growth_continues_s) return {};
  return "full in " + scale.duration(*f.oom_if_growth_continues_s) + " if the growth continues";
}

std::string end_report(const SeriesView& series, const View& view, const MaySeeCommand& may_see) {
  if (!series.verdict.end) return {};
  const Scale& scale = view.scale;
  const End& end = *series.verdict.end;
  const auto used = static_cast<double>(end.used_bytes);
  const bool of = is_device(series) && series.device.capacity_bytes;
  std::string out =
      fmt::format("{} {} at {}", words_of_end(end).reached,
                  of ? scale.bytes_of(used, static_cast<double>(*series.device.capacity_bytes)) : scale.bytes(used),
                  view.moment(end.time));
  const std::string command =
      visible_command(view, series.key.host, end.pid, end.pid_start_ticks, end.command, may_see);
  if (end.pid == 0 && series.runs.size() > 1 && !series.runs.back().end && series.runs.back().begin > end.time)
    out += "; the next run began at " + view.moment(series.runs.back().begin);
  else if (end.pid == 0 && series.used_bytes >= end.used_bytes)
    out += "; then a program reported that memory had run out";  // nothing else ends a run without a drop
  else if (end.pid == 0)
    out += "; then its memory was released";
  else
    out +=
        fmt::format("; pid {}{} ended then", end.pid, command.empty() ? "" : fmt::format(" ({})", printable(command)));
  for (const SeriesView* s : same_end(series, view))
    if (s->ended && s->wall && s->wall->name != kMachineMemory) {
      out += "; its limit was " + printable(s->wall->name);
      break;
    }
  // One leak has one beginning and one first alert, regardless of which series saw it first.
  const Alert* leak = nullptr;
  std::optional<Timestamp> alerted;
  std::optional<Timestamp> onset = end.onset;
  for (const SeriesView* s : same_end(series, view)) {
    if (const Alert* its = leak_at_end(*s)) {
      if (leak == nullptr || its->raised < leak->raised) leak = its;
      const auto& all = s->alerts;
      const bool is_alert = std::any_of(all.begin(), all.end(), [&](const Alert& a) { return &a == its; });
      if (is_alert) alerted = std::min(alerted.value_or(its->raised), its->raised);
    }
    if (onset && s->verdict.end->onset) onset = std::min(*onset, *s->verdict.end->onset);
  }
  if (end.growth_bytes_per_s) {
    out += fmt::format("; it had {} {}", leak != nullptr ? "leaked" : "grown by", scale.rate(*end.growth_bytes_per_s));
    if (onset) out += " since " + view.moment(*onset);
  }
  if (alerted)
    out += fmt::format("; the first alert {} {} before", view.files.empty() ? "came" : "would have come",
                       scale.duration(seconds_between(*alerted, end.time)));
  else if (leak != nullptr)
    out += "; no alert was due before";
  return out;
}

std::string suspect_words(const Suspect& suspect, const std::string& command) {
  const std::string share = format_percent(std::clamp(suspect.share, 0.0, 1.0));
  if (suspect.pid == 0) return fmt::format("no visible process explains {} of the growth", share);
  return fmt::format("pid {} {}: {} of the growth", suspect.pid, printable(command), share);
}

/// Deadlines under a minute are shown as "now", since nobody can act in time; the length of steps is unknown.
double least_time_s(const Scale& scale) {
  return scale.counts_steps() ? 1 : kSecondsPerMinute;
}

std::string read_the_message() {
  return command_hint("vramtrack explain") + " reads the message in its log";
}

/// After a run that ended badly: its memory is lost, but its program will run again.
std::string step_after_end(const End& end) {
  if (end.while_loading)
    return "reduce its memory use (fewer weights or a lower precision on each GPU, a smaller cache), or free the "
           "memory that others hold; " +
           read_the_message();
  if (end.how == EndKind::host_out_of_memory)
    return "find out what took the host's memory before it runs again ('memray' and heaptrack name lines), or give it "
           "more: a higher memory.max, or fewer programs beside it";
  return fmt::format("find out what grew before it runs again: {}{} names the lines that allocate",
                     end.how == EndKind::out_of_memory ? read_the_message() + ", and " : "",
                     command_hint("vramtrack run"));
}

/// The kind of program that holds the leaking memory; its framework decides if its command does not.
ProgramKind kind_to_rescue(const SeriesView& series, bool is_named) {
  ProgramKind kind = ProgramKind::unknown;
  if (is_named)
    kind = program_of(series.verdict.suspect->command, {}, {}).kind;
  else if (series.process)
    kind = program_of(series.process->command, series.process->name, series.process->kind).kind;
  return kind == ProgramKind::unknown && is_for_inference(series.verdict.framework) ? ProgramKind::serving : kind;
}

/// The step that saves the work of the leaking program, or frees its memory in an orderly way: `when` is empty, " now"
/// or " within 24m". Only this function decides who is advised to save a checkpoint.
std::string rescue(const SeriesView& series, const std::string& when) {
  const auto& suspect = series.verdict.suspect;
  const bool is_named = suspect && suspect->pid != 0;
  const std::uint32_t pid = is_named ? suspect->pid : series.key.pid;
  const std::string look = is_named ? fmt::format("; then look into pid {}", pid) : std::string();
  switch (kind_to_rescue(series, is_named)) {
    case ProgramKind::serving:
      return fmt::format("let pid {} finish its requests and restart it{}", pid, when);
    case ProgramKind::notebook:
      return fmt::format("save the work in pid {}{}", pid, when);
    case ProgramKind::desktop:
    case ProgramKind::service:
      return fmt::format("restart pid {}{}", pid, when);
    case ProgramKind::training:
      return "save a checkpoint" + when + look;
    case ProgramKind::batch:
      return "save the results" + when + look;
    case ProgramKind::unknown:
      break;
  }
  return fmt::format("save the work{} (a checkpoint, if it trains){}", when, look);
}

std::string next_step(const SeriesView& series, const View& view, Origin origin) {
  const Scale& scale = view.scale;
  const Verdict& v = series.verdict;
  const Finding& f = v.finding;
  if (series.paused && is_device(series))
    return "see nvidia-smi and the kernel log (dmesg | grep -i -e xid -e nvrm), then reset the GPU or restart the "
           "machine";
  // An ended leak is past, unless the device's next run leaks or is suspected.
  if (series.ended || (v.end && !f.leak && f.stage == Stage::none))
    return ended_badly(series, view.time) ? step_after_end(*v.end) : std::string();
  if (f.leak) {
    std::string when;
    if (f.oom_in_s)
      when = f.oom_in_s->low < least_time_s(scale) ? " now" : " within " + scale.duration(f.oom_in_s->low);
    const std::string step = rescue(series, when);
    if (series.key.metric == Metric::device_unattributed || (is_device(series) && v.suspect && v.suspect->pid == 0))
      return step +
             "; run vramtrack as root, outside of containers, to see the process that grows; if none is visible there "
             "either, the driver, MPS or the display holds the memory: restart the programs one by one to find the one "
             "whose exit frees it, and update the driver";
    return v.advice.empty() ? step : step + "; try: " + printable(v.advice.front());
  }
  if (f.stage == Stage::suspected)
    return origin == Origin::watch ? "keep watching: it is reported as a leak as soon as that is certain enough"
                                   : "record for longer: the recording ended before the suspicion could be confirmed";
  const std::string_view wait = origin == Origin::watch ? "keep watching" : "record for longer";
  if (f.state == State::growing) return fmt::format("{}: it is too early to tell whether this is a leak", wait);
  if (f.state == State::spiked && f.spike == SpikeOutcome::still_growing)
    return fmt::format("{}: memory still grows after the jump", wait);
  if (f.state == State::too_short && scale.counts_steps())
    return fmt::format("record more {}, or a sample at every {}", plural(scale.step), scale.step);
  if (f.state == State::too_short)
    return origin == Origin::watch
               ? fmt::format("record for longer, or sample more often ({})", name_of(Option::interval))
               : "record for longer, or more often: 'nvidia-smi ... -l 1' and 'vramtrack watch "
                 "--interval 1s' take one sample per second";
  return {};
}

std::string ends_words(const MemoryWall& wall, const Scale& scale) {
  return fmt::format("; its memory is limited to {} by {}", scale.bytes(wall.bytes), wall.name);
}

std::string wall_words(const MemoryWall& wall, const Scale& scale) {
  std::string out =
      fmt::format("{}, by {}; {} of it used", scale.bytes(wall.bytes), wall.name, scale.bytes(wall.used_bytes));
  if (wall.processes > 1) out += fmt::format(" by {} processes", wall.processes);
  if (wall.growth_bytes_per_s > 0)
    out += fmt::format(", growing by {}{}", scale.scaled_rate(wall.growth_bytes_per_s),
                       wall.processes > 1 ? " together" : "");
  return out;
}

/// Names the limit that the process's need was compared with, if it is closer than the device's end.
std::string headroom_words_of(const View& view, const SeriesView& s) {
  std::string out =
      headroom_words(*s.headroom, is_device(s) ? s.device.capacity_bytes : std::optional<std::uint64_t>(), view.scale);
  for (const SeriesView& other : view.series) {
    const bool needs_it = is_device(s) ? other.key.pid != 0 && other.key.pid == s.headroom->pid &&
                                             device_key(other.key) == device_key(s.key) && !other.ended
                                       : other.key == s.key;
    if (needs_it && other.key.metric == Metric::process_used && other.wall) out += ends_words(*other.wall, view.scale);
  }
  return out;
}

std::string host_words(const HostHolding& host, const Scale& scale) {
  std::string out = scale.bytes(host.anonymous_bytes) + " that no file backs";
  if (host.resident_bytes) out += fmt::format(", {} resident", scale.bytes(*host.resident_bytes));
  if (host.pinned_bytes) out += fmt::format(", {} pinned", scale.bytes(*host.pinned_bytes));
  if (host.available_bytes) out += fmt::format("; {} left", scale.bytes(*host.available_bytes));
  return out;
}

std::string mark_words(const MarkGrowth& growth, const Scale& scale) {
  return fmt::format("{} {}: {}{} from one to the next", growth.name, growth.last,
                     growth.bytes_per_mark < 0 ? "-" : "+", scale.bytes(std::abs(growth.bytes_per_mark)));
}

/// The subject of a finding's explanation: the verdict; for a device whose run has ended, what came after; for a
/// process that ended without a leak, what came before.
std::string_view label_of_reason(const SeriesView& s) {
  if (past_words(s).empty()) return "because";
  if (is_device(s)) return "now";
  return leak_at_end(s) != nullptr ? "because" : "until then";
}

/// The lines below the headline. To show users a new field of a verdict, add a line here.
std::vector<Fact> facts_of(const View& view, const SeriesView& s, const Conclusion& conclusion,
                           const ConclusionWords& words) {
  const Scale& scale = view.scale;
  const Verdict& v = conclusion.verdict();
  const Finding& f = v.finding;
  const Finding& now = s.verdict.finding;
  std::vector<Fact> out;
  const auto add = [&out](std::string_view label, const std::string& text) {
    if (!text.empty()) out.push_back({std::string(label), printable(text)});
  };
  if (s.paused && s.last)
    add("lost", fmt::format("readings stopped after {}, because the GPU was lost", view.moment(*s.last)));
  const auto add_reason = [&](std::string_view of, const Finding& finding) {
    static const std::string usual = DetectionConfig().detector;
    const bool is_usual = finding.detector == usual;
    if (!finding.because.empty())
      add(of, is_usual ? finding.because : fmt::format("{} ({})", finding.because, finding.detector));
  };
  if (const Alert* leak = leak_at_end(s); leak != nullptr && (is_device(s) || conclusion.is_of_ended_run()))
    add_reason("because", leak->finding);
  // With too few samples after the end, nothing is reported.
  if (!conclusion.is_of_ended_run() || (is_device(s) && now.state != State::too_short))
    add_reason(label_of_reason(s), now);
  if (!s.paging.empty() && s.alerts.empty()) add("no alert", s.paging);
  if (!s.paging.empty() && !s.alerts.empty()) add("alert", "no other one yet: " + s.paging);
  if (s.stall) {
    add("progress", words.stall);
    for (const std::string& why : s.stall->evidence) add("progress", why);
    if (const std::string next = stall_next_step(*s.stall, s.key.pid); !next.empty()) add("progress", "next: " + next);
  }
  if (s.headroom && s.headroom->is_news() && !s.ended) add("headroom", headroom_words_of(view, s));
  if (is_device(s) && s.device.shares_host_memory)
    add("memory", "it has none of its own: it shares the host's, and when that runs out, the kernel ends a process");
  if (s.wall) add("wall", wall_words(*s.wall, scale));
  if (s.host) add("host memory", host_words(*s.host, scale));
  if (s.key.metric == Metric::process_used)
    for (const SeriesView& of_host : view.series)
      if (is_of_host(of_host.key.metric) && process_key(of_host.key) == process_key(s.key) && !of_host.ended &&
          grows(of_host.verdict.finding))
        add("host memory",
            fmt::format("{}, {}; {}", verdict_words(of_host), scale.rate(of_host.verdict.finding.growth_bytes_per_s),
                        forecast_words(of_host, of_host.verdict.finding, scale)));
  if (s.still_holds && !s.ended) {
    add("ran out", still_holds_words(view, s));
    add("ran out", "next: " + std::string(kStillHoldsNextStep));
  }
  if (s.mark_growth) add("marks", mark_words(*s.mark_growth, scale));
  add("end", words.end);
  for (Fact& fact : run_facts(view, s)) out.push_back(std::move(fact));
  if (f.onset && (f.leak || f.state == State::growing)) add("since", view.moment(*f.onset));
  if (v.suspect)
    add("suspect", words.suspect + (v.framework.empty() ? "" : ", " + v.framework));
  else
    add("framework", v.framework);
  return out;
}

std::vector<Fact> advice_of(const Verdict& v) {
  std::vector<Fact> out;
  for (const std::string& cause : v.causes) out.push_back({"causes", printable(cause)});
  for (const std::string& advice : v.advice) out.push_back({"try", printable(advice)});
  return out;
}

std::vector<Fact> dissent_of(const Verdict& v) {
  std::vector<Fact> out;
  for (const Finding& d : v.dissent)
    out.push_back({d.leak != v.finding.leak ? "dissent" : "agrees",
                   printable(fmt::format("{} says {}{}{}", d.detector, d.leak ? "leak" : "no leak",
                                         d.because.empty() ? "" : ": ", d.because))});
  return out;
}

}  // namespace

std::string visible_command(const View& view, const std::string& host, std::uint32_t pid, std::uint64_t start_ticks,
                            const std::string& command, const MaySeeCommand& may_see) {
  if (!may_see || pid == 0) return command;
  for (const SeriesView& s : view.series)
    if (s.process && s.process->pid == pid && s.process->start_ticks == start_ticks && s.key.host == host)
      return may_see(*s.process) ? command : s.process->name;
  return {};  // no longer known: its owner could not be identified
}

std::string_view severity_words(Severity severity) {
  switch (severity) {
    case Severity::critical:
      return "CRITICAL";
    case Severity::warning:
      return "WARNING";
    case Severity::watch:
    case Severity::ok:
      break;
  }
  return "LEAK";
}

std::string_view end_words(const SeriesView& series) {
  if (!series.verdict.end) return {};
  const EndWords words = words_of_end(*series.verdict.end);
  return leak_at_end(series) != nullptr ? words.sentence : words.plain;
}

bool ended_badly(const SeriesView& series, Timestamp now) {
  const auto& end = series.verdict.end;
  return end && seconds_between(end->time, now) <= kNews_s &&
         (words_of_end(*end).is_bad || leak_at_end(series) != nullptr);
}

namespace {

/// About its current behaviour, regardless of what came before.
Tone present_tone(const SeriesView& s) {
  const Finding& f = s.verdict.finding;
  if (f.leak) {
    switch (s.verdict.severity) {
      case Severity::critical:
        return Tone::critical;
      case Severity::warning:
        return Tone::warning;
      case Severity::watch:
      case Severity::ok:
        return Tone::watch;
    }
  }
  if (s.paused) return Tone::warning;
  if (f.stage == Stage::suspected) return Tone::notice;
  switch (f.state) {
    case State::growing:
    case State::leaking:
    case State::slow_growth:
      return Tone::notice;
    case State::spiked:
      return f.spike == SpikeOutcome::stabilised ? Tone::ok : Tone::notice;
    case State::too_short:
      return Tone::faint;
    case State::steady:
    case State::warming_up:
    case State::cycling:
    case State::falling:
    case State::loading:
      return Tone::ok;
  }
  return Tone::faint;
}

}  // namespace

Tone tone_of(const SeriesView& series, Timestamp now) {
  return !series.verdict.finding.leak && ended_badly(series, now) ? Tone::warning : present_tone(series);
}

int concern(const SeriesView& series, Timestamp now) {
  if (series.verdict.finding.leak) return 10 + static_cast<int>(series.verdict.severity);
  if (ended_badly(series, now) || series.paused) return 3;
  if (series.verdict.finding.stage == Stage::suspected || is_stalled(series)) return 2;
  return tone_of(series, now) == Tone::notice ? 1 : 0;
}

ConclusionWords conclusion_words(const View& view, const SeriesView& s, const Audience& audience) {
  const Verdict& v = s.verdict;
  const Finding& f = v.finding;
  ConclusionWords out;
  out.verdict = verdict_words(s);
  out.headline = headline_words(s, out.verdict);
  out.tone = tone_of(s, view.time);
  out.growth_tone = present_tone(s);
  out.concern = concern(s, view.time);
  if (s.stall) {
    out.stall = stall_words(*s.stall, view.scale);
    out.stall_tone = is_stalled(s)                                   ? Tone::warning
                     : s.stall->judgement == StallJudgement::unclear ? Tone::notice
                                                                     : Tone::plain;
  }
  out.word = word_of(s, view.time);
  out.word_tone = out.word == "stalled" ? out.stall_tone : out.tone;
  if (f.leak) out.severity = severity_words(v.severity);
  const Conclusion conclusion(view, s);
  const Finding& concluded = conclusion.finding();
  if (concluded.pattern != Pattern::none) out.pattern = pattern_words(concluded.pattern);
  if (concluded.state != State::too_short) {
    out.growth = view.scale.rate(concluded.growth_bytes_per_s);
    out.probability = format_percent(concluded.confidence);
  }
  if (!s.paused) out.forecast = forecast_words(s, f, view.scale);  // there is no forecast for what has stopped
  out.end = end_report(s, view, audience.may_see);
  if (v.suspect) {
    const Suspect& suspect = *v.suspect;
    out.suspect = suspect_words(suspect, visible_command(view, s.key.host, suspect.pid, suspect.pid_start_ticks,
                                                         suspect.command, audience.may_see));
    if (f.leak && is_device(s))
      out.by = suspect.pid != 0 ? fmt::format("by pid {}", suspect.pid) : "no visible process explains it";
  }
  out.next = next_step(s, view, audience.origin.value_or(view.files.empty() ? Origin::watch : Origin::files));
  if (s.key.metric == Metric::device_used) out.unattributed = rest_words(account(view, device_key(s.key)), view.scale);
  out.facts = facts_of(view, s, conclusion, out);
  out.advice = advice_of(v);
  out.dissent = dissent_of(conclusion.verdict());
  return out;
}

AlertWords alert_words(const Alert& a, const Scale& scale) {
  AlertWords out;
  const auto percent = format_percent(a.finding.confidence);
  switch (a.kind) {
    case AlertKind::leak:
      out.what = pattern_words(a.finding.pattern);
      out.severity = severity_words(a.severity);
      out.figures = "probability of a leak " + percent;
      break;
    case AlertKind::stall:
      out.what = "stalled process";
      out.severity = "STALLED";
      out.figures = "confidence " + percent;
      break;
    case AlertKind::unreleased:
      out.what = "not released";
      out.severity = "NOT RELEASED";
      break;
    case AlertKind::headroom:
      out.what = "does not fit";
      out.severity = "DOES NOT FIT";
      break;
    case AlertKind::host_out_of_memory:
      out.what = "host out of memory";
      out.severity = "HOST OUT OF MEMORY";
      break;
  }
  const auto add = [&out](const std::string& figure) { out.figures += (out.figures.empty() ? "" : ", ") + figure; };
  if (a.suspected_for_s) add(fmt::format("suspected {} earlier", scale.duration(*a.suspected_for_s)));
  if (a.finding.oom_in_s) add("predicted then: " + scale.oom(*a.finding.oom_in_s));
  if (!a.paged_because.empty()) add("raised because " + a.paged_because);
  const std::string reason = printable(a.end_reason);
  const auto with_reason = [&reason](std::string_view how) {
    return fmt::format("{}{}{}", how, reason.empty() ? "" : ", ", reason);
  };
  switch (a.ended) {
    case AlertEnd::standing:
      out.state = "active";
      out.ended = "still active";
      break;
    case AlertEnd::released:
      out.state = "released";
      out.ended = with_reason(out.state);
      break;
    case AlertEnd::process_ended:
      out.state = words_of_end(a.end_kind.value_or(EndKind::ended)).alert;
      out.ended = !reason.empty() ? reason
                  : a.end_kind    ? std::string(words_of_end(*a.end_kind).plain)
                                  : "the process has ended";
      break;
    case AlertEnd::withdrawn:
      out.state = "withdrawn";
      out.ended = with_reason(out.state);
      break;
    case AlertEnd::resumed:
      out.state = "resumed";
      out.ended = with_reason(out.state);
      break;
  }
  out.tone = a.ended != AlertEnd::standing      ? Tone::faint
             : a.severity == Severity::critical ? Tone::critical
             : a.severity == Severity::warning  ? Tone::warning
                                                : Tone::watch;
  return out;
}

}  // namespace vramtrack
