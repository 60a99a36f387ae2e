#include "actuate/agent_view.hpp"

#include <fmt/format.h>

#include "act/http_post.hpp"
#include "actuate/documents.hpp"
#include "agent/server/listen.hpp"
#include "core/printable.hpp"
#include "fleet/http.hpp"
#include "report/view_json.hpp"

namespace vramtrack::actuate {
namespace {

constexpr double kSilence_s = 5;
constexpr double kWhole_s = 10;
constexpr std::size_t kMostBytes = 64U << 20U;

Result<std::string> get(const fleet::ServerAddress& address, const std::string& path) {
  std::string body;
  fleet::HttpRequest request;
  request.path = path;
  const auto sent = fleet::send_request(address, request, [&body](std::string_view bytes, const std::string&) {
    if (body.size() + bytes.size() > kMostBytes) return Status(fail("the answer is larger than 64 MiB"));
    body += bytes;
    return Status();
  });
  if (!sent) return fail(printable(sent.error().why));
  return body;
}

}  // namespace

Result<Witness> ask_agent(const std::string& url, const AgentAccess& access) {
  const auto parsed = act::parse_url(url);
  if (!parsed) return fail(fmt::format("'{}': {}", printable(url), parsed.error().message));
  fleet::ServerAddress address;
  address.url = *parsed;
  if (address.url.path == "/") address.url.path.clear();
  address.bearer_token = access.token;
  address.ca_file = access.ca_file;
  address.silence_timeout_s = kSilence_s;
  address.timeout_s = kWhole_s;
  if (!access.token.empty() && !parsed->https && !agent::is_loopback_host(parsed->host))
    return fail(
        fmt::format("{}: the agents' token is not sent without TLS; set actuate.agents (or the node's address in "
                    "actuate.agent-hosts) to https://...",
                    parsed->origin()));
  const auto version = get(address, "/api/v1/version");
  if (!version) return fail(version.error());
  const auto text = get(address, "/api/v1/view");
  if (!text) return fail(text.error());
  auto view = parse_view_json(*text);
  if (!view)
    return fail(fmt::format("{}: the answer is not an agent's view: {}", parsed->origin(), view.error().message));
  const AgentVersion agent_version = parse_version(*version);
  return Witness{agent_version.host, std::move(*view), agent_version.simulated};
}

}  // namespace vramtrack::actuate
