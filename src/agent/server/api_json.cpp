#include "agent/server/api_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "report/fields_json.hpp"
#include "report/health.hpp"

namespace vramtrack::agent {
namespace {

using fields::json;

std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

json acknowledgement_object(const Acknowledgement& a) {
  return {{"time", exact_time(a.time)}, {"by", a.by}, {"note", a.note}};
}

/// Settings whose values may be secret: addresses, programs with their arguments, and what is called so. Rather one too
/// many than one too few.
bool is_secret(const Setting& setting) {
  constexpr std::array<std::string_view, 6> kWords = {"token", "secret", "password", "webhook", "slack", "exec"};
  return setting.unit == "URL" || setting.unit.find("program") != std::string_view::npos ||
         std::any_of(kWords.begin(), kWords.end(),
                     [&](auto word) { return setting.key.find(word) != std::string_view::npos; });
}

/// Who set a value; not in which file: paths are nobody's business.
std::string_view origin_kind(std::string_view origin) {
  if (origin == "default") return "default";
  if (origin.rfind("VRAMTRACK_", 0) == 0) return "environment";
  return origin.rfind("--", 0) == 0 ? "command line" : "file";
}

json device_status(const View& view, const SeriesView& d, const MaySeeCommand& may_see) {
  std::uint64_t processes = 0;
  std::uint64_t held = 0;
  for (const SeriesView& s : view.series) {
    if (s.key.metric != Metric::process_used || s.key.device_id != d.key.device_id || s.ended) continue;
    ++processes;
    held += s.used_bytes;
  }
  const Verdict& v = d.verdict;
  json out = {{"key", series_key_text(d.key)},
              {"id", d.key.device_id},
              {"index", d.device.index ? json(*d.device.index) : json(nullptr)},
              {"name", d.device.name},
              {"capacity_bytes", d.device.capacity_bytes ? json(*d.device.capacity_bytes) : json(nullptr)},
              {"used_bytes", d.paused ? json(nullptr) : json(d.used_bytes)},
              {"processes", processes},
              {"processes_bytes", held},
              {"unattributed_bytes", d.paused || held > d.used_bytes ? json(nullptr) : json(d.used_bytes - held)},
              {"utilisation_ratio", d.utilisation_ratio ? json(*d.utilisation_ratio) : json(nullptr)},
              {"health", to_string(judge_health(d, view.time).condition)}};
  out.update(fields::exact_line(&Places::status, v.finding, v));
  if (v.suspect) {
    out["suspect"].erase("pid_start_ticks");
    out["suspect"]["command"] =
        visible_command(view, d.key.host, v.suspect->pid, v.suspect->pid_start_ticks, v.suspect->command, may_see);
  }
  return out;
}

json value_json(const SettingValue& value) {
  return std::visit([](const auto& v) { return json(v); }, value);
}

}  // namespace

std::string error_json(std::string_view code, std::string_view message) {
  return dump({{"error", {{"code", code}, {"message", message}}}});
}

std::string version_json(const ApiConfig& config) {
  return dump({{"name", "vramtrack"},
               {"version", config.version},
               {"api", "v1"},
               {"host", config.host},
               {"pid", config.pid},
               {"started", exact_time(config.started)},
               {"simulated", config.simulated.empty() ? json(nullptr) : json(config.simulated)}});
}

std::string status_json(const Snapshot* snapshot, const ApiConfig& config, const MaySeeCommand& may_see,
                        std::size_t streams) {
  json out = {{"schema", "vramtrack.status.v1"},
              {"time", snapshot != nullptr ? json(exact_time(snapshot->view->time)) : json(nullptr)},
              {"host", config.host},
              {"version", config.version},
              {"started", exact_time(config.started)},
              {"interval_s", config.layers.config().watch.interval_seconds},
              {"simulated", config.simulated.empty() ? json(nullptr) : json(config.simulated)},
              {"recording", !config.store_path.empty()},
              {"sources", config.sources},
              {"severity", "ok"},
              {"alerts_standing", 0},
              {"devices", json::array()},
              {"own", nullptr}};
  if (snapshot == nullptr) return dump(out);
  Severity worst = Severity::ok;
  std::uint64_t standing = 0;
  for (const SeriesView& s : snapshot->view->series) {
    if (s.key.metric == Metric::device_used) out["devices"].push_back(device_status(*snapshot->view, s, may_see));
    if (!s.ended) worst = std::max(worst, s.verdict.severity);
    for (const Alert& a : s.alerts)
      if (a.ended == AlertEnd::standing) ++standing;
  }
  out["severity"] = to_string(worst);
  out["alerts_standing"] = standing;
  const OwnCost& own = snapshot->own;
  double poll_s = 0;
  for (const SourceCost& s : own.sources) poll_s += s.poll_s;
  out["own"] = {{"cpu_s", own.cpu_s},
                {"resident_bytes", own.resident_bytes},
                {"polls", own.polls},
                {"late_polls", own.late_polls},
                {"poll_s", own.polls > 0 ? json(poll_s / static_cast<double>(own.polls)) : json(nullptr)},
                {"clients", streams},
                {"store_bytes", own.recording ? json(own.store_bytes) : json(nullptr)}};
  return dump(out);
}

std::string tick_json(const View& view) {
  json used = json::object();
  for (const SeriesView& s : view.series)
    if (!s.ended && !s.paused) used[series_key_text(s.key)] = s.used_bytes;
  return dump({{"time", exact_time(view.time)}, {"used_bytes", used}});
}

std::string config_json(const LayeredConfig& layers) {
  json all = json::array();
  for (const Setting& setting : settings()) {
    const bool hidden = is_secret(setting);
    all.push_back({{"name", setting.name()},
                   {"value", hidden ? json(nullptr) : value_json(setting.get(layers.config()))},
                   {"hidden", hidden},
                   {"unit", setting.unit},
                   {"origin", origin_kind(layers.origin(setting))},
                   {"help", setting.help}});
  }
  return dump({{"settings", all}});
}

std::string history_json(const HistoryQuery& query, const History& history) {
  json all = json::array();
  for (std::size_t i = 0; i < query.keys.size(); ++i) {
    const HistoryColumns& c = history.series[i];
    std::vector<std::uint64_t> mean;
    mean.reserve(c.mean.size());
    for (const double m : c.mean) mean.push_back(static_cast<std::uint64_t>(std::llround(m)));
    json times = json::array();
    for (const double t : c.time_s) times.push_back(std::round(t * 1000) / 1000);
    all.push_back(
        {{"key", series_key_text(query.keys[i])}, {"t", times}, {"min", c.min}, {"mean", mean}, {"max", c.max}});
  }
  return dump({{"from", exact_time(query.from)},
               {"to", exact_time(query.to)},
               {"resolution", to_string(history.grain)},
               {"step_s", history.step_s},
               {"series", all}});
}

std::string series_json(const std::vector<KnownSeries>& series) {
  json all = json::array();
  for (const KnownSeries& s : series)
    all.push_back({{"key", series_key_text(s.key)},
                   {"metric", to_string(s.key.metric)},
                   {"device", s.key.device_id},
                   {"pid", s.key.pid != 0 ? json(s.key.pid) : json(nullptr)},
                   {"first", exact_time(s.first)},
                   {"last", exact_time(s.last)}});
  return dump({{"series", all}});
}

std::vector<AlertOf> alerts_of(const std::vector<KnownAlert>& alerts) {
  std::vector<AlertOf> out;
  out.reserve(alerts.size());
  for (const KnownAlert& a : alerts) out.push_back({a.key, a.alert});
  return out;
}

std::string alerts_json(std::optional<Timestamp> time, const std::vector<KnownAlert>& alerts,
                        const FindAcknowledgement& acknowledged) {
  json all = json::array();
  const auto with = told_with(alerts_of(alerts));
  for (std::size_t i = 0; i < alerts.size(); ++i) {
    const KnownAlert& a = alerts[i];
    const KnownAlert& told = alerts[with[i]];
    json one = json::parse(alert_object_json(a.key, a.alert));
    one["key"] = series_key_text(a.key);
    one["device"] = {{"id", a.key.device_id},
                     {"index", a.device.index ? json(*a.device.index) : json(nullptr)},
                     {"name", a.device.name}};
    one["pid"] = a.key.pid != 0 ? json(a.key.pid) : json(nullptr);
    one["process"] = a.process.empty() ? json(nullptr) : json(a.process);
    const auto ack = acknowledged(one["id"].get<std::string>());
    one["acknowledged"] = ack ? acknowledgement_object(*ack) : json(nullptr);
    one["told_with"] = with[i] == i ? json(nullptr) : json(alert_id(told.key, told.alert.raised));
    all.push_back(std::move(one));
  }
  return dump({{"time", time ? json(exact_time(*time)) : json(nullptr)}, {"alerts", all}});
}

Result<Acknowledgement> parse_acknowledgement(std::string_view body) {
  const json value = json::parse(body.begin(), body.end(), nullptr, false);
  if (!value.is_object()) return fail(R"(the body must be a JSON object such as {"by": "alice", "note": "known"})");
  Acknowledgement out;
  const auto text = [&](const char* name, std::size_t most, std::string& into) -> Status {
    const auto it = value.find(name);
    if (it == value.end() || it->is_null()) return {};
    if (!it->is_string() || it->get_ref<const std::string&>().size() > most)
      return fail(fmt::format("'{}' must be a string of at most {} bytes", name, most));
    into = it->get<std::string>();
    return {};
  };
  if (Status read = text("by", 64, out.by); !read) return fail(read.error());
  if (Status read = text("note", 512, out.note); !read) return fail(read.error());
  return out;
}

std::string acknowledgement_json(const Acknowledgement& acknowledgement) {
  return dump(acknowledgement_object(acknowledgement));
}

}  // namespace vramtrack::agent
