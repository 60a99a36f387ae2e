#include "actuate/site.hpp"

#include <fmt/format.h>

#include "agent/server/api_json.hpp"
#include "agent/server/guard.hpp"
#include "core/printable.hpp"

namespace vramtrack::actuate {
namespace {

using agent::Request;
using agent::Response;
using agent::text_response;

constexpr const char* kAlerts = "/api/v1/alerts";
constexpr const char* kReset = "/api/v1/breaker/reset";

Response error(int status, std::string_view code, std::string_view message) {
  return agent::error(status, code, printable(message));
}

Response json(std::string body) {
  return text_response(200, "application/json", std::move(body));
}

agent::Rights rights(const Request& request, const SiteOptions& options) {
  if (!request.over_unix && agent::bears_token(request.authorization, options.token)) return {true, true, {}};
  return agent::rights_of(request.uid, options.own_uid);
}

std::optional<Response> admit(const Request& request, const SiteOptions& options) {
  const Request& r = request;
  if (!r.over_unix) {
    if (!agent::host_allowed(r.host, options.host, {}))
      return error(421, "bad_host", "the Host header names another site; use the address of actuate.listen");
    if (!r.origin.empty()) return error(403, "bad_origin", "web pages may not use the actuator");
    const bool is_open = options.token.empty() || r.path == "/healthz";
    if (!is_open && !agent::bears_token(r.authorization, options.token)) {
      Response out = error(401, "unauthorised", "send 'Authorization: Bearer TOKEN', the token of actuate.token-file");
      out.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"vramtrack\"");
      return out;
    }
  }
  const bool changes = r.method == "POST" || r.method == "DELETE";
  const bool is_post = r.path == kAlerts || r.path == kReset;
  if (changes != is_post || r.method == "DELETE")
    return is_post || changes
               ? error(405, "method",
                       "POST to /api/v1/alerts and /api/v1/breaker/reset; everything else is read with GET")
               : std::optional<Response>();
  if (changes && !rights(r, options).change)
    return error(403, "read_only",
                 "only root, the actuator's own user and bearers of its token may post; set actuate.token-file and the "
                 "http_config.authorization of Alertmanager's webhook");
  return std::nullopt;
}

Response take(Actuator& actuator, const Request& request, const SiteOptions& options) {
  const auto webhook = parse_webhook(request.body);
  if (!webhook) {
    actuator.count_bad_webhook();
    return error(400, "bad_webhook", webhook.error().message);
  }
  const auto added = actuator.take(*webhook);
  if (!added) return error(500, "state", added.error().message);  // Alertmanager sends it again
  if (options.wake) options.wake();
  return json(fmt::format(R"({{"alerts": {}, "new": {}}})", webhook->alerts.size(), *added));
}

Response reset(Actuator& actuator, const Request& request) {
  const auto wanted = parse_reset(request.body);
  if (!wanted) return error(400, "bad_reset", wanted.error().message);
  const auto was_open = actuator.reset(*wanted);
  if (!was_open) return error(500, "state", was_open.error().message);
  if (!*was_open) return error(409, "not_open", "the circuit breaker is not open");
  return json(R"({"closed": true})");
}

Response answer(Actuator& actuator, const Request& request, const SiteOptions& options) {
  if (request.path == kAlerts) return take(actuator, request, options);
  if (request.path == kReset) return reset(actuator, request);
  if (request.path == "/healthz") return text_response(200, "text/plain; charset=utf-8", "ok\n");
  if (request.path == "/metrics")
    return text_response(200, "text/plain; version=0.0.4; charset=utf-8", summary_metrics(actuator.summary()));
  if (request.path == "/api/v1/status") return json(summary_json(actuator.summary()));
  if (request.path == "/api/v1/acts") return json(agent::acts_json(actuator.acts(), rights(request, options)));
  return error(
      404, "not_found",
      "there is no such page; the pages are /api/v1/alerts, /api/v1/acts, /api/v1/status, /api/v1/breaker/reset, "
      "/metrics and /healthz");
}

}  // namespace

agent::Site site_of(Actuator& actuator, SiteOptions options) {
  const auto shared = std::make_shared<const SiteOptions>(std::move(options));
  return {[shared](const Request& request) { return admit(request, *shared); },
          [&actuator, shared](const Request& request) {
            Response out = answer(actuator, request, *shared);
            out.headers.emplace_back("Cache-Control", "no-store");
            out.headers.emplace_back("X-Content-Type-Options", "nosniff");
            return out;
          }};
}

}  // namespace vramtrack::actuate
