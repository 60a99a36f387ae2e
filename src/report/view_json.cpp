// Writing. The fields of findings, verdicts and alerts are those of core/verdict_fields.hpp. Any other new field of
// View needs a line in its *_json here and one in its read_* in view_json_read.cpp; ViewJson.RoundTrip fails without.
#include "report/view_json.hpp"

#include "core/json.hpp"
#include "report/conclusion_words_json.hpp"
#include "report/fields_json.hpp"
#include "report/headline.hpp"
#include "report/health.hpp"
#include "report/trend.hpp"
#include "report/words.hpp"

namespace vramtrack {
namespace {

using fields::json;

using fields::exact;

json alert_object(const SeriesKey& key, const Alert& a, const Scale& scale) {
  json out = {{"id", alert_id(key, a.raised)}};
  out.update(exact(a));
  out["told"] = conclusion_words_json(alert_words(a, scale));
  return out;
}

json verdict_json(const View& view, const std::string& host, const Verdict& v, const MaySeeCommand& may_see) {
  json out = exact(v);
  if (v.suspect)
    out["suspect"]["command"] =
        visible_command(view, host, v.suspect->pid, v.suspect->pid_start_ticks, v.suspect->command, may_see);
  if (v.end)
    out["end"]["command"] = visible_command(view, host, v.end->pid, v.end->pid_start_ticks, v.end->command, may_see);
  return out;
}

json device_json(const DeviceInfo& d) {
  return {{"id", d.id},
          {"index", d.index ? json(*d.index) : json(nullptr)},
          {"name", d.name},
          {"pci_bus_id", d.pci_bus_id},
          {"parent_id", d.parent_id},
          {"capacity_bytes", d.capacity_bytes ? json(*d.capacity_bytes) : json(nullptr)},
          {"shares_host_memory", d.shares_host_memory}};
}

json still_holds_json(const SeriesView& s) {
  if (!s.still_holds) return nullptr;
  return {{"ran_out", exact(s.still_holds->ran_out)}, {"unused_bytes", exact(s.still_holds->unused_bytes)}};
}

json process_json(const ProcessInfo& p, const MaySeeCommand& may_see) {
  const bool hidden = may_see && !may_see(p);
  return {{"pid", p.pid},
          {"start_ticks", p.start_ticks},
          {"user", p.user},
          {"command", hidden ? p.name : p.command},
          {"command_hidden", hidden},
          {"name", p.name},
          {"kind", p.kind},
          {"cgroup", p.cgroup},
          {"container", p.container},
          {"pod", p.pod},
          {"slurm_job", p.slurm_job},
          {"image", p.image},
          {"slurm_job_name", hidden ? "" : p.job_name},
          {"framework", p.framework},
          {"ns_pid", p.ns_pid}};
}

template <class T>
json known(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

json known_figure(const std::optional<double>& value) {
  return value ? exact(*value) : json(nullptr);
}

json ecc_json(const EccErrors& errors) {
  return {{"corrected", known(errors.corrected)}, {"uncorrected", known(errors.uncorrected)}};
}

json throttle_json(const std::optional<ThrottleSet>& reasons) {
  if (!reasons) return nullptr;
  json out = json::array();
  for (std::size_t i = 0; i < kThrottleNames.size(); ++i)
    if (reasons->has(static_cast<Throttle>(i))) out.push_back(kThrottleNames[i]);
  return out;
}

json health_json(const std::optional<DeviceHealth>& health) {
  if (!health) return nullptr;
  const DeviceHealth& h = *health;
  return {{"time", exact(h.time)},
          {"temperature_celsius", known_figure(h.temperature_celsius)},
          {"ecc_enabled", known(h.ecc_enabled)},
          {"ecc_since_load", ecc_json(h.ecc_since_load)},
          {"ecc_lifetime", ecc_json(h.ecc_lifetime)},
          {"remapped_rows", known(h.remapped_rows)},
          {"repair_pending", known(h.repair_pending)},
          {"repair_failed", known(h.repair_failed)},
          {"throttle", throttle_json(h.throttle)},
          {"hears_xids", known(h.hears_xids)}};
}

json gauges_json(const DeviceGauges& g) {
  if (g == DeviceGauges{}) return nullptr;
  return {{"memory_utilisation_ratio", known_figure(g.memory_utilisation_ratio)},
          {"temperature_celsius", known_figure(g.temperature_celsius)},
          {"power_watts", known_figure(g.power_watts)},
          {"power_limit_watts", known_figure(g.power_limit_watts)},
          {"sm_clock_hertz", known_figure(g.sm_clock_hertz)},
          {"fan_ratio", known_figure(g.fan_ratio)}};
}

json load_json(const ProcessLoad& load) {
  if (load == ProcessLoad{}) return nullptr;
  return {{"gpu_ratio", known_figure(load.gpu_ratio)},
          {"cpu_ratio", known_figure(load.cpu_ratio)},
          {"host_bytes", known(load.host_bytes)}};
}

/// Derived values are written too, so that all surfaces agree; they are not read back.
json condition_json(const SeriesView& s, Timestamp now) {
  if (s.key.metric != Metric::device_used) return nullptr;
  const HealthReport report = judge_health(s, now);
  json out = {{"level", to_string(report.condition)}, {"words", health_words(s.health)}, {"problems", json::array()}};
  for (const HealthProblem& p : report.problems)
    out["problems"].push_back({{"level", to_string(p.condition)}, {"text", p.text}, {"next", p.next}});
  return out;
}

json stall_json(const SeriesView& s, const ConclusionWords& words) {
  if (!s.stall) return nullptr;
  json out = exact(*s.stall);
  out["words"] = words.stall;
  out["next"] = stall_next_step(*s.stall, s.key.pid);
  return out;
}

/// The names of lines reveal as much as the command: both are shown to the same clients.
json sites_json(const SeriesView& s, const MaySeeCommand& may_see) {
  json out = json::array();
  if (s.process && may_see && !may_see(*s.process)) return out;
  for (const SiteLifetimes& site : s.sites) {
    json ages = json::array();
    for (const AgedBytes& aged : site.ages)
      ages.push_back({{"youngest_s", exact(aged.youngest_s)},
                      {"oldest_s", exact(aged.oldest_s)},
                      {"allocated_bytes", exact(aged.allocated_bytes)},
                      {"live_bytes", exact(aged.live_bytes)}});
    out.push_back({{"site", site.site},
                   {"live_bytes", exact(site.live_bytes)},
                   {"live_blocks", exact(site.live_blocks)},
                   {"error_bytes", exact(site.error_bytes)},
                   {"idle_s", exact(site.idle_s)},
                   {"ages", std::move(ages)}});
  }
  return out;
}

/// The starting point of the growth line, according to trend_line().
json trend_json(const SeriesView& s) {
  const auto trend = trend_line(s);
  if (!trend) return nullptr;
  return {{"from", exact(trend->from)},
          {"to", exact(trend->to)},
          {"from_bytes", exact(trend->from_bytes)},
          {"to_bytes", exact(trend->to_bytes)}};
}

json headline_json(const View& view, const MaySeeCommand& may_see) {
  const Headline sentence = headline(view, may_see);
  return {{"tone", to_string(sentence.tone)}, {"text", sentence.text}};
}

json series_json(const View& view, const SeriesView& s, const MaySeeCommand& may_see) {
  const ConclusionWords words = conclusion_words(view, s, {.may_see = may_see});
  json out = {
      {"key", series_key_text(s.key)},
      {"id", index_of(s.id)},
      {"metric", to_string(s.key.metric)},
      {"pid", s.key.pid},
      {"pid_start_ticks", s.key.pid_start_ticks},
      {"device", device_json(s.device)},
      {"process", s.process ? process_json(*s.process, may_see) : json(nullptr)},
      {"samples", s.samples},
      {"first", exact(s.first)},
      {"last", exact(s.last)},
      {"interval_s", exact(s.interval_s)},
      {"used_bytes", s.used_bytes},
      {"peak_bytes", s.peak_bytes},
      {"level_bytes", exact(s.level_bytes)},
      {"ended", s.ended},
      {"paused", s.paused},
      {"ignored", s.ignored},
      {"utilisation_ratio", known_figure(s.utilisation_ratio)},
      {"gauges", gauges_json(s.gauges)},
      {"load", load_json(s.load)},
      {"stall", stall_json(s, words)},
      {"headroom", headroom_json(s, view.scale)},
      {"wall", wall_json(s)},
      {"host_memory", host_json(s)},
      {"still_holds", still_holds_json(s)},
      {"mark_growth", mark_growth_json(s)},
      {"unreleased_bytes", s.unreleased_bytes},
      {"sites", sites_json(s, may_see)},
      {"health", health_json(s.health)},
      {"last_xid", s.last_xid
                       ? json{{"time", exact(s.last_xid->time)}, {"code", s.last_xid->code}, {"text", s.last_xid->text}}
                       : json(nullptr)},
      {"condition", condition_json(s, view.time)},
      // Older names of told.forecast, for a leak, and of told.next.
      {"end", s.verdict.finding.leak ? words.forecast : std::string()},
      {"next", words.next},
      {"told", conclusion_words_json(words)},
      {"limit_bytes", known_figure(limit_bytes(view, s))},
      {"trend", trend_json(s)},
      {"verdict", verdict_json(view, s.key.host, s.verdict, may_see)},
      {"paging", s.paging},
      {"alerts", json::array()},
      {"suspicions", json::array()},
      {"runs", exact(s.runs)},
      {"explain", s.explain}};
  if (!s.key.host.empty()) out["host"] = s.key.host;
  for (const Alert& a : s.alerts) out["alerts"].push_back(alert_object(s.key, a, view.scale));
  for (const Alert& a : s.suspicions) out["suspicions"].push_back(alert_object(s.key, a, view.scale));
  return out;
}

}  // namespace

std::string view_json(const View& view, const MaySeeCommand& may_see) {
  json out = {{"schema", "vramtrack.view.v1"},
              {"time", exact(view.time)},
              {"clock_is_relative", view.clock_is_relative},
              {"files", view.files},
              {"headline", headline_json(view, may_see)},
              {"series", json::array()},
              {"notices", json::array()},
              {"skipped_lines", view.skipped_lines},
              {"first_skipped", view.first_skipped},
              {"warnings", view.warnings}};
  for (const SeriesView& s : view.series) out["series"].push_back(series_json(view, s, may_see));
  for (const Notice& n : view.notices) out["notices"].push_back({{"time", exact(n.time)}, {"text", n.text}});
  return json_text(out);
}

std::string alert_object_json(const SeriesKey& key, const Alert& alert) {
  return json_text(alert_object(key, alert, kSecondsAndBytes));
}

}  // namespace vramtrack
