// The text report: what a tired person needs first, first.
#include <fmt/format.h>

#include <algorithm>

#include "core/format.hpp"
#include "report/words.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kMaxAlertLines = 8;
constexpr std::size_t kMaxBriefLines = 8;  ///< of processes with nothing to tell

void line(std::string& out, std::string_view label, std::string_view text) {
  // A text of several lines hangs under its first.
  std::string body;
  for (const char c : text) body += c == '\n' ? "\n             " : std::string(1, c);
  out += fmt::format("  {} {}\n", fit(label, 10), body);
}

std::string used(const SeriesView& s) {
  if (s.key.pid == 0 && s.device.capacity_bytes)
    return format_bytes_of(static_cast<double>(s.used_bytes), static_cast<double>(*s.device.capacity_bytes));
  return format_bytes(static_cast<double>(s.used_bytes));
}

std::string title(const SeriesView& s) {
  std::string words = device_words(s);
  if (s.key.pid != 0) words += ", " + process_words(s);
  if (s.key.metric != Metric::device_used && s.key.metric != Metric::process_used)
    words += fmt::format(" [{}]", to_string(s.key.metric));
  return words;
}

/// "  2026-01-01 08:00:00Z to 2026-01-01 09:32:00Z, 1h 32m: 24.0/24.0 GiB at most, ran out of memory, pid 4242"
std::string run_words(const Run& run, const SeriesView& s, const View& view) {
  const auto peak = static_cast<double>(run.peak_bytes);
  std::string out = fmt::format("  {} to {}", format_moment(run.begin, view.clock_is_relative),
                                run.end ? format_moment(*run.end, view.clock_is_relative) : "the end");
  const auto until = run.end ? run.end : s.last;
  if (until) out += ", " + format_duration(seconds_between(run.begin, *until));
  out += fmt::format(": {} at most, ", s.device.capacity_bytes
                                           ? format_bytes_of(peak, static_cast<double>(*s.device.capacity_bytes))
                                           : format_bytes(peak));
  if (!run.end) return out + "goes on";
  out += run.how == EndKind::out_of_memory      ? "ran out of memory"
         : run.how == EndKind::ended_near_limit ? "ended near the limit"
                                                : "ended";
  if (run.pid != 0) out += fmt::format(", pid {}", run.pid);
  return out;
}

bool worth_details(const SeriesView& s) {
  const Finding& f = s.verdict.finding;
  return s.key.pid == 0 || grows(f) || !s.alerts.empty() || !s.explain.empty();
}

std::string headline(const SeriesView& s, const ReportStyle& style) {
  const Finding& f = s.verdict.finding;
  std::string out = fmt::format("{}: {}", title(s), toned(verdict_words(s), tone_of(s), style));
  if (s.ended) out += ", process ended";
  if (s.paused) out += ", device does not answer";
  if (s.ignored) out += ", ignored by ignore-patterns";
  if (f.state != State::too_short)
    out += fmt::format(", {}, R² {}, probability of a leak {}", format_rate(f.growth_bytes_per_s),
                       format_r_squared(f.r_squared), format_percent(f.confidence));
  if (f.oom_in_s) out += ", " + format_oom(*f.oom_in_s);
  return out + '\n';
}

void alert_lines(std::string& out, const SeriesView& s, bool relative) {
  const std::size_t from = s.alerts.size() > kMaxAlertLines ? s.alerts.size() - kMaxAlertLines : 0;
  if (from > 0) line(out, "alerts", fmt::format("{} earlier ones are in --format json", from));
  for (std::size_t i = from; i < s.alerts.size(); ++i) {
    const Alert& a = s.alerts[i];
    std::string text =
        fmt::format("{} raised {}, {}, probability of a leak {}", pattern_words(a.finding.pattern),
                    format_moment(a.raised, relative), to_string(a.severity), format_percent(a.finding.confidence));
    if (a.finding.oom_in_s) text += ", then predicted " + format_oom(*a.finding.oom_in_s);
    if (a.cleared) {
      text += fmt::format("; {} {}", a.ended == AlertEnd::process_ended ? "process ended" : to_string(a.ended),
                          format_moment(*a.cleared, relative));
      if (!a.end_reason.empty() && a.ended != AlertEnd::process_ended) text += ": " + a.end_reason;
    } else {
      text += "; stands";
    }
    line(out, "alert", text);
  }
}

/// framework_causes() puts the causes first, then what to try, each such line marked "try: ".
void cause_lines(std::string& out, const std::vector<std::string>& causes) {
  std::string_view last_label;
  for (std::string_view text : causes) {
    const bool advice = text.substr(0, 5) == "try: ";
    if (advice) text.remove_prefix(5);
    const std::string_view label = advice ? "try" : "causes";
    line(out, label == last_label ? "" : label, text);
    last_label = label;
  }
}

void details(std::string& out, const SeriesView& s, const View& view) {
  const Verdict& v = s.verdict;
  line(out, "used",
       fmt::format("{} now, {} at most; {} sample{} over {}, every {}", used(s),
                   format_bytes(static_cast<double>(s.peak_bytes)), s.samples, s.samples == 1 ? "" : "s",
                   format_duration(s.first && s.last ? seconds_between(*s.first, *s.last) : 0.0),
                   format_duration(s.interval_s)));
  if (!v.finding.because.empty()) line(out, "because", fmt::format("{} ({})", v.finding.because, v.finding.detector));
  if (const std::string story = end_story(s, view); !story.empty()) line(out, "end", story);
  if (v.finding.onset && (v.finding.leak || v.finding.state == State::growing))
    line(out, "since", format_moment(*v.finding.onset, view.clock_is_relative));
  if (v.suspect)
    line(out, "suspect", suspect_words(*v.suspect) + (v.framework.empty() ? "" : ", " + v.framework));
  else if (!v.framework.empty())
    line(out, "framework", v.framework);
  cause_lines(out, v.causes);
  alert_lines(out, s, view.clock_is_relative);
  for (const Finding& d : v.dissent)
    if (d.leak != v.finding.leak)
      line(out, "dissent", fmt::format("{} says {}: {}", d.detector, d.leak ? "leak" : "no leak", d.because));
  for (const std::string& why : s.explain) line(out, &why == s.explain.data() ? "explain" : "", why);
  if (s.key.pid == 0 && !s.device.capacity_bytes)
    line(out, "capacity",
         "unknown, so the time to out-of-memory cannot be predicted; pass --capacity, for example --capacity 24GiB");
  if (const std::string next = next_step(s); !next.empty()) line(out, "next", next);
}

/// "0 of 98 leak", where there are too many to read each; and of each GPU its runs, where there were several.
void summary(std::string& out, const View& view) {
  if (view.series.size() > kMaxBriefLines) {
    const auto leaks = std::count_if(view.series.begin(), view.series.end(), [](const SeriesView& s) {
      return s.verdict.finding.leak || alert_at_end(s) != nullptr;
    });
    out += fmt::format("{} of {} leak{}\n", leaks, view.series.size(), leaks == 1 ? "s" : "");
  }
  for (const SeriesView& s : view.series) {
    if (s.runs.size() < 2) continue;
    out += fmt::format("{}: {} runs\n", title(s), s.runs.size());
    for (const Run& run : s.runs) out += run_words(run, s, view) + '\n';
  }
}

std::string render(const View& view, const ReportStyle& style) {
  std::string out;
  for (const std::string& file : view.files) out += printable(file) + '\n';
  summary(out, view);
  bool shown_before = false;
  std::size_t brief = 0;
  for (const SeriesView& s : view.series) {
    const bool full = worth_details(s);
    if (!full && ++brief > kMaxBriefLines) continue;
    if (full && (shown_before || !view.files.empty())) out += '\n';
    out += headline(s, style);
    if (full) details(out, s, view);
    shown_before = true;
  }
  if (brief > kMaxBriefLines)
    out += fmt::format("and {} more process{} without a sign of a leak; --format json lists all\n",
                       brief - kMaxBriefLines, brief - kMaxBriefLines == 1 ? "" : "es");
  if (!view.notices.empty()) out += "\nevents\n";
  for (const Notice& n : view.notices)
    out += fmt::format("  {}  {}\n", format_moment(n.time, view.clock_is_relative), printable(n.text));
  if (view.skipped_lines > 0) {
    out += fmt::format("\n{} line{} could not be read and {} skipped\n", view.skipped_lines,
                       view.skipped_lines == 1 ? "" : "s", view.skipped_lines == 1 ? "was" : "were");
    for (const std::string& skipped : view.first_skipped) out += "  " + printable(skipped) + '\n';
    if (view.skipped_lines > view.first_skipped.size() && !view.first_skipped.empty())
      out += fmt::format("  and {} more\n", view.skipped_lines - view.first_skipped.size());
  }
  for (const std::string& warning : view.warnings)
    out += toned("warning:", Tone::notice, style) + ' ' + printable(warning) + '\n';
  return out;
}

}  // namespace

extern const ReportInfo text_report;
const ReportInfo text_report{"text", "for people: one headline a series, the reasons below it", render};

}  // namespace vramtrack
