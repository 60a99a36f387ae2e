#include "agent/server/api_json.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "act/channel.hpp"
#include "core/json.hpp"
#include "core/mark.hpp"
#include "core/printable.hpp"
#include "report/fields_json.hpp"
#include "report/health.hpp"

namespace vramtrack::agent {
namespace {

using fields::json;

std::string dump(const json& value) {
  return json_text(value);
}

json acknowledgement_object(const Acknowledgement& a) {
  return {{"time", exact_time(a.time)}, {"by", a.by}, {"note", a.note}};
}

/// Settings with possibly secret values: those of the notification channels, and files that hold tokens.
bool is_secret(const Setting& setting) {
  return act::is_channel_secret(setting.name()) || setting.unit == kTokenFile;
}

/// The origin of a value without the file name, because paths are private.
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
  out.update(fields::exact_line(&Positions::status, v.finding, v));
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

std::string version_json(const ApiConfig& config) {
  return dump({{"name", "vramtrack"},
               {"version", config.version},
               {"api", "v1"},
               {"host", config.host},
               {"node", config.node},
               {"pid", config.pid},
               {"started", exact_time(config.started)},
               {"simulated", config.simulated.empty() ? json(nullptr) : json(config.simulated)}});
}

std::string status_json(const Snapshot* snapshot, const ApiConfig& config, const MaySeeCommand& may_see,
                        const std::vector<ProbedProcess>& probed, std::size_t streams, std::size_t silenced) {
  json out = {{"schema", "vramtrack.status.v1"},
              {"time", snapshot != nullptr ? json(exact_time(snapshot->view->time)) : json(nullptr)},
              {"host", config.host},
              {"version", config.version},
              {"started", exact_time(config.started)},
              {"interval_s", config.layers.config().watch.interval_seconds},
              {"simulated", config.simulated.empty() ? json(nullptr) : json(config.simulated)},
              {"recording", !config.store_path.empty() && (snapshot == nullptr || !snapshot->own.store_failing)},
              {"sources", config.sources},
              {"severity", "ok"},
              {"alerts_standing", 0},
              {"alerts_silenced", silenced},
              {"devices", json::array()},
              {"probed_pids", json::array()},
              {"own", nullptr}};
  for (const ProbedProcess& one : probed) out["probed_pids"].push_back(one.pid);
  if (snapshot == nullptr) return dump(out);
  Severity worst = Severity::ok;
  std::vector<const SeriesView*> all;
  for (const SeriesView& s : snapshot->view->series) {
    if (s.key.metric == Metric::device_used) out["devices"].push_back(device_status(*snapshot->view, s, may_see));
    if (!s.ended) worst = std::max(worst, s.verdict.severity);
    all.push_back(&s);
  }
  out["severity"] = to_string(worst);
  out["alerts_standing"] = standing(incidents_of(all));
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

namespace {

/// Writes the name, and the values with `put`.
template <class Values, class Put>
void add_column(std::string& out, std::string_view name, const Values& values, const Put& put) {
  fmt::format_to(std::back_inserter(out), R"("{}":[)", name);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ',';
    put(values[i]);
  }
  out += ']';
}

}  // namespace

// The longest history has 800,000 numbers. As a tree, they would take five times the memory of the text.
std::string history_json(const HistoryQuery& query, const History& history) {
  std::size_t points = 0;
  for (const HistoryColumns& c : history.series) points += c.time_s.size();
  std::string out;
  out.reserve(points * kJsonBytesAPoint + query.keys.size() * 256 + 256);
  const auto into = std::back_inserter(out);
  const auto whole = [&](std::uint64_t bytes) { fmt::format_to(into, "{}", bytes); };
  const auto rounded = [&](double bytes) { fmt::format_to(into, "{}", std::llround(bytes)); };
  const auto milliseconds = [&](double time_s) { fmt::format_to(into, "{}", std::round(time_s * 1000) / 1000); };
  fmt::format_to(into, R"({{"from":{},"resolution":"{}","series":[)", dump(exact_time(query.range.from)),
                 to_string(history.grain));
  for (std::size_t i = 0; i < query.keys.size(); ++i) {
    const HistoryColumns& c = history.series[i];
    fmt::format_to(into, R"({}{{"key":{},)", i > 0 ? "," : "", dump(series_key_text(query.keys[i])));
    add_column(out, "max", c.max, whole);
    out += ',';
    add_column(out, "mean", c.mean, rounded);
    out += ',';
    add_column(out, "min", c.min, whole);
    out += ',';
    add_column(out, "t", c.time_s, milliseconds);
    out += '}';
  }
  fmt::format_to(into, R"(],"step_s":{},"to":{}}})", dump(history.step_s), dump(exact_time(query.range.to)));
  return out;
}

std::string gauges_json(const std::string& device_id, const HistoryRange& range, const GaugeHistory& history) {
  std::string out;
  const auto into = std::back_inserter(out);
  const auto figure = [&](const std::optional<double>& value) {
    value ? fmt::format_to(into, "{}", *value) : fmt::format_to(into, "null");
  };
  fmt::format_to(into, R"({{"device":{},"from":{},)", dump(device_id), dump(exact_time(range.from)));
  add_column(out, "busy_ratio", history.busy, figure);
  out += ',';
  add_column(out, "power_watts", history.power_watts, figure);
  out += ',';
  add_column(out, "sm_clock_hertz", history.sm_clock_hertz, figure);
  out += ',';
  add_column(out, "t", history.time_s, [&](double time_s) { fmt::format_to(into, "{}", time_s); });
  out += ',';
  add_column(out, "temperature_celsius", history.temperature_celsius, figure);
  fmt::format_to(into, R"(,"step_s":{},"to":{}}})", dump(history.step_s), dump(exact_time(range.to)));
  return out;
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

std::vector<Incident> incidents_of(const std::vector<KnownAlert>& alerts) {
  std::vector<AlertOf> all;
  all.reserve(alerts.size());
  for (const KnownAlert& a : alerts) all.push_back({a.key, a.alert});
  return vramtrack::incidents_of(all);
}

std::string alerts_json(std::optional<Timestamp> time, const std::vector<KnownAlert>& alerts,
                        const FindAcknowledgement& acknowledged, const FindSilence& silence) {
  json all = json::array();
  std::vector<const Incident*> of(alerts.size());
  const std::vector<Incident> incidents = incidents_of(alerts);
  for (const Incident& incident : incidents)
    for (const std::size_t i : incident.members) of[i] = &incident;
  for (std::size_t i = 0; i < alerts.size(); ++i) {
    const KnownAlert& a = alerts[i];
    const KnownAlert& speaks = alerts[of[i]->speaks];
    json one = json::parse(alert_object_json(a.key, a.alert)).value_or(nullptr);
    one["key"] = series_key_text(a.key);
    one["device"] = {{"id", a.key.device_id},
                     {"index", a.device.index ? json(*a.device.index) : json(nullptr)},
                     {"name", a.device.name}};
    one["pid"] = a.key.pid != 0 ? json(a.key.pid) : json(nullptr);
    one["process"] = a.process.empty() ? json(nullptr) : json(a.process);
    const auto ack = acknowledged(one["id"].get<std::string>());
    one["acknowledged"] = ack ? acknowledgement_object(*ack) : json(nullptr);
    const auto silenced = a.subject ? silence(*a.subject) : std::nullopt;
    one["silenced"] = silenced ? json::parse(silence_json(*silenced)).value_or(nullptr) : json(nullptr);
    one["incident"] = of[i]->id;
    one["told_with"] = of[i]->speaks == i ? json(nullptr) : json(alert_id(speaks.key, speaks.alert.raised));
    all.push_back(std::move(one));
  }
  return dump({{"time", time ? json(exact_time(*time)) : json(nullptr)}, {"alerts", all}});
}

std::string silences_json(const std::vector<Silence>& silences, Timestamp now) {
  json all = json::array();
  for (const Silence& s : silences) {
    json one = json::parse(silence_json(s)).value_or(nullptr);
    one["state"] = s.begins <= now ? "active" : "pending";
    all.push_back(std::move(one));
  }
  return dump({{"time", exact_time(now)}, {"silences", all}});
}

std::string probed_json(const std::vector<ProbedProcess>& processes) {
  json all = json::array();
  for (const ProbedProcess& one : processes) all.push_back({{"pid", one.pid}, {"user", user_name(one.uid)}});
  return dump({{"processes", all}});
}

Result<Acknowledgement> parse_acknowledgement(std::string_view body) {
  const json value = json::parse(body).value_or(nullptr);
  if (!value.is_object()) return fail(R"(the body must be a JSON object such as {"by": "alice", "note": "known"})");
  Acknowledgement out;
  const auto text = [&](const char* name, std::size_t most, std::string& into) -> Status {
    const json* const given = value.find(name);
    if (given == nullptr || given->is_null()) return {};
    if (!given->is_string() || given->text().size() > most)
      return fail(fmt::format("'{}' must be a string of at most {} bytes", name, most));
    into = given->text();
    return {};
  };
  if (Status read = text("by", 64, out.by); !read) return fail(read.error());
  if (Status read = text("note", 512, out.note); !read) return fail(read.error());
  return out;
}

std::string acknowledgement_json(const Acknowledgement& acknowledgement) {
  return dump(acknowledgement_object(acknowledgement));
}

Result<AskedMark> asked_mark(const std::string& body) {
  constexpr std::size_t kMostPids = 4096;
  const json value = json::parse(body).value_or(nullptr);
  const json* const one = value.find("pid");
  const json* const several = value.find("pids");
  const json* const marked = value.find("mark");
  if ((one == nullptr) == (several == nullptr) || marked == nullptr || !marked->is_string())
    return fail(R"(send {"pid": 4242, "mark": "step=1200"})");
  AskedMark out;
  std::size_t count = 0;
  const auto take = [&count](const json& pid, std::vector<std::uint32_t>& into) -> Status {
    const std::uint64_t number = pid.is_number_unsigned() ? pid.get<std::uint64_t>() : 0;
    if (number == 0 || number > UINT32_MAX) return fail("there is no such pid");
    if (++count > kMostPids) return fail("at most 4096 pids can be given; pass only the pid you mean");
    into.push_back(static_cast<std::uint32_t>(number));
    return {};
  };
  if (one != nullptr) {
    if (const Status taken = take(*one, out.pids.emplace_back()); !taken) return tl::unexpected(taken.error());
  } else {
    if (!several->is_array()) return fail("pids are groups of pids: [[4242], [7, 9]]");
    for (const json& group : *several) {
      if (!group.is_array()) return fail("pids are groups of pids: [[4242], [7, 9]]");
      std::vector<std::uint32_t>& pids = out.pids.emplace_back();
      for (const json& pid : group)
        if (const Status taken = take(pid, pids); !taken) return tl::unexpected(taken.error());
    }
  }
  const std::string& text = marked->text();
  if (const auto mark = parse_mark(text); !mark) return tl::unexpected(mark.error());
  out.text = printable(text);
  return out;
}

}  // namespace vramtrack::agent
