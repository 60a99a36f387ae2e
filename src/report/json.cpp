// The JSON report: one object per line, one line per series (docs/formats/analysis.md).
#include "report/json.hpp"

#include "core/json.hpp"
#include "report/conclusion_words_json.hpp"
#include "report/fields_json.hpp"
#include "report/report.hpp"

namespace vramtrack {
namespace {

using json = Json;

using fields::LineClock;
using fields::seconds;

LineClock clock_of(const View& view) {
  std::optional<Timestamp> start;
  for (const SeriesView& s : view.series)
    if (s.first && (!start || *s.first < *start)) start = s.first;
  return {start.value_or(Timestamp{}), view.clock_is_relative};
}

json series_json(const SeriesView& s) {
  json out = {{"metric", to_string(s.key.metric)}, {"device", s.key.device_id}};
  out["index"] = s.device.index ? json(*s.device.index) : json(nullptr);
  out["name"] = fields::text_or_null(s.device.name);
  if (s.device.shares_host_memory) out["shares_host_memory"] = true;
  out["pid"] = s.key.pid != 0 ? json(s.key.pid) : json(nullptr);
  out["command"] = s.process ? fields::text_or_null(s.process->command.empty() ? s.process->name : s.process->command)
                             : json(nullptr);
  if (!s.key.host.empty()) out["host"] = s.key.host;
  return out;
}

json alert_words_line(const Alert& alert, const LineClock& clock, const Scale& scale) {
  json out = fields::alert_line(alert, clock);
  out["told"] = conclusion_words_json(alert_words(alert, scale));
  return out;
}

/// Bytes that are not UTF-8 (a command line may contain any) become U+FFFD; nothing throws.
std::string dump(const json& value) {
  return json_text(value) + '\n';
}

std::string render(const View& view, const ReportStyle&) {
  const LineClock clock = clock_of(view);
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
    if (s.paused && s.last) row["lost_at"] = clock.date(s.last);
    const Conclusion conclusion(view, s);
    row["leaked"] = has_leaked(s);
    row["verdict"] = fields::verdict_line(conclusion, clock);
    row["told"] = conclusion_words_json(conclusion_words(view, s));
    if (s.headroom && s.headroom->is_news()) row["headroom"] = headroom_json(s, view.scale);
    if (s.wall) row["wall"] = wall_json(s);
    if (s.host) row["host_memory"] = host_json(s);
    if (s.still_holds) {
      row["still_holds"] = {{"ran_out", clock.date(s.still_holds->ran_out)}};
      row["still_holds"]["unused_bytes"] =
          s.still_holds->unused_bytes ? json(*s.still_holds->unused_bytes) : json(nullptr);
    }
    if (s.mark_growth) row["mark_growth"] = mark_growth_json(s);
    if (s.stall) row["stall"] = fields::stall_line(*s.stall, clock);
    row["alerts"] = json::array();
    for (const Alert& a : s.alerts) row["alerts"].push_back(alert_words_line(a, clock, view.scale));
    row["suspicions"] = json::array();
    for (const Alert& a : s.suspicions) row["suspicions"].push_back(fields::alert_line(a, clock));
    if (s.key.metric == Metric::device_used || !s.runs.empty()) {
      row["runs"] = json::array();
      for (const Run& run : s.runs) row["runs"].push_back(fields::run_line(run, clock));
    }
    row["warnings"] = warnings;
    row["paging"] = s.paging.empty() ? json(nullptr) : json(s.paging);
    if (!s.explain.empty()) row["explain"] = s.explain;
    out += dump(fields::line_in_scale(std::move(row), view.scale));
  }
  return out;
}

}  // namespace

std::string alert_json(const View& view, const SeriesView& series, const Alert& alert, AlertNews news) {
  const LineClock clock = clock_of(view);
  json row = {{"schema", "vramtrack.alert.v1"}, {"event", to_string(news)}, {"series", series_json(series)}};
  row["alert"] = alert_words_line(alert, clock, view.scale);
  row["because"] = news == AlertNews::raised      ? alert.finding.because
                   : news == AlertNews::escalated ? series.verdict.finding.because
                                                  : alert.end_reason;
  row["verdict"] = fields::verdict_line(Conclusion(view, series), clock);
  row["told"] = conclusion_words_json(conclusion_words(view, series));
  return dump(fields::line_in_scale(std::move(row), view.scale));
}

std::string event_json(const Event& event, bool clock_is_relative) {
  json row = {{"schema", "vramtrack.event.v1"}};
  row["time"] = clock_is_relative ? json(nullptr) : json(iso8601(event.time));
  row["event"] = Event::kKindNames[static_cast<std::size_t>(event.kind)];
  row["device"] = fields::text_or_null(event.device_id);
  if (!event.host.empty()) row["host"] = event.host;
  row["code"] = event.kind == Event::Kind::xid        ? json(event.xid)
                : event.kind == Event::Kind::capacity ? json(event.capacity_bytes)
                                                      : json(nullptr);
  row["text"] = event.text;
  return dump(row);
}

extern const ReportInfo json_report;
const ReportInfo json_report{"json", "for programs: one object per line, one line per series (vramtrack.analysis.v1)",
                             render};

std::string program_json(const Program& program, const std::vector<double>& traced_bytes,
                         const std::optional<std::vector<RoomOnDevice>>& room) {
  const auto whole_bytes = [](double bytes) { return static_cast<std::uint64_t>(bytes); };
  json out = {{"schema", "vramtrack.program.v1"}, {"id", program.key}, {"name", fields::text_or_null(program.name)}};
  out["user"] = fields::text_or_null(program.user);
  out["first"] = iso8601(program.first);
  out["last"] = iso8601(program.last);
  out["runs"] = program.runs;
  out["leaked"] = program.leaked;
  out["out_of_memory"] = program.out_of_memory;
  out["recent"] = json::array();
  for (const FinishedRun& run : program.recent) {
    json curve = json::array();
    for (std::size_t i = 0; i < run.points; ++i)
      curve.push_back(
          {{"age_s", FinishedRun::age_s(i)}, {"floor_bytes", whole_bytes(static_cast<double>(run.floor_bytes[i]))}});
    out["recent"].push_back({{"begin", iso8601(run.begin)},
                             {"end", iso8601(run.end)},
                             {"outcome", to_string(run.outcome)},
                             {"warm_up_s", run.seen_from_start ? json(seconds(run.warm_up_s)) : json(nullptr)},
                             {"settled_bytes", whole_bytes(run.settled_bytes)},
                             {"peak_bytes", whole_bytes(run.peak_bytes)},
                             {"curve", std::move(curve)}});
  }
  if (!traced_bytes.empty()) {
    out["traced_peak_bytes"] = json::array();
    for (const double bytes : traced_bytes) out["traced_peak_bytes"].push_back(whole_bytes(bytes));
  }
  if (room) {
    out["devices"] = json::array();
    for (const RoomOnDevice& one : *room)
      out["devices"].push_back({{"id", one.id},
                                {"index", one.index ? json(*one.index) : json(nullptr)},
                                {"free_bytes", whole_bytes(one.free_bytes)},
                                {"short_bytes", whole_bytes(one.short_bytes)}});
  }
  return dump(out);
}

}  // namespace vramtrack
