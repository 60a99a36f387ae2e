// The text report: the most urgent information comes first.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "core/format.hpp"
#include "core/incident.hpp"
#include "core/option.hpp"
#include "core/printable.hpp"
#include "report/conclusion_words.hpp"
#include "report/words.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kMaxAlertLines = 8;
constexpr std::size_t kMaxBriefLines = 8;  ///< of processes with nothing to report

void line(std::string& out, std::string_view label, std::string_view text) {
  // The lines of a longer text are indented below its first. The text may come from another program: an agent, a store.
  std::string body;
  for (const char c : printable_lines(text)) body += c == '\n' ? "\n             " : std::string(1, c);
  out += fmt::format("  {} {}\n", fit(label, 10), body);
}

/// Memory that no visible process holds is a part of its device's memory, just like a process's.
bool is_rest(const SeriesView& s) {
  return s.key.metric == Metric::device_unattributed;
}

std::string used(const SeriesView& s, const Scale& scale) {
  if (s.key.pid == 0 && !is_rest(s) && s.device.capacity_bytes)
    return scale.bytes_of(static_cast<double>(s.used_bytes), static_cast<double>(*s.device.capacity_bytes));
  return scale.bytes(s.used_bytes);
}

std::string title(const SeriesView& s) {
  std::string words = device_words(s);
  if (s.key.pid != 0) words += ", " + process_words(s);
  if (is_of_device(s.key.metric) && s.key.metric != Metric::device_used)
    words += fmt::format(" [{}]", metric_words(s.key.metric));
  return words;
}

bool worth_details(const SeriesView& s) {
  const Finding& f = s.verdict.finding;
  const bool stalls = s.stall && s.stall->judgement != StallJudgement::idle;
  return (s.key.pid == 0 && !is_rest(s)) || grows(f) || stalls || s.still_holds || !s.alerts.empty() ||
         !s.suspicions.empty() || !s.explain.empty();
}

std::string headline(const View& view, const SeriesView& s, const ConclusionWords& words, const ReportStyle& style) {
  std::string out = fmt::format("{}: {}{}", title(s), toned(words.verdict, words.tone, style),
                                words.headline.substr(words.verdict.size()));
  if (!words.growth.empty())
    out += fmt::format(", {}, R² {}, probability of a leak {}", words.growth,
                       format_r_squared(Conclusion(view, s).finding().r_squared), words.probability);
  if (!words.forecast.empty()) out += ", " + words.forecast;
  return out + '\n';
}

/// The last suspicion, which may still be active, and the number of earlier ones.
void suspicion_line(std::string& out, const SeriesView& s, const View& view) {
  if (s.suspicions.empty()) return;
  const Alert& a = s.suspicions.back();
  const bool is_leak = a.finding.leak;
  std::string text = fmt::format("since {}, {}", view.moment(a.raised),
                                 a.finding.stage == Stage::confirmed_at_end ? "a leak when the recording ended"
                                 : is_leak                                  ? "now a leak"
                                                                            : "not confirmed");
  if (a.cleared)
    text = fmt::format("from {} to {}, {}: {}", view.moment(a.raised), view.moment(*a.cleared),
                       is_leak ? "a leak without an alert" : "never confirmed", a.end_reason);
  if (s.suspicions.size() > 1) text += fmt::format("; {} before it", s.suspicions.size() - 1);
  line(out, "suspected", text);
}

/// Alerts of incidents that another alert reports, with the series of that one.
using IncidentSpeakers = std::map<const Alert*, const SeriesView*>;

IncidentSpeakers is_reported_elsewhere(const View& view) {
  std::vector<AlertOf> all;
  std::vector<const SeriesView*> owners;
  for (const SeriesView& s : view.series)
    for (const Alert& alert : s.alerts) {
      all.push_back({s.key, alert});
      owners.push_back(&s);
    }
  IncidentSpeakers out;
  for (const Incident& incident : incidents_of(all))
    for (const std::size_t i : incident.members)
      if (i != incident.speaks) out.emplace(&all[i].alert, owners[incident.speaks]);
  return out;
}

/// "GPU 0", "pid 42", "GPU 0 [allocated to tensors]".
std::string short_words(const SeriesView& s) {
  std::string words = s.key.pid == 0 ? short_device_words(s) : fmt::format("pid {}", s.key.pid);
  const Metric metric = s.key.metric;
  if (metric == Metric::device_used || metric == Metric::process_used) return words;
  return fmt::format("{} [{}]", words, metric_words(metric));
}

void alert_lines(std::string& out, const SeriesView& s, const IncidentSpeakers& elsewhere, const View& view) {
  const std::size_t from = s.alerts.size() > kMaxAlertLines ? s.alerts.size() - kMaxAlertLines : 0;
  if (from > 0) line(out, "alerts", fmt::format("{} earlier ones are in {}", from, name_of(Option::all_alerts)));
  for (std::size_t i = from; i < s.alerts.size(); ++i) {
    const Alert& a = s.alerts[i];
    const AlertWords words = alert_words(a, view.scale);
    std::string text = fmt::format("{} raised {}", words.what, view.moment(a.raised));
    if (const auto whole = elsewhere.find(&a); whole != elsewhere.end()) {
      line(out, "alert", text + ", the same leak as in the alert of " + short_words(*whole->second));
      continue;
    }
    if (!words.figures.empty()) text += ", " + words.figures;
    text += fmt::format("; highest severity {}; ", to_string(a.severity));
    line(out, "alert", text + (a.cleared ? fmt::format("ended {}: ", view.moment(*a.cleared)) : "") + words.ended);
  }
}

/// Consecutive facts with the same label show it only once.
void fact_lines(std::string& out, const std::vector<Fact>& facts) {
  std::string_view last;
  for (const Fact& fact : facts) {
    line(out, fact.label == last ? "" : fact.label, fact.text);
    last = fact.label;
  }
}

/// " over 1h 00m, every 5s"; nothing for a single sample. If the samples are not at the usual interval throughout,
/// adds that.
std::string sampling(const SeriesView& s, const Scale& scale) {
  const double length_s = s.first && s.last ? seconds_between(*s.first, *s.last) : 0.0;
  if (length_s <= 0) return {};
  std::string out = " over " + scale.duration(length_s);
  if (s.interval_s <= 0 || s.samples < 2) return out;
  constexpr double kAlike = 0.1;
  const double intervals = static_cast<double>(s.samples - 1);
  const double missing_s = length_s - intervals * s.interval_s;
  if (-missing_s > kAlike * length_s)
    return out + fmt::format(", every {} on average", scale.duration(length_s / intervals));
  out += ", every " + scale.duration(s.interval_s);
  if (missing_s > kAlike * length_s) out += fmt::format(" except for {} without samples", scale.duration(missing_s));
  return out;
}

void details(std::string& out, const SeriesView& s, const ConclusionWords& words, const IncidentSpeakers& elsewhere,
             const View& view) {
  line(out, "used",
       fmt::format("{} {}, peak {}; {}{}", used(s, view.scale), s.ended || s.paused ? "at its end" : "now",
                   view.scale.bytes(s.peak_bytes), format_count(s.samples, "sample"), sampling(s, view.scale)));
  fact_lines(out, words.facts);
  fact_lines(out, words.advice);
  alert_lines(out, s, elsewhere, view);
  suspicion_line(out, s, view);
  for (const Fact& other : words.dissent)
    if (other.label == "dissent") line(out, other.label, other.text);
  for (const std::string& why : s.explain) line(out, &why == s.explain.data() ? "explain" : "", why);
  if (s.key.pid == 0 && !is_rest(s) && !s.device.capacity_bytes)
    line(out, "capacity",
         fmt::format("unknown, so the time to out-of-memory cannot be predicted; pass {}, for example {}",
                     name_of(Option::capacity), example_of(Option::capacity)));
  if (!words.next.empty()) line(out, "next", words.next);
}

/// Explains the words and signs of the judge's figures, below the last of them.
void explain_key(std::string& out, const View& view) {
  const bool by_scale = std::any_of(view.series.begin(), view.series.end(), [](const SeriesView& s) {
    return std::any_of(s.explain.begin(), s.explain.end(),
                       [](const std::string& l) { return l.starts_with("scale "); });
  });
  if (!by_scale) return;
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kKey = {{
      {"scale", "memory in stretches of this length: the lowest value of each is its floor, the highest its peak"},
      {"spans", "stretches in the window of the rise; new highs: those whose floor is above all earlier ones"},
      {"nats", "evidence that the rise is not due to chance: the odds are e to this power"},
      {"centroid", "where in the window the growth lies, 0 to 1: 0.5 is steady, less is settling; +- its error"},
      {"rivals",
       "weights of other explanations, where a leak has 1: noise, warm-up, cycle, churn of jobs, time of day"},
      {"clockwork", "how much steps at regular intervals support a leak; 1: not at all"},
      {"quiet", "for how long the floor did not move before the rise"},
      {"P", "probability of a leak at this scale, with all rivals taken into account"},
      {"last words",
       "whether peaks also rise to new highs, whether they still rise, and whether they rise by enough (material) for "
       "an alert"},
  }};
  out += "\nKey to explain (formulas: docs/detectors/judge.md)\n";
  for (const auto& [word, meaning] : kKey) line(out, word, meaning);
}

/// "0 of 98 leak", if there are too many to read each.
void summary(std::string& out, const View& view) {
  if (view.series.size() > kMaxBriefLines) {
    const auto leaks =
        std::count_if(view.series.begin(), view.series.end(), [](const SeriesView& s) { return has_leaked(s); });
    out += fmt::format("{} of {} leak{}\n", leaks, view.series.size(), leaks == 1 ? "s" : "");
  }
}

std::string render(const View& view, const ReportStyle& style) {
  std::string out;
  for (const std::string& file : view.files) out += printable(file) + '\n';
  summary(out, view);
  const IncidentSpeakers elsewhere = is_reported_elsewhere(view);
  bool shown_before = false;
  std::size_t brief = 0;
  for (const SeriesView& s : view.series) {
    const bool full = worth_details(s);
    if (!full && (is_rest(s) || ++brief > kMaxBriefLines)) continue;
    if (full && (shown_before || !view.files.empty())) out += '\n';
    const ConclusionWords words = conclusion_words(view, s);
    out += headline(view, s, words, style);
    if (full) details(out, s, words, elsewhere, view);
    shown_before = true;
  }
  if (brief > kMaxBriefLines)
    out += fmt::format("and {} more process{} without a sign of a leak; {} lists all\n", brief - kMaxBriefLines,
                       brief - kMaxBriefLines == 1 ? "" : "es", name_of(Option::json));
  if (!view.notices.empty()) out += "\nevents\n";
  for (const Notice& n : view.notices) out += fmt::format("  {}  {}\n", view.moment(n.time), printable(n.text));
  if (view.skipped_lines > 0) {
    out += fmt::format("\n{} line{} could not be read and {} skipped\n", view.skipped_lines,
                       view.skipped_lines == 1 ? "" : "s", view.skipped_lines == 1 ? "was" : "were");
    for (const std::string& skipped : view.first_skipped) out += "  " + printable(skipped) + '\n';
    if (view.skipped_lines > view.first_skipped.size() && !view.first_skipped.empty())
      out += fmt::format("  and {} more\n", view.skipped_lines - view.first_skipped.size());
  }
  for (const std::string& warning : view.warnings)
    out += toned("warning:", Tone::notice, style) + ' ' + printable(warning) + '\n';
  explain_key(out, view);
  return out;
}

}  // namespace

extern const ReportInfo text_report;
const ReportInfo text_report{"text", "for people: one headline per series, with the reasons below it", render};

}  // namespace vramtrack
