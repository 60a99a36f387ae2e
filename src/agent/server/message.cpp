#include "agent/server/message.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <limits>

#include "core/number_text.hpp"
#include "core/percent.hpp"

namespace vramtrack::agent {
namespace {

namespace beast = boost::beast::http;

constexpr std::size_t kMostPathBytes = 256;
constexpr int kNoContent = 204;
constexpr int kNotModified = 304;

std::string string_of(boost::beast::string_view text) {
  return {text.data(), text.size()};
}

/// Parses "a=1&b=2"; a plus is a space.
std::multimap<std::string, std::string> parse_query(std::string query) {
  std::multimap<std::string, std::string> out;
  std::replace(query.begin(), query.end(), '+', ' ');
  for (std::string_view rest = query; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const std::size_t is = std::min(part.find('='), part.size());
    if (is > 0)
      out.emplace(percent_decoded(part.substr(0, is)), percent_decoded(part.substr(std::min(is + 1, part.size()))));
  }
  return out;
}

}  // namespace

tl::expected<RequestHead, Response> parse_head(std::string_view head, std::size_t most_body_bytes) {
  const auto refuse = [](int status, std::string_view code, std::string_view message) {
    return tl::unexpected(error(status, code, message));
  };
  beast::request_parser<beast::empty_body> parser;
  parser.skip(true);  // the body is read separately
  parser.header_limit(std::numeric_limits<std::uint32_t>::max());
  boost::system::error_code failure;
  parser.put(boost::asio::const_buffer(head.data(), head.size()), failure);
  if (failure || !parser.is_done()) return refuse(400, "bad_request", "the agent does not understand this request");
  const auto& in = parser.get();
  const auto field = [&in](beast::field name) { return string_of(in[name]); };

  RequestHead out;
  out.keeps_alive = parser.keep_alive();
  Request& request = out.request;
  request.method = string_of(in.method_string());
  std::string target = string_of(in.target());
  target.resize(std::min(target.find('#'), target.size()));
  const std::size_t question = std::min(target.find('?'), target.size());
  request.path = percent_decoded(std::string_view(target).substr(0, question));
  request.query = parse_query(target.substr(std::min(question + 1, target.size())));
  request.host = field(beast::field::host);
  request.origin = field(beast::field::origin);
  request.authorization = field(beast::field::authorization);
  request.content_type = field(beast::field::content_type);
  request.if_none_match = field(beast::field::if_none_match);

  if (request.path.size() > kMostPathBytes) return refuse(414, "path_too_long", "the path is too long");
  const bool is_post = request.method == "POST";
  if (!is_post && request.method != "GET" && request.method != "HEAD" && request.method != "DELETE")
    return refuse(405, "method", "the agent supports GET, HEAD, POST and DELETE");
  if (in.count(beast::field::transfer_encoding) > 0 || in.count(beast::field::content_length) > 1)
    return refuse(411, "length_required", "send a body with one Content-Length");
  if (in.count(beast::field::host) > 1) return refuse(400, "bad_host", "more than one Host header");
  const std::string length = field(beast::field::content_length);
  if (!is_post) {
    if (!length.empty() && length != "0") return refuse(400, "unexpected_body", "only POST may have a body");
    return out;
  }
  if (length.empty()) return refuse(411, "length_required", "POST needs a Content-Length");
  const auto body_bytes = parse_number<std::size_t>(length);
  if (!body_bytes || *body_bytes > most_body_bytes)
    return refuse(413, "too_large", fmt::format("a body may have at most {} KiB", most_body_bytes / 1024));
  out.body_bytes = *body_bytes;
  if (in.count(beast::field::content_encoding) > 0)
    return refuse(415, "content_encoding", "send the body without a Content-Encoding");
  if (!request.content_type.starts_with("application/json"))
    return refuse(415, "content_type", "send Content-Type: application/json");
  return out;
}

std::string response_head(const Response& response, bool is_last) {
  const auto reason = beast::obsolete_reason(beast::int_to_status(static_cast<unsigned>(response.status)));
  std::string out = fmt::format("HTTP/1.1 {} {}\r\nConnection: {}\r\n", response.status, string_of(reason),
                                is_last ? "close" : "keep-alive");
  const std::size_t body_bytes = response.body ? response.body->size() : 0;
  if (response.stream)
    out += "Transfer-Encoding: chunked\r\n";
  else if (response.status != kNoContent && response.status != kNotModified)
    out += fmt::format("Content-Length: {}\r\n", body_bytes);
  if (response.stream || body_bytes > 0) out += fmt::format("Content-Type: {}\r\n", response.content_type);
  for (const auto& [name, value] : response.headers) out += fmt::format("{}: {}\r\n", name, value);
  return out += "\r\n";
}

std::string closing_answer(const Response& response) {
  std::string out = response_head(response, true);
  if (response.body) out += *response.body;
  return out;
}

}  // namespace vramtrack::agent
