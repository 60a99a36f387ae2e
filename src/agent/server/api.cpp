#include "agent/server/api.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "agent/assets.hpp"
#include "agent/server/api_json.hpp"
#include "agent/server/api_parts.hpp"
#include "agent/server/browser.hpp"
#include "agent/server/guard.hpp"
#include "agent/server/history.hpp"
#include "core/number_text.hpp"
#include "core/option.hpp"
#include "core/order.hpp"
#include "report/view_json.hpp"
#include "store/store.hpp"

namespace vramtrack::agent {
namespace {

using std::chrono::steady_clock;

Response json_response(std::string body, int status = 200) {
  return text_response(status, "application/json", std::move(body));
}

Response json_response(std::shared_ptr<const std::string> body) {
  Response out;
  out.body = std::move(body);
  return out;
}

Response no_store() {
  return error(404, "no_store",
               fmt::format("nothing is recorded: start the agent without {}, or see its log for an error in the store",
                           name_of(Option::no_record)));
}

MaySeeCommand may_see(const Rights& rights) {
  if (rights.all_commands) return {};
  return [user = rights.user](const ProcessInfo& p) { return !user.empty() && p.user == user; };
}

const std::string* parameter(const Request& request, const char* name) {
  const auto it = request.query.find(name);
  return it == request.query.end() ? nullptr : &it->second;
}

/// The alerts of the store and of the view, newest first; those of the view are more recent.
std::vector<KnownAlert> all_alerts(const View* view, const std::string& store_path) {
  std::map<std::string, KnownAlert> by_id;
  if (!store_path.empty())
    if (auto reader = StoreReader::open(store_path)) {
      Catalog catalog;
      if (const auto stored = (*reader)->alerts(catalog))
        for (const Alert& alert : *stored) {
          KnownAlert known;
          known.key = catalog.key(alert.series);
          if (const DeviceInfo* device = catalog.device(device_key(known.key))) known.device = *device;
          if (const ProcessInfo* process = catalog.process(process_key(known.key))) known.process = process->name;
          known.alert = alert;
          by_id[alert_id(known.key, alert.raised)] = std::move(known);
        }
    }
  if (view != nullptr)
    for (const SeriesView& s : view->series)
      for (const Alert& alert : s.alerts)
        by_id[alert_id(s.key, alert.raised)] = {
            s.key, s.device, s.process ? s.process->name : "", alert,
            alert.ended == AlertEnd::standing ? std::optional(silence_subject(*view, s)) : std::nullopt};
  std::vector<KnownAlert> out;
  for (auto& entry : by_id) out.push_back(std::move(entry.second));
  order(out, [](const KnownAlert& a, const KnownAlert& b) { return a.alert.raised > b.alert.raised; });
  return out;
}

/// The paths that are answered besides the dashboard's files.
constexpr std::string_view kPages =
    "/api/v1/version, /api/v1/status, /api/v1/view, /api/v1/events, /api/v1/series, /api/v1/history, /api/v1/gauges, "
    "/api/v1/sites, "
    "/api/v1/alerts, "
    "/api/v1/alerts/{id}/acknowledge, /api/v1/silences, /api/v1/silences/{id}, /api/v1/marks, /api/v1/acts, "
    "/api/v1/acts/off, "
    "/api/v1/config, /metrics and /healthz";

constexpr std::string_view kAcknowledge = "/acknowledge";
constexpr std::string_view kAlerts = "/api/v1/alerts/";
constexpr std::string_view kSilences = "/api/v1/silences";

constexpr std::string_view kActsOff = "/api/v1/acts/off";
constexpr std::string_view kMarks = "/api/v1/marks";

bool is_silences(const std::string& path) {
  return path == kSilences || (path.rfind(kSilences, 0) == 0 && path[kSilences.size()] == '/');
}

/// The refusal of a client that has not read its earlier answers.
Response unread(const Request& request, FairQuota::Answer answer) {
  return answer == FairQuota::Answer::full
             ? refused(503, "busy", "clients have not read the answers they asked for; try again")
             : refused(429, "unread_answers",
                       request.peer.name + " has not read the answers it asked for; read them, then try again");
}

/// The id in /api/v1/alerts/ID/acknowledge; empty if the path has another form.
std::string alert_of_path(const std::string& path) {
  if (path.size() != kAlerts.size() + 16 + kAcknowledge.size() || path.rfind(kAlerts, 0) != 0 ||
      path.compare(path.size() - kAcknowledge.size(), kAcknowledge.size(), kAcknowledge) != 0)
    return {};
  std::string id = path.substr(kAlerts.size(), 16);
  return id.find_first_not_of("0123456789abcdef") == std::string::npos ? id : std::string();
}

}  // namespace

Api::Api(const Published& published, Acknowledgements& acknowledgements, Silences& silences,
         std::function<Timestamp()> now)
    : published_(published),
      acknowledgements_(acknowledgements),
      silences_(silences),
      now_(std::move(now)),
      cache_(std::make_unique<Cache>()) {
  configure(std::make_shared<const ApiConfig>());
}

Api::~Api() = default;

void Api::configure(std::shared_ptr<const ApiConfig> config) {
  streams_.set_most(static_cast<std::uint64_t>(config->layers.config().agent.max_streams));
  const std::lock_guard lock(mutex_);
  config_ = std::move(config);
}

std::shared_ptr<const ApiConfig> Api::config() const {
  const std::lock_guard lock(mutex_);
  return config_;
}

Site Api::site() {
  return {[this](const Request& request) { return admit(request); },
          [this](const Request& request) { return respond(request); }};
}

std::optional<Response> Api::admit(const Request& request) const {
  const auto now = config();
  if (!request.over_unix) {
    if (!host_allowed(request.host, now->host, now->layers.config().agent.allowed_hosts))
      return error(
          421, "bad_host",
          "the Host header names another site; use the agent's address, or add the name to agent.allowed-hosts");
    if (!request.origin.empty() && !origin_is_host(request.origin, request.host))
      return error(403, "bad_origin", "pages of other sites may not use the agent");
    // The page itself needs no token, so that it can ask for one; it contains no data of this machine.
    const bool open = now->token.empty() || request.path == "/healthz" || find_asset(request.path) != nullptr;
    if (!open && !bears_token(request.authorization, now->token)) {
      Response out = error(401, "unauthorised", "send 'Authorization: Bearer TOKEN', the token of agent.token-file");
      out.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"vramtrack\"");
      return out;
    }
  }
  const bool changes = request.method == "POST" || request.method == "DELETE";
  const bool of_alert = request.path.starts_with(kAlerts) && request.path.ends_with(kAcknowledge);
  if (changes && of_alert && alert_of_path(request.path).empty())
    return error(404, "no_alert", "there is no alert with that id; GET /api/v1/alerts lists them");
  if (request.method == "POST" && request.path == kMarks) return std::nullopt;  // the owner of the process decides
  if (changes && !of_alert && !is_silences(request.path) && request.path != kActsOff)
    return error(
        request.path.rfind("/api/", 0) == 0 ? 405 : 404, "not_found",
        "only /api/v1/alerts/ID/acknowledge, /api/v1/silences, /api/v1/marks and /api/v1/acts/off take POST and "
        "DELETE");
  if (changes && !rights(request, *now).change)
    return error(403, "read_only",
                 "only root, the agent's own user and bearers of its token may acknowledge and silence alerts and "
                 "switch acting on or off; set agent.token-file to use a token");
  return std::nullopt;
}

Rights Api::rights(const Request& request, const ApiConfig& config) const {
  if (!request.over_unix && !config.token.empty() && bears_token(request.authorization, config.token))
    return {true, true, {}};
  if (request.pid_namespace) return {};
  return rights_of(request.uid, config.own_uid);
}

Response Api::respond(const Request& request) {
  const auto now = config();
  Response out = answer(request, *now);
  add_security_headers(out);
  return out;
}

Response Api::answer(const Request& request, const ApiConfig& config) {
  const std::string& path = request.path;
  if (auto asset = asset_response(request)) return std::move(*asset);
  if (path == "/healthz") return health(config);
  if (path == kMarks) return marks(request, config);
  if (request.pid_namespace) return answer_own(request, config);
  if (path == "/metrics") return metrics(config);
  if (!alert_of_path(path).empty()) return acknowledge(request, config);
  if (is_silences(path)) return silences(request, config);
  if (path == "/api/v1/acts" || path == kActsOff) return acts(request, config);
  if (path == "/api/v1/version") return json_response(version_json(config));
  if (path == "/api/v1/config") return json_response(config_json(config.layers));
  if (path == "/api/v1/history") return history(request, config);
  if (path == "/api/v1/gauges") return gauges(request, config);
  if (path == "/api/v1/events") return events(request, config);
  if (path == "/api/v1/sites") return sites(request, config);
  const auto snapshot = published_.latest();
  if (path == "/api/v1/status") return json_response(status_text(snapshot.get(), rights(request, config), config));
  if (path == "/api/v1/view") {
    if (!snapshot) return error(503, "no_sample", "nothing has been sampled yet; try again in a second");
    return json_response(view_text(*snapshot, rights(request, config)));
  }
  if (path == "/api/v1/alerts") return alerts(request, config);
  if (path == "/api/v1/series") {
    if (config.store_path.empty()) return no_store();
    return from_store(request, 0, [&] { return series(config); });
  }
  return error(404, "not_found", "there is no such page; the pages are " + std::string(kPages));
}

/// The answer to a client in another pid namespace, such as a container.
Response Api::answer_own(const Request& request, const ApiConfig& config) {
  if (request.path == "/api/v1/version") return json_response(version_json(config));
  const bool is_view = request.path == "/api/v1/view";
  if (!is_view && request.path != "/api/v1/alerts")
    return error(403, "own_processes_only",
                 "a client in another pid namespace gets its own processes only: /api/v1/view, /api/v1/alerts, "
                 "/api/v1/version, and POST /api/v1/marks");
  const auto snapshot = published_.latest();
  if (!snapshot) return error(503, "no_sample", "nothing has been sampled yet; try again in a second");
  const View own = own_processes(*snapshot->view, *request.pid_namespace,
                                 [](const ProcessInfo& p) { return pid_namespace_of(p.pid); });
  if (is_view) return json_response(view_json(own, {}));
  return json_response(alerts_json(
      own.time, all_alerts(&own, {}), [](const std::string&) { return std::nullopt; },
      [](const SilenceSubject&) { return std::nullopt; }));
}

Response Api::alerts(const Request& request, const ApiConfig& config) {
  const auto snapshot = published_.latest();
  std::size_t limit = 200;
  if (const std::string* text = parameter(request, "limit")) {
    const auto value = parse_number<std::size_t>(*text);
    if (!value || *value < 1 || *value > 1000) return error(400, "bad_limit", "limit must be from 1 to 1000");
    limit = *value;
  }
  const std::string* standing = parameter(request, "standing");
  if (limit == 200 && standing == nullptr) return json_response(alerts_text(snapshot.get(), config));
  return from_store(request, 0, [&] {
    std::vector<KnownAlert> alerts = all_alerts(snapshot ? snapshot->view.get() : nullptr, config.store_path);
    if (standing != nullptr && *standing == "true")
      alerts.erase(std::remove_if(alerts.begin(), alerts.end(),
                                  [](const KnownAlert& a) { return a.alert.ended != AlertEnd::standing; }),
                   alerts.end());
    if (alerts.size() > limit) alerts.resize(limit);
    return json_response(alerts_document(snapshot.get(), alerts));
  });
}

std::string Api::alerts_document(const Snapshot* snapshot, const std::vector<KnownAlert>& alerts) {
  return alerts_json(
      snapshot != nullptr ? std::optional(snapshot->view->time) : std::nullopt, alerts,
      [this](const std::string& id) { return acknowledgements_.find(id); },
      [this](const SilenceSubject& subject) { return silences_.covering(subject, now_()); });
}

std::string Api::alerts_state() {
  return fmt::format("{} {}", acknowledgements_.revision(), silences_.state(now_()));
}

std::size_t Api::silenced_count(const View& view) {
  std::vector<const SeriesView*> silenced;
  for (const SeriesView& s : view.series)
    if (is_silenced(view, s)) silenced.push_back(&s);
  return standing(incidents_of(silenced));
}

Response Api::series(const ApiConfig& config) {
  auto reader = StoreReader::open(config.store_path);
  if (!reader) return error(500, "store", reader.error().message);
  const auto extents = (*reader)->series();
  if (!extents) return error(500, "store", extents.error().message);
  std::vector<KnownSeries> known;
  for (const SeriesExtent& e : *extents) known.push_back({e.key, e.first, e.last});
  order(known, [](const KnownSeries& a, const KnownSeries& b) { return a.first < b.first; });
  return json_response(series_json(known));
}

Response Api::from_store(const Request& request, std::uint64_t likely_bytes, const std::function<Response()>& make) {
  // Do not create an answer only to discard it. A peer that has read all its answers may request anything.
  if (likely_bytes > 0)
    if (const auto answer = unread_.ask(request.peer, likely_bytes); answer != FairQuota::Answer::granted)
      return unread(request, answer);
  Response out;
  {
    const Quota::Taken reading = reading_.take(request.peer, 1, kReadingPatience);
    if (reading.answer != FairQuota::Answer::granted)
      return refused(reading.answer == FairQuota::Answer::full ? 503 : 429, "busy",
                     "the store is being read for other requests; try again");
    out = make();
  }
  return until_read(request, std::move(out));
}

Response Api::until_read(const Request& request, Response out) {
  if (!out.body || out.body->empty()) return out;
  auto held = unread_.take(request.peer, out.body->size());
  if (held.answer != FairQuota::Answer::granted) return unread(request, held.answer);
  struct Kept {
    std::shared_ptr<const std::string> text;
    Held held;
  };
  const auto whole = std::make_shared<Kept>(Kept{std::move(out.body), std::move(held.held)});
  out.body = std::shared_ptr<const std::string>(whole, whole->text.get());
  return out;
}

Api::Text Api::view_text(const Snapshot& snapshot, const Rights& rights) {
  const std::string name = rights.all_commands ? "view" : "view of " + rights.user;
  return cache_->get(snapshot.generation, name, [&] { return view_json(*snapshot.view, may_see(rights)); });
}

Api::Text Api::tick_text(const Snapshot& snapshot) {
  return cache_->get(snapshot.generation, "tick", [&] { return tick_json(*snapshot.view); });
}

Api::Text Api::status_text(const Snapshot* snapshot, const Rights& rights, const ApiConfig& config) {
  const auto make = [&] {
    return status_json(snapshot, config, may_see(rights), probed(snapshot, rights, config), streams(),
                       snapshot != nullptr ? silenced_count(*snapshot->view) : 0);
  };
  if (snapshot == nullptr) return std::make_shared<const std::string>(make());
  return cache_->get(snapshot->generation, rights.all_commands ? "status" : "status of " + rights.user, make);
}

Api::Text Api::alerts_text(const Snapshot* snapshot, const ApiConfig& config) {
  const auto make = [&] {
    std::vector<KnownAlert> alerts =
        all_alerts(snapshot != nullptr ? snapshot->view.get() : nullptr, config.store_path);
    if (alerts.size() > 200) alerts.resize(200);
    return alerts_document(snapshot, alerts);
  };
  if (snapshot == nullptr) return std::make_shared<const std::string>(make());
  return cache_->get(snapshot->generation, "alerts " + alerts_state(), make);
}

std::shared_ptr<const std::string> Api::metrics_text() {
  const auto shared = config();
  const auto snapshot = published_.latest();
  if (!snapshot) return nullptr;
  const ApiConfig& config = *shared;
  const MetricsConfig& settings = config.layers.config().metrics;
  return cache_->get(snapshot->generation, "metrics", [&] {
    ProbedSites::Categories categories =
        config.sites ? config.sites->categories(snapshot->view.get()) : ProbedSites::Categories();
    // A process's own report is more precise than what is visible from outside.
    if (config.traced_categories) categories.merge(config.traced_categories->get());
    if (config.launches) config.launches->keep(*snapshot->view);
    return prometheus_text(
        *snapshot->view, snapshot->own,
        {config.node, config.version, settings.per_process, static_cast<std::size_t>(settings.top_processes),
         [this](const View& view, const SeriesView& s) { return is_silenced(view, s); },
         [&config](const std::string& pod_uid, const std::string& container_id) {
           return config.pods ? config.pods->find(pod_uid, container_id) : PodName();
         },
         [&config](const ProcessKey& process) {
           return config.launches ? config.launches->find(process) : std::string();
         },
         [&categories](const SeriesView& process) {
           const auto known = process.key.host.empty() ? categories.find(process.key.pid) : categories.end();
           return known == categories.end() ? CategoryBytesByName() : known->second;
         }});
  });
}

Response Api::metrics(const ApiConfig& config) {
  if (!config.layers.config().metrics.enabled) return error(404, "no_metrics", "metrics.enabled is false");
  Response out;
  out.content_type = "text/plain; version=0.0.4; charset=utf-8";
  out.body = metrics_text();
  if (!out.body) return error(503, "no_sample", "nothing has been sampled yet");
  return out;
}

Response Api::health(const ApiConfig& config) const {
  const auto snapshot = published_.latest();
  const double late_s = std::max(10.0, 5 * config.layers.config().watch.interval_seconds);
  const bool well = snapshot && steady_clock::now() - snapshot->published < std::chrono::duration<double>(late_s);
  return text_response(well ? 200 : 503, "text/plain", well ? "ok\n" : "not sampling\n");
}

std::optional<Response> Api::read_range(const Request& request, HistoryRange& range) const {
  const auto snapshot = published_.latest();
  range.to = (snapshot ? snapshot->view->time : now_()) + Duration{1};  // include the last sample
  if (const std::string* to = parameter(request, "to")) {
    const auto time = parse_exact_time(*to);
    if (!time) return error(400, "bad_to", "'to' must be a time such as 2026-01-02T03:04:05Z");
    range.to = *time;
  }
  range.from = range.to - std::chrono::hours{1};
  if (const std::string* from = parameter(request, "from")) {
    const auto time = parse_exact_time(*from);
    const auto offset_s = parse_number<std::int64_t>(*from);
    if (!time && (!offset_s || *offset_s >= 0 || *offset_s < -1'000'000'000))
      return error(400, "bad_from",
                   "'from' must be a time such as 2026-01-02T03:04:05Z, or seconds before 'to' such as -3600");
    range.from = time ? *time : range.to + std::chrono::seconds{*offset_s};
  }
  if (range.from >= range.to) return error(400, "bad_range", "from must be before to");
  if (const std::string* points = parameter(request, "points")) {
    const auto value = parse_number<std::size_t>(*points);
    if (!value || *value < 2 || *value > 5000) return error(400, "bad_points", "points must be from 2 to 5000");
    range.points = *value;
  }
  return std::nullopt;
}

Response Api::history(const Request& request, const ApiConfig& config) {
  if (config.store_path.empty()) return no_store();
  HistoryQuery query;
  const auto named = request.query.equal_range("series");
  for (auto it = named.first; it != named.second; ++it) {
    const auto key = parse_series_key(it->second);
    if (!key) return error(400, "bad_series", "'series' must be a key such as device_used/GPU-8f2c");
    query.keys.push_back(*key);
  }
  if (query.keys.empty() || query.keys.size() > 128) return error(400, "bad_series", "give 1 to 128 series");
  if (auto wrong = read_range(request, query.range)) return std::move(*wrong);
  query.range.points = std::min(query.range.points, std::max<std::size_t>(2, kMostPoints / query.keys.size()));
  if (const std::string* grain = parameter(request, "resolution")) {
    for (const Grain known : {Grain::raw, Grain::minute, Grain::hour})
      if (*grain == to_string(known)) query.grain = known;
    if (!query.grain) return error(400, "bad_resolution", "'resolution' must be raw, minute or hour");
  }
  return from_store(request, query.keys.size() * query.range.points * kJsonBytesAPoint, [&] {
    const auto history = read_history(config.store_path, query);
    if (!history) return error(query.grain ? 400 : 500, "store", history.error().message);
    return json_response(history_json(query, *history));
  });
}

Response Api::gauges(const Request& request, const ApiConfig& config) {
  if (config.store_path.empty()) return no_store();
  const std::string* device = parameter(request, "device");
  if (device == nullptr || device->empty())
    return error(400, "bad_device", "give the id of one device, such as device=GPU-8f2c");
  HistoryRange range;
  if (auto wrong = read_range(request, range)) return std::move(*wrong);
  return from_store(request, range.points * kJsonBytesAPoint, [&] {
    const auto history = read_gauges(config.store_path, *device, range);
    if (!history) return error(500, "store", history.error().message);
    return json_response(gauges_json(*device, range, *history));
  });
}

bool Api::is_silenced(const View& view, const SeriesView& series) {
  const bool stands = std::any_of(series.alerts.begin(), series.alerts.end(),
                                  [](const Alert& a) { return a.ended == AlertEnd::standing; });
  return stands && silences_.covering(silence_subject(view, series), now_()).has_value();
}

Response Api::silences(const Request& request, const ApiConfig& config) {
  const Timestamp now = now_();
  if (request.path == kSilences && request.method == "POST") {
    auto silence = asked_silence(request.body);
    if (!silence) return error(400, "bad_body", silence.error().message);
    if (const auto snapshot = published_.latest(); snapshot && !silence->gpu.empty()) {
      auto gpu = gpu_of(*snapshot->view, silence->gpu);
      if (!gpu) return error(400, "no_gpu", gpu.error().message);
      silence->gpu = std::move(*gpu);
    }
    if (silence->by.empty()) silence->by = rights(request, config).user;
    const auto added = silences_.add(std::move(*silence), now);
    if (!added) return error(400, "bad_silence", added.error().message);
    return json_response(silence_json(*added));
  }
  if (request.path == kSilences && request.method != "DELETE")
    return json_response(silences_json(silences_.list(now), now));
  if (request.path == kSilences || request.method != "DELETE")
    return error(405, "method", "/api/v1/silences takes GET and POST, /api/v1/silences/ID takes DELETE");
  const auto ended = silences_.end(std::string_view(request.path).substr(kSilences.size() + 1), now);
  if (!ended) return error(400, "not_ended", ended.error().message);
  if (!*ended) return error(404, "no_silence", "there is no silence with that id; GET /api/v1/silences lists them");
  Response out;
  out.status = 204;
  return out;
}

Response Api::acknowledge(const Request& request, const ApiConfig& config) {
  const std::string id = alert_of_path(request.path);
  const auto snapshot = published_.latest();
  const auto known = all_alerts(snapshot ? snapshot->view.get() : nullptr, config.store_path);
  // A leak is acknowledged once: acknowledging the device's alert covers its process's.
  std::vector<std::string> ids = {id};
  const auto id_of = [&](std::size_t i) { return alert_id(known[i].key, known[i].alert.raised); };
  for (const Incident& incident : incidents_of(known))
    if (id_of(incident.speaks) == id)
      for (const std::size_t i : incident.members)
        if (i != incident.speaks) ids.push_back(id_of(i));
  const bool is_known = std::any_of(known.begin(), known.end(),
                                    [&](const KnownAlert& a) { return alert_id(a.key, a.alert.raised) == id; });
  // An alert may be forgotten before its acknowledgement is removed.
  if (!is_known && (request.method != "DELETE" || !acknowledgements_.find(id)))
    return error(404, "no_alert", "there is no alert with that id; GET /api/v1/alerts lists them");
  if (request.method == "DELETE") {
    for (const std::string& one : ids)
      if (Status removed = acknowledgements_.remove(one); !removed) return error(500, "store", removed.error().message);
    Response out;
    out.status = 204;
    return out;
  }
  if (request.method != "POST") return error(405, "method", "acknowledge takes POST and DELETE");
  auto acknowledgement = parse_acknowledgement(request.body);
  if (!acknowledgement) return error(400, "bad_body", acknowledgement.error().message);
  acknowledgement->time = now_();
  if (acknowledgement->by.empty()) acknowledgement->by = rights(request, config).user;
  for (const std::string& one : ids)
    if (Status set = acknowledgements_.set(one, *acknowledgement); !set)
      return error(500, "store", set.error().message);
  return json_response(acknowledgement_json(*acknowledgement));
}

}  // namespace vramtrack::agent
