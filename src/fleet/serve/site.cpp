#include "fleet/serve/site.hpp"

#include <fmt/format.h>

#include "agent/assets.hpp"
#include "agent/server/browser.hpp"
#include "agent/server/guard.hpp"
#include "core/option.hpp"

namespace vramtrack::fleet {
namespace {

using agent::error;
using agent::Request;
using agent::Response;

Response document(const std::shared_ptr<const std::string>& body, std::string content_type) {
  if (!body) return error(503, "no_pass", "the first pass over the fleet has not finished; try again later");
  Response out;
  out.content_type = std::move(content_type);
  out.body = body;
  return out;
}

/// "/" is the page of the fleet, which is among the same files as the agent's. A build without pages shows a message.
Request with_page(Request request) {
  constexpr const char* kPage = "/fleet.html";
  if (request.path == "/" && agent::find_asset(kPage) != nullptr) request.path = kPage;
  return request;
}

}  // namespace

void FleetSite::publish(FleetDocuments documents) {
  Published next{std::make_shared<const std::string>(std::move(documents.json)),
                 std::make_shared<const std::string>(std::move(documents.metrics)), documents.is_healthy};
  const std::lock_guard lock(mutex_);
  std::swap(published_, next);
}

std::shared_ptr<const std::string> FleetSite::metrics() const {
  const std::lock_guard lock(mutex_);
  return published_.metrics;
}

agent::Site FleetSite::site() {
  return {[this](const Request& request) { return admit(request); },
          [this](const Request& request) {
            Response out = answer(request);
            agent::add_security_headers(out);
            return out;
          }};
}

std::optional<Response> FleetSite::admit(const Request& request) const {
  if (!agent::host_allowed(request.host, options_.host, {}))
    return error(421, "bad_host", "the Host header names another site; use this machine's name or address");
  if (!request.origin.empty() && !agent::origin_is_host(request.origin, request.host))
    return error(403, "bad_origin", "pages of other sites may not use this server");
  // The page needs no token, so that it can ask for one; it contains no data of the fleet.
  const bool is_open =
      options_.token.empty() || request.path == "/healthz" || agent::find_asset(with_page(request).path) != nullptr;
  if (!is_open && !agent::bears_token(request.authorization, options_.token)) {
    Response out =
        error(401, "unauthorised",
              fmt::format("send 'Authorization: Bearer TOKEN', the token of {}", name_of(Option::token_file)));
    out.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"vramtrack\"");
    return out;
  }
  if (request.method != "GET" && request.method != "HEAD")
    return error(405, "read_only", "this server only answers GET");
  return std::nullopt;
}

Response FleetSite::answer(const Request& request) const {
  if (auto asset = agent::asset_response(with_page(request))) return std::move(*asset);
  Published now;
  {
    const std::lock_guard lock(mutex_);
    now = published_;
  }
  if (request.path == "/api/v1/fleet") return document(now.json, "application/json");
  if (request.path == "/metrics") return document(now.metrics, "text/plain; version=0.0.4; charset=utf-8");
  if (request.path == "/healthz")
    return agent::text_response(now.is_healthy ? 200 : 503, "text/plain; charset=utf-8",
                                now.is_healthy ? "ok\n" : "the last pass over the fleet failed\n");
  return error(404, "not_found", "there is no such page; the pages are /, /api/v1/fleet, /metrics and /healthz");
}

}  // namespace vramtrack::fleet
