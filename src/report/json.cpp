// The JSON report: one object a line, one per series (docs/formats/analysis.md).
#include "report/json.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "report/report.hpp"

namespace vramtrack {
namespace {

using json = nlohmann::ordered_json;

/// Always finite, and to six significant digits: what a figure means, the same on every compiler.
double number(double value) {
  if (std::isnan(value)) return 0;
  if (std::isinf(value)) return std::copysign(std::numeric_limits<double>::max(), value);
  if (value == 0) return 0;
  const double magnitude = std::pow(10.0, 5 - std::floor(std::log10(std::abs(value))));
  const double rounded = std::round(value * magnitude) / magnitude;
  return std::isfinite(rounded) ? rounded : value;
}

/// Seconds to the millisecond.
double seconds(double value) {
  return std::isfinite(value) ? std::round(value * 1000) / 1000 : 0;
}

json interval(const Interval& i) {
  return {{"low", number(i.low)}, {"mid", number(i.mid)}, {"high", number(i.high)}};
}

json optional_interval(const std::optional<Interval>& i) {
  return i ? interval(*i) : json(nullptr);
}

json text_or_null(const std::string& text) {
  return text.empty() ? json(nullptr) : json(text);
}

/// Turns times into the two forms of the contract.
struct Clock {
  Timestamp start;
  bool relative = false;
  [[nodiscard]] json date(const std::optional<Timestamp>& t) const {
    return t && !relative ? json(iso8601(*t)) : json(nullptr);
  }
  [[nodiscard]] json offset_s(const std::optional<Timestamp>& t) const {
    return t ? json(seconds(seconds_between(start, *t))) : json(nullptr);
  }
};

Clock clock_of(const View& view) {
  std::optional<Timestamp> start;
  for (const SeriesView& s : view.series)
    if (s.first && (!start || *s.first < *start)) start = s.first;
  return {start.value_or(Timestamp{}), view.clock_is_relative};
}

json series_json(const SeriesView& s) {
  json out = {{"metric", to_string(s.key.metric)}, {"device", s.key.device_id}};
  out["index"] = s.device.index ? json(*s.device.index) : json(nullptr);
  out["name"] = text_or_null(s.device.name);
  out["pid"] = s.key.pid != 0 ? json(s.key.pid) : json(nullptr);
  out["command"] =
      s.process ? text_or_null(s.process->command.empty() ? s.process->name : s.process->command) : json(nullptr);
  if (!s.key.host.empty()) out["host"] = s.key.host;
  return out;
}

json finding_json(const Finding& f) {
  return {{"detector", f.detector},
          {"leak", f.leak},
          {"state", to_string(f.state)},
          {"pattern", to_string(f.pattern)},
          {"confidence", number(std::clamp(f.confidence, 0.0, 1.0))},
          {"growth_bytes_per_s", interval(f.growth_bytes_per_s)},
          {"r_squared", number(f.r_squared)},
          {"oom_in_s", optional_interval(f.oom_in_s)},
          {"because", f.because}};
}

json verdict_json(const Verdict& v, const Clock& clock) {
  const Finding& f = v.finding;
  json out = {{"leak", f.leak},
              {"state", to_string(f.state)},
              {"pattern", to_string(f.pattern)},
              {"spike", f.spike == SpikeOutcome::none ? json(nullptr) : json(to_string(f.spike))},
              {"severity", to_string(v.severity)},
              {"detector", f.detector},
              {"confidence", number(std::clamp(f.confidence, 0.0, 1.0))},
              {"growth_bytes_per_s", interval(f.growth_bytes_per_s)},
              {"r_squared", number(f.r_squared)},
              {"oom_in_s", optional_interval(f.oom_in_s)},
              {"onset", clock.date(f.onset)},
              {"onset_s", clock.offset_s(f.onset)},
              {"because", f.because},
              {"dissent", json::array()},
              {"suspect", nullptr},
              {"framework", text_or_null(v.framework)},
              {"causes", v.causes}};
  for (const Finding& d : v.dissent) out["dissent"].push_back(finding_json(d));
  if (v.suspect)
    out["suspect"] = {{"pid", v.suspect->pid != 0 ? json(v.suspect->pid) : json(nullptr)},
                      {"command", text_or_null(v.suspect->command)},
                      {"share", number(std::clamp(v.suspect->share, 0.0, 1.0))}};
  return out;
}

json alert_body(const Alert& a, const Clock& clock) {
  const Finding& f = a.finding;
  return {{"raised", clock.date(a.raised)},
          {"raised_s", clock.offset_s(a.raised)},
          {"cleared", clock.date(a.cleared)},
          {"cleared_s", clock.offset_s(a.cleared)},
          {"ended", to_string(a.ended)},
          {"leak", f.leak},
          {"pattern", to_string(f.pattern)},
          {"severity", to_string(a.severity)},
          {"confidence", number(std::clamp(f.confidence, 0.0, 1.0))},
          {"growth_bytes_per_s", interval(f.growth_bytes_per_s)},
          {"oom_in_s", optional_interval(f.oom_in_s)}};
}

/// Bytes that are no UTF-8 (a command line may hold any) become U+FFFD; nothing throws.
std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace) + '\n';
}

std::string render(const View& view, const ReportStyle&) {
  const Clock clock = clock_of(view);
  json warnings = json::array();
  for (const std::string& skipped : view.first_skipped) warnings.push_back("skipped " + skipped);
  for (const std::string& warning : view.warnings) warnings.push_back(warning);
  std::string out;
  for (const SeriesView& s : view.series) {
    json row = {{"schema", "vramtrack.analysis.v1"}, {"files", view.files}, {"series", series_json(s)}};
    row["capacity_bytes"] = s.device.capacity_bytes ? json(*s.device.capacity_bytes) : json(nullptr);
    row["samples"] = s.samples;
    row["skipped_lines"] = view.skipped_lines;
    row["start"] = clock.date(s.first);
    row["end"] = clock.date(s.last);
    row["duration_s"] = s.first && s.last ? seconds(seconds_between(*s.first, *s.last)) : 0.0;
    row["interval_s"] = seconds(s.interval_s);
    row["verdict"] = verdict_json(s.verdict, clock);
    row["alerts"] = json::array();
    for (const Alert& a : s.alerts) row["alerts"].push_back(alert_body(a, clock));
    row["warnings"] = warnings;
    if (!s.explain.empty()) row["explain"] = s.explain;
    out += dump(row);
  }
  return out;
}

}  // namespace

std::string alert_json(const View& view, const SeriesView& series, const Alert& alert, AlertNews news) {
  const Clock clock = clock_of(view);
  json row = {{"schema", "vramtrack.alert.v1"}, {"event", to_string(news)}, {"series", series_json(series)}};
  row["alert"] = alert_body(alert, clock);
  row["because"] = news == AlertNews::raised      ? alert.finding.because
                   : news == AlertNews::escalated ? series.verdict.finding.because
                                                  : alert.end_reason;
  row["verdict"] = verdict_json(series.verdict, clock);
  return dump(row);
}

std::string event_json(const Event& event, bool clock_is_relative) {
  json row = {{"schema", "vramtrack.event.v1"}};
  row["time"] = clock_is_relative ? json(nullptr) : json(iso8601(event.time));
  row["event"] = Event::kKindNames[static_cast<std::size_t>(event.kind)];
  row["device"] = text_or_null(event.device_id);
  if (!event.host.empty()) row["host"] = event.host;
  row["code"] =
      event.kind == Event::Kind::xid || event.kind == Event::Kind::capacity ? json(event.code) : json(nullptr);
  row["text"] = event.text;
  return dump(row);
}

extern const ReportInfo json_report;
const ReportInfo json_report{"json", "for programs: one object a line, one per series (vramtrack.analysis.v1)", render};

}  // namespace vramtrack
