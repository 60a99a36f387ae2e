#include "report/status.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "core/end_words.hpp"
#include "core/format.hpp"
#include "core/printable.hpp"
#include "core/wrap.hpp"
#include "report/conclusion_words.hpp"
#include "report/total.hpp"
#include "report/words.hpp"

namespace vramtrack {
namespace {

/// Columns in front of the conclusion if lines may be of any length.
constexpr std::size_t kNameWidth = 44;
constexpr std::size_t kUsedWidth = 16;
constexpr std::size_t kRateWidth = 16;
/// On a terminal every column counts: the smallest width that fits all usual figures, "14.9/24.0 GiB", "+120 MiB/min".
constexpr std::size_t kLeastUsedWidth = 13;
constexpr std::size_t kLeastRateWidth = 12;
constexpr std::size_t kLeastNameWidth = 14;  ///< "  pid 4194304…": the longest pid fits in full
constexpr std::string_view kGap = "  ";

bool interesting(const SeriesView& s) {
  const Finding& f = s.verdict.finding;
  return grows(f) || f.state == State::spiked || s.unreleased_bytes > 0 || s.still_holds ||
         (s.stall && s.stall->judgement == StallJudgement::stalled);
}

/// Ranks of the parts of a conclusion when there is no room for all: the first ranks are dropped last.
enum class Worth : std::uint8_t { verdict, stall, end, suspect, range, pattern, confidence, busy };

struct Part {
  Worth worth;
  std::string text;
  Tone tone = Tone::plain;
};

struct Row {
  std::string name;
  std::string used;
  std::string rate;
  std::vector<Part> conclusion;
};

/// The beginning of `text`, without what its brackets or semicolon add.
void add_in_two(std::vector<Part>& parts, const std::string& text, Worth head, Worth rest, Tone tone) {
  const std::size_t cut = std::min(text.find(" ("), text.find("; "));
  parts.push_back({head, text.substr(0, cut), tone});
  if (cut != std::string::npos) parts.push_back({rest, text.substr(cut), tone});
}

/// Verdict, confidence and end, in reading order.
std::vector<Part> conclusion(const SeriesView& s, const ConclusionWords& words) {
  const Finding& f = s.verdict.finding;
  std::vector<Part> out;
  add_in_two(out, words.headline, Worth::verdict, Worth::pattern, words.tone);
  if (s.stall && s.stall->judgement != StallJudgement::idle)
    add_in_two(out, ", " + words.stall, Worth::stall, Worth::confidence, words.stall_tone);
  if (s.ignored) return out;
  if (f.leak || f.state == State::growing)
    out.push_back({Worth::confidence, ", probability of a leak " + format_percent(f.confidence)});
  if (!words.forecast.empty()) add_in_two(out, ", " + words.forecast, Worth::end, Worth::range, Tone::plain);
  if (!words.by.empty()) out.push_back({Worth::suspect, ", " + words.by});
  return out;
}

Row row_of(std::string name, const SeriesView& s, const View& view) {
  const auto used = static_cast<double>(s.used_bytes);
  const bool of = is_total(s) && s.device.capacity_bytes;
  const Finding& f = s.verdict.finding;
  Row row{std::move(name),
          of ? view.scale.bytes_of(used, static_cast<double>(*s.device.capacity_bytes)) : view.scale.bytes(used),
          f.state == State::too_short ? "" : view.scale.rate(f.growth_bytes_per_s.mid),
          conclusion(s, conclusion_words(view, s))};
  if (s.utilisation_ratio)
    row.conclusion.push_back({Worth::busy, fmt::format(", GPU {} busy", format_percent(*s.utilisation_ratio))});
  return row;
}

std::size_t length(const std::vector<Part>& parts) {
  std::size_t out = 0;
  for (const Part& part : parts) out += columns(part.text);
  return out;
}

/// The verdict and the end, and as many other parts as fit, the more important first; those two may be shortened later.
std::vector<Part> fitting(const std::vector<Part>& parts, std::size_t room) {
  std::vector<const Part*> by_worth;
  for (const Part& part : parts) by_worth.push_back(&part);
  std::stable_sort(by_worth.begin(), by_worth.end(), [](const Part* a, const Part* b) { return a->worth < b->worth; });
  std::vector<bool> chosen(parts.size());
  std::size_t taken = 0;
  for (const Part* part : by_worth) {
    const std::size_t wide = columns(part->text);
    if (part->worth > Worth::end && taken + wide > room) continue;
    chosen[static_cast<std::size_t>(part - parts.data())] = true;
    taken += wide;
  }
  std::vector<Part> out;
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (chosen[i]) out.push_back(parts[i]);
  return out;
}

std::string cut(const std::string& text, std::size_t width) {
  return columns(text) > width ? fit(text, width) : text;
}

/// The lines of the table, laid out once all are known.
class Layout {
 public:
  explicit Layout(const ReportStyle& style) : style_(style) {}

  void add(Row row) { lines_.emplace_back(std::move(row)); }
  /// A line without columns.
  void add(std::string text) { lines_.emplace_back(std::move(text)); }

  [[nodiscard]] std::string text() {
    if (style_.width > 0) narrow();
    std::string out;
    for (const auto& line : lines_) out += line_text(line) + '\n';
    return out;
  }

 private:
  /// The name is shortened first, then the least important parts of the conclusion; the name takes back any space left.
  void narrow() {
    used_ = kLeastUsedWidth;
    rate_ = kLeastRateWidth;
    std::size_t longest_name = kLeastNameWidth;
    for (const Row* row : rows()) {
      used_ = std::max(used_, columns(row->used));
      rate_ = std::max(rate_, columns(row->rate));
      longest_name = std::max(longest_name, columns(row->name));
    }
    const std::size_t figures = used_ + rate_ + 3 * kGap.size();
    room_ = style_.width > figures + kLeastNameWidth ? style_.width - figures - kLeastNameWidth : 1;
    std::size_t longest = 0;
    for (const Row* row : rows()) longest = std::max(longest, length(fitting(row->conclusion, room_)));
    const std::size_t spare = room_ > longest ? room_ - longest : 0;
    name_ = std::min({kNameWidth, longest_name, kLeastNameWidth + spare});
    room_ -= name_ - kLeastNameWidth;
  }

  [[nodiscard]] std::vector<const Row*> rows() const {
    std::vector<const Row*> out;
    for (const auto& line : lines_)
      if (const Row* row = std::get_if<Row>(&line)) out.push_back(row);
    return out;
  }

  [[nodiscard]] std::string laid_out(const Row& row) const {
    std::string out = fmt::format("{}{}{}{}{}{}", fit(row.name, name_), kGap, fit_right(row.used, used_), kGap,
                                  fit_right(row.rate, rate_), kGap);
    std::size_t room = room_;
    for (const Part& part : style_.width > 0 ? fitting(row.conclusion, room) : row.conclusion) {
      if (room == 0) break;
      const std::string shown = cut(part.text, room);
      out += toned(shown, part.tone, style_);
      room -= columns(shown);
    }
    return out;
  }

  [[nodiscard]] std::string line_text(const std::variant<Row, std::string>& line) const {
    if (const Row* row = std::get_if<Row>(&line)) return laid_out(*row);
    const std::string& text = std::get<std::string>(line);
    if (style_.width == 0) return text;
    std::string out;
    std::istringstream lines(wrap(text, style_.width));
    for (std::string one; std::getline(lines, one);) out += (out.empty() ? "" : "\n") + cut(one, style_.width);
    return out;
  }

  const ReportStyle& style_;
  std::vector<std::variant<Row, std::string>> lines_;
  std::size_t name_ = kNameWidth;
  std::size_t used_ = kUsedWidth;
  std::size_t rate_ = kRateWidth;
  std::size_t room_ = std::string::npos;  ///< for the conclusion
};

/// For a raised alert: that a process is stalled, since when, why, and what to do.
std::string stall_lines(const std::string& when, const std::string& severity, const View& view,
                        const SeriesView& series, const Alert& alert, const ReportStyle& style) {
  const Finding& f = alert.finding;
  const double for_s = f.onset ? seconds_between(*f.onset, alert.raised) : 0;
  const std::uint64_t held = series.stall ? series.stall->held_bytes : series.used_bytes;
  std::string out = fmt::format("{}  {}  {}: holds {} and has made no progress for {}, with a confidence of {}\n", when,
                                toned(severity, Tone::warning, style), series_words(series), view.scale.bytes(held),
                                view.scale.duration(for_s), format_percent(f.confidence));
  if (!f.because.empty()) out += "    because  " + printable(f.because) + '\n';
  if (series.stall)
    if (const std::string next = stall_next_step(*series.stall, series.key.pid); !next.empty())
      out += "    next     " + next + '\n';
  return out;
}

std::string unreleased_lines(const std::string& when, const std::string& severity, const SeriesView& series,
                             const Alert& alert, const ReportStyle& style) {
  return fmt::format(
      "{}  {}  {}: it has ended, but memory that it held is still in use\n    because  {}\n    next     {}\n", when,
      toned(severity, Tone::warning, style), series_words(series), printable(alert.finding.because),
      unreleased_next_step());
}

std::string killed_lines(const std::string& when, const std::string& severity, const SeriesView& series,
                         const Alert& alert, const ReportStyle& style) {
  return fmt::format("{}  {}  {}: the host's memory ran out, and the kernel ended it\n    because  {}\n", when,
                     toned(severity, Tone::critical, style), series_words(series), printable(alert.finding.because));
}

std::string headroom_lines(const std::string& when, const std::string& severity, const SeriesView& series,
                           const Alert& alert, const ReportStyle& style) {
  return fmt::format("{}  {}  {}: {}\n    next     {}\n", when, toned(severity, Tone::warning, style),
                     series_words(series), printable(alert.finding.because), kHeadroomNextStep);
}

/// Below the row of a leak without a notification yet: the reason.
void paging_row(Layout& out, const SeriesView& s) {
  if (!s.paging.empty()) out.add("    no alert  " + printable(s.paging));
}

/// Below the row of a process that ran out of memory and still holds what it had.
void still_holds_row(Layout& out, const View& view, const SeriesView& s) {
  if (s.still_holds && !s.ended)
    out.add(fmt::format("    {}; next: {}", still_holds_words(view, s), kStillHoldsNextStep));
}

/// The processes of one device, the relevant ones first. `shows_paging`: the device has not shown it.
void process_rows(Layout& out, const View& view, const std::string& device_id, bool shows_paging, std::size_t at_most) {
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
    out.add(row_of("  " + process_words(*s), *s, view));
    if (shows_paging) paging_row(out, *s);
    still_holds_row(out, view, *s);
  }
  if (left_out > 0)
    out.add(fmt::format("  and {} more process{} with {}, not growing", left_out, left_out == 1 ? "" : "es",
                        view.scale.bytes(left_out_bytes)));
}

}  // namespace

std::string status_table(const View& view, const ReportStyle& style, std::size_t processes) {
  if (view.series.empty()) return "no samples yet\n";
  Layout out(style);
  std::vector<std::string> devices;
  for (const SeriesView& s : view.series)
    if (std::find(devices.begin(), devices.end(), s.key.device_id) == devices.end()) devices.push_back(s.key.device_id);
  for (const std::string& id : devices) {
    const SeriesView* any = nullptr;
    bool has_total = false;
    bool shows_paging = true;  // once: a process of a leaking device waits for the same reason
    for (const SeriesView& s : view.series) {
      if (s.key.device_id != id) continue;
      any = &s;
      if (!is_total(s)) continue;
      has_total = true;
      out.add(row_of(device_words(s), s, view));
      paging_row(out, s);
      if (!s.paging.empty()) shows_paging = false;
    }
    // Some drivers report the memory of processes, but not that of the device.
    if (!has_total) out.add(fit(device_words(*any), kNameWidth) + "  the whole device's use is unknown");
    process_rows(out, view, id, shows_paging, processes);
    for (const SeriesView& s : view.series) {
      if (s.key.device_id != id || !interesting(s)) continue;
      if (s.key.metric == Metric::device_unattributed) out.add(row_of("  held by no visible process", s, view));
      if (is_of_host(s.key.metric) && !s.ended) {
        out.add(row_of(fmt::format("  host memory of pid {}", s.key.pid), s, view));
        paging_row(out, s);
      }
    }
  }
  return toned(view.moment(view.time), Tone::faint, style) + '\n' + out.text();
}

std::string alert_lines(const View& view, const SeriesView& series, const Alert& alert, AlertNews news,
                        const ReportStyle& style) {
  const std::string who = series_words(series);
  const Timestamp at = news == AlertNews::raised ? alert.raised : alert.cleared.value_or(view.time);
  const std::string when = view.moment(at);
  const Finding& f = alert.finding;
  const AlertWords phrases = alert_words(alert, view.scale);
  if (news == AlertNews::escalated) {
    const std::string now = conclusion_words(view, series).forecast;  // the current one, not that of the raise
    return fmt::format("{}  {}  {}: now {}{}{}\n", when, toned("ESCALATED", Tone::warning, style), who,
                       phrases.severity, now.empty() ? "" : ", ", now);
  }
  if (news == AlertNews::cleared) {
    const bool is_bad = alert.end_kind && words_of_end(*alert.end_kind).is_bad;
    return fmt::format("{}  {}  {}: {}\n", when,
                       is_bad ? toned("OUT OF MEMORY", Tone::critical, style) : toned("CLEARED", Tone::ok, style), who,
                       phrases.ended);
  }
  if (alert.kind == AlertKind::stall) return stall_lines(when, phrases.severity, view, series, alert, style);
  if (alert.kind == AlertKind::unreleased) return unreleased_lines(when, phrases.severity, series, alert, style);
  if (alert.kind == AlertKind::headroom) return headroom_lines(when, phrases.severity, series, alert, style);
  if (alert.kind == AlertKind::host_out_of_memory) return killed_lines(when, phrases.severity, series, alert, style);
  SeriesView at_raise = series;  // the advice belongs to what was raised
  at_raise.verdict.finding = f;
  const ConclusionWords words = conclusion_words(view, at_raise);
  std::string out =
      fmt::format("{}  {}  {}: {}, {}, probability of a leak {}", when, toned(phrases.severity, phrases.tone, style),
                  who, phrases.what, view.scale.rate(f.growth_bytes_per_s), format_percent(f.confidence));
  if (!words.forecast.empty()) out += ", " + words.forecast;
  out += '\n';
  if (!f.because.empty()) out += "    because  " + printable(f.because) + '\n';
  if (!words.suspect.empty())
    out += "    suspect  " + words.suspect +
           (series.verdict.framework.empty() ? "" : ", " + printable(series.verdict.framework)) + '\n';
  if (!words.next.empty()) out += "    next     " + words.next + '\n';
  return out;
}

}  // namespace vramtrack
