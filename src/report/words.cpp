#include "report/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/format.hpp"
#include "core/printable.hpp"
#include "core/scale.hpp"

namespace vramtrack {

std::string_view pattern_words(Pattern pattern) {
  constexpr std::array<std::string_view, 6> kWords = {"no pattern",    "gradual leak",  "sudden spike",
                                                      "cyclic growth", "step increase", "no known pattern"};
  return kWords[static_cast<std::size_t>(pattern)];
}

std::string_view metric_words(Metric metric) {
  constexpr std::array<std::string_view, 7> kWords = {"memory in use",
                                                      "reserved by the driver",
                                                      "memory of the process",
                                                      "allocated to tensors",
                                                      "held by the framework's allocator",
                                                      "outstanding, seen by the probe",
                                                      "held by no visible process"};
  return kWords[static_cast<std::size_t>(metric)];
}

std::string_view alert_words(const Alert& alert) {
  if (alert.kind == AlertKind::unreleased) return "not released";
  return alert.kind == AlertKind::stall ? "stalled process" : pattern_words(alert.finding.pattern);
}

std::string stall_words(const Stall& stall) {
  const std::string for_so_long = format_duration(stall.stalled_s);
  switch (stall.judgement) {
    case StallJudgement::stalled:
      return fmt::format("stalled for {} (confidence {})", for_so_long, format_percent(stall.confidence));
    case StallJudgement::idle:
      return fmt::format("idle for {}{}", for_so_long,
                         stall.what.empty() ? std::string() : " (" + printable(stall.what) + ')');
    case StallJudgement::unclear:
      break;
  }
  return fmt::format("no progress for {}, unclear why", for_so_long);
}

std::string stall_next_step(const Stall& stall, std::uint32_t pid) {
  if (stall.judgement == StallJudgement::idle) return {};
  std::string look = fmt::format("'py-spy dump --pid {}' (Python) or 'gdb -p {}' shows where it waits", pid, pid);
  switch (stall.cause) {
    case StallCause::stopped:
      return fmt::format(
          "ask who stopped it; 'kill -CONT {}' lets it go on, 'kill {}' and then 'kill -CONT {}' ends it", pid, pid,
          pid);
    case StallCause::uninterruptible:
      return "read the kernel log for the driver's messages; the memory comes back when the driver answers, or with a "
             "reset of the GPU";
    case StallCause::exited:
      return "end its parent, which has not taken notice; then the kernel removes it";
    case StallCause::orphaned:
      return fmt::format("if nobody needs it any more, 'kill {}' gives the memory back", pid);
    case StallCause::collective:
      return look +
             "; compare the ranks: the one that is in another place is the cause. Set TORCH_NCCL_TRACE_BUFFER_SIZE "
             "and NCCL_DEBUG=INFO for the next run";
    case StallCause::unread_requests:
      return look + "; restart the server if it does not recover";
    default:
      return look;
  }
}

std::string_view alert_end_words(AlertEnd end) {
  constexpr std::array<std::string_view, 5> kWords = {"active", "released", "process ended", "withdrawn", "resumed"};
  return kWords[static_cast<std::size_t>(end)];
}

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

/// The device and the process that show the same end; `series` is one of them. O(devices) of a process: a View may have
/// tens of thousands.
std::vector<const SeriesView*> same_end(const SeriesView& series, const View& view) {
  std::vector<const SeriesView*> out = {&series};
  const End& end = *series.verdict.end;
  if (end.pid == 0) return out;
  // Devices come first in a View.
  const auto processes =
      std::partition_point(view.series.begin(), view.series.end(), [](const SeriesView& s) { return s.key.pid == 0; });
  const bool is_device = series.key.pid == 0;
  const auto last = is_device ? view.series.end() : processes;
  for (auto other = is_device ? processes : view.series.begin(); other != last; ++other) {
    const auto& its = other->verdict.end;
    if (its && its->pid == end.pid && its->pid_start_ticks == end.pid_start_ticks &&
        device_key(other->key) == device_key(series.key))
      out.push_back(&*other);
  }
  return out;
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
  if (end.pid == 0 && series.used_bytes >= end.used_bytes)
    out += "; then a program reported that memory had run out";  // nothing else ends a run at its level
  else if (end.pid == 0 && series.runs.size() > 1 && !series.runs.back().end && series.runs.back().begin > end.time)
    out += "; the next run began at " + moment(series.runs.back().begin);
  else if (end.pid == 0)
    out += "; then its memory was released";
  else
    out += fmt::format("; pid {}{} ended then", end.pid,
                       end.command.empty() ? "" : fmt::format(" ({})", printable(end.command)));
  // One leak has one beginning and one first alert, whichever series saw it first.
  const Alert* alert = nullptr;
  std::optional<Timestamp> onset = end.onset;
  for (const SeriesView* s : same_end(series, view)) {
    if (const Alert* its = alert_at_end(*s); its != nullptr && (alert == nullptr || its->raised < alert->raised))
      alert = its;
    if (onset && s->verdict.end->onset) onset = std::min(*onset, *s->verdict.end->onset);
  }
  if (end.growth_bytes_per_s) {
    out +=
        fmt::format("; it had {} {}", alert != nullptr ? "leaked" : "grown by", format_rate(*end.growth_bytes_per_s));
    if (onset) out += " since " + moment(*onset);
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
  if (f.leak) return fmt::format("LEAK ({})", pattern_words(f.pattern));
  return f.stage == Stage::suspected ? "suspected leak, not confirmed" : state_words(f);
}

std::string short_device_words(const SeriesView& series) {
  const DeviceInfo& d = series.device;
  const std::string id = d.index ? std::to_string(*d.index) : series.key.device_id;
  // A log of several hosts or runs has several GPUs 0: their ids say whose they are, as in "node2/0".
  std::string whose = series.key.host;
  if (const std::string tail = '/' + id; whose.empty() && d.index && series.key.device_id.ends_with(tail))
    whose = series.key.device_id.substr(0, series.key.device_id.size() - tail.size());
  return printable(whose + (whose.empty() ? "" : " ") + (d.parent_id.empty() ? "GPU " : "MIG ") + id);
}

std::string device_words(const SeriesView& series) {
  const std::string& name = series.device.name;
  return short_device_words(series) + (name.empty() ? "" : ' ' + printable(name));
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

std::string series_words(const SeriesView& series) {
  if (series.key.metric == Metric::device_unattributed)
    return device_words(series) + ", memory that no visible process holds";
  return series.key.pid == 0 ? device_words(series) : device_words(series) + ", " + process_words(series);
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
  if (alert.ended == AlertEnd::process_ended)
    return alert.end_reason.empty() ? "process ended" : printable(alert.end_reason);
  return fmt::format("{}{}{}", to_string(alert.ended), alert.end_reason.empty() ? "" : ", ",
                     printable(alert.end_reason));
}

std::string next_step(const SeriesView& series, Origin origin) {
  const Verdict& v = series.verdict;
  if (v.end) return {};  // no advice for the dead
  const Finding& f = v.finding;
  const bool device = series.key.pid == 0;
  if (f.leak) {
    std::string step = "save a checkpoint";
    if (f.oom_in_s) step += f.oom_in_s->low < 1 ? " now" : " within " + format_duration(f.oom_in_s->low);
    if (series.key.metric == Metric::device_unattributed || (device && v.suspect && v.suspect->pid == 0))
      return step +
             "; run vramtrack as root, outside of containers, to see the process that grows; if none is seen there "
             "either, the driver, MPS or the display holds the memory: restart the programs one by one to find out "
             "with "
             "which one it goes, and update the driver";
    if (v.suspect && v.suspect->pid != 0) step += fmt::format("; then look into pid {}", v.suspect->pid);
    for (const std::string& cause : v.causes)
      if (cause.substr(0, 5) == "try: ") return step + "; " + printable(cause);
    return step;
  }
  if (f.stage == Stage::suspected)
    return origin == Origin::watch
               ? "keep watching: an alert is raised as soon as the leak is certain enough, or little time is left"
               : "record for longer: the recording ended before the suspicion could be confirmed";
  if (f.state == State::growing) return "keep watching: it is too early to tell whether this is a leak";
  if (f.state == State::spiked && f.spike == SpikeOutcome::still_growing)
    return "keep watching: memory still grows after the jump";
  if (f.state == State::too_short && scale().counts_steps())
    return fmt::format("record more {}s, or each of them", scale().step);
  if (f.state == State::too_short)
    return origin == Origin::watch ? "record for longer, or sample more often (--interval)"
                                   : "record for longer, or more often: 'nvidia-smi ... -l 1' and 'vramtrack watch "
                                     "--interval 1s' take a sample a second";
  return {};
}

Tone tone_of(const SeriesView& series) {
  const Finding& f = series.verdict.finding;
  if (f.leak ||
      (series.verdict.end && (alert_at_end(series) != nullptr || series.verdict.end->how == EndKind::out_of_memory)))
    return Tone::bad;
  if (f.stage == Stage::suspected) return Tone::notice;
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
