#include "report/status.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/format.hpp"
#include "report/words.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kNameWidth = 44;
constexpr std::size_t kUsedWidth = 16;
constexpr std::size_t kRateWidth = 16;

bool interesting(const SeriesView& s) {
  const Finding& f = s.verdict.finding;
  return grows(f) || f.state == State::spiked;
}

/// Verdict, confidence and end: the last, free-width column.
std::string conclusion(const SeriesView& s, const ReportStyle& style) {
  const Finding& f = s.verdict.finding;
  if (s.paused) return toned("does not answer", Tone::notice, style);
  std::string out = toned(verdict_words(s), tone_of(s), style);
  if (s.ignored) return out + ", ignored";
  if (f.leak || f.state == State::growing)
    out += fmt::format(", probability of a leak {}", format_percent(f.confidence));
  if (f.oom_in_s) out += ", " + format_oom(*f.oom_in_s);
  if (s.key.pid == 0 && f.leak && s.verdict.suspect)
    out += s.verdict.suspect->pid != 0 ? fmt::format(", by pid {}", s.verdict.suspect->pid)
                                       : ", no visible process explains it";
  return out;
}

std::string row(const std::string& name, const SeriesView& s, const ReportStyle& style) {
  const auto used = static_cast<double>(s.used_bytes);
  const bool of = s.key.pid == 0 && s.device.capacity_bytes;
  const Finding& f = s.verdict.finding;
  return fmt::format(
      "{}  {}  {}  {}\n", fit(name, kNameWidth),
      fit_right(of ? format_bytes_of(used, static_cast<double>(*s.device.capacity_bytes)) : format_bytes(used),
                kUsedWidth),
      fit_right(f.state == State::too_short ? "" : format_rate(f.growth_bytes_per_s.mid), kRateWidth),
      conclusion(s, style) +
          (s.utilisation_ratio ? fmt::format(", GPU {} busy", format_percent(*s.utilisation_ratio)) : ""));
}

std::string_view severity_words(Severity severity) {
  return severity == Severity::critical ? "CRITICAL" : severity == Severity::warning ? "WARNING" : "LEAK";
}

/// The processes of one device, those worth a line first.
void process_rows(std::string& out, const View& view, const std::string& device_id, std::size_t at_most,
                  const ReportStyle& style) {
  std::vector<const SeriesView*> processes;
  for (const SeriesView& s : view.series)
    if (s.key.pid != 0 && s.key.metric == Metric::process_used && s.key.device_id == device_id && !s.ended)
      processes.push_back(&s);
  std::stable_partition(processes.begin(), processes.end(), [](const SeriesView* s) { return interesting(*s); });
  std::size_t steady = 0;
  std::size_t left_out = 0;
  double left_out_bytes = 0;
  for (const SeriesView* s : processes) {
    if (!interesting(*s) && ++steady > at_most) {
      ++left_out;
      left_out_bytes += static_cast<double>(s->used_bytes);
      continue;
    }
    out += row("  " + process_words(*s), *s, style);
  }
  if (left_out > 0)
    out += fmt::format("  and {} more process{} with {}, not growing\n", left_out, left_out == 1 ? "" : "es",
                       format_bytes(left_out_bytes));
}

}  // namespace

std::string status_table(const View& view, const ReportStyle& style, std::size_t processes) {
  if (view.series.empty()) return "no samples yet\n";
  std::string out = toned(format_moment(view.time, view.clock_is_relative), Tone::faint, style) + '\n';
  std::vector<std::string> devices;
  for (const SeriesView& s : view.series)
    if (std::find(devices.begin(), devices.end(), s.key.device_id) == devices.end()) devices.push_back(s.key.device_id);
  for (const std::string& id : devices) {
    const SeriesView* any = nullptr;
    bool has_total = false;
    for (const SeriesView& s : view.series) {
      if (s.key.device_id != id) continue;
      any = &s;
      if (s.key.metric != Metric::device_used) continue;
      has_total = true;
      out += row(device_words(s), s, style);
    }
    // Some drivers tell what processes hold and not what the card does.
    if (!has_total) out += fmt::format("{}  use of the whole device not known\n", fit(device_words(*any), kNameWidth));
    process_rows(out, view, id, processes, style);
  }
  return out;
}

std::string alert_lines(const View& view, const SeriesView& series, const Alert& alert, AlertNews news,
                        const ReportStyle& style) {
  const std::string who =
      series.key.pid == 0 ? device_words(series) : device_words(series) + ", " + process_words(series);
  const Timestamp at = news == AlertNews::raised ? alert.raised : alert.cleared.value_or(view.time);
  const std::string when = format_moment(at, view.clock_is_relative);
  const Finding& f = alert.finding;
  if (news == AlertNews::escalated) {
    const std::optional<Interval>& oom_in_s = series.verdict.finding.oom_in_s;  // as it is now, not at the raise
    return fmt::format("{}  {}  {}: now {}{}\n", when, toned("ESCALATED", Tone::bad, style), who,
                       severity_words(alert.severity), oom_in_s ? ", " + format_oom(*oom_in_s) : std::string());
  }
  if (news == AlertNews::cleared) {
    return fmt::format("{}  {}  {}: {}\n", when, toned("CLEARED", Tone::good, style), who, end_of_alert_words(alert));
  }
  std::string out = fmt::format("{}  {}  {}: {}, {}, probability of a leak {}", when,
                                toned(severity_words(alert.severity), Tone::bad, style), who, pattern_words(f.pattern),
                                format_rate(f.growth_bytes_per_s), format_percent(f.confidence));
  if (f.oom_in_s) out += ", " + format_oom(*f.oom_in_s);
  out += '\n';
  if (!f.because.empty()) out += "    because  " + f.because + '\n';
  if (series.verdict.suspect)
    out += "    suspect  " + suspect_words(*series.verdict.suspect) +
           (series.verdict.framework.empty() ? "" : ", " + series.verdict.framework) + '\n';
  SeriesView at_raise = series;  // the next step belongs to what was raised
  at_raise.verdict.finding = f;
  if (const std::string next = next_step(at_raise); !next.empty()) out += "    next     " + next + '\n';
  return out;
}

}  // namespace vramtrack
