#include "agent/server/browser.hpp"

#include <algorithm>

#include "agent/assets.hpp"

namespace vramtrack::agent {

std::optional<Response> asset_response(const Request& request) {
  const Asset* asset = find_asset(request.path);
  if (asset == nullptr) return std::nullopt;
  Response out;
  out.content_type = asset->content_type;
  out.headers = {{"ETag", std::string(asset->etag)}, {"Cache-Control", "no-cache"}};
  if (request.if_none_match == asset->etag)
    out.status = 304;
  else
    out.body = std::make_shared<const std::string>(asset->bytes);
  return out;
}

void add_security_headers(Response& response) {
  response.headers.insert(
      response.headers.end(),
      {{"X-Content-Type-Options", "nosniff"},
       {"Referrer-Policy", "no-referrer"},
       {"X-Frame-Options", "DENY"},
       {"Cross-Origin-Resource-Policy", "same-origin"},
       {"Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src "
        "'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors "
        "'none'"}});
  const auto is_cache = [](const auto& header) { return header.first == "Cache-Control"; };
  if (std::none_of(response.headers.begin(), response.headers.end(), is_cache))
    response.headers.emplace_back("Cache-Control", "no-store");
}

}  // namespace vramtrack::agent
