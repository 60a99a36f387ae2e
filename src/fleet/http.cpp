#include "fleet/http.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/option.hpp"

namespace vramtrack::fleet {
namespace {

/// The limit for the body of a failure, which contains the server's message.
constexpr std::size_t kMostWords = 4096;

/// The server's own message, on one line of at most 200 characters.
std::string first_words(const std::string& body) {
  std::string line = body.substr(0, body.find('\n'));
  if (line.size() > 200) line = line.substr(0, 197) + "...";
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return line;
}

bool speaks_of_a_limit(const std::string& words) {
  std::string low = words;
  std::transform(low.begin(), low.end(), low.begin(), [](unsigned char c) { return std::tolower(c); });
  constexpr std::array<std::string_view, 6> kWords = {"too many", "exceed", "limit", "maximum", "max-", "too long"};
  return std::any_of(kWords.begin(), kWords.end(), [&](std::string_view word) { return low.find(word) != low.npos; });
}

HttpFailure failure_of(const ServerAddress& server, int status, const std::string& words) {
  std::string why = act::status_words(server.origin(), status, first_words(words));
  if (status == 401 || status == 403)
    why += fmt::format("; give {} or {}", name_of(Option::bearer_token_file), name_of(Option::basic_auth_file));
  if (status == 404) why += "; check the path of the address, which for Mimir ends in /prometheus";
  const bool is_limit =
      (status == 400 || status == 413 || status == 414 || status == 422 || status >= 500) && speaks_of_a_limit(words);
  if (is_limit) return {HttpFailure::Kind::too_much, std::move(why)};
  const bool passes = status >= 500 || status == 429 || status == 408;
  return {passes ? HttpFailure::Kind::passing : HttpFailure::Kind::permanent, std::move(why)};
}

act::HttpCall call_of(const ServerAddress& server, const HttpRequest& request) {
  act::HttpCall call;
  call.url = server.url;
  call.url.path += request.path;
  call.method = request.body.empty() ? "GET" : "POST";
  call.headers = request.headers;
  call.headers.insert(call.headers.end(), server.headers.begin(), server.headers.end());
  if (!request.content_type.empty()) call.headers.emplace_back("Content-Type", request.content_type);
  if (!server.bearer_token.empty()) call.headers.emplace_back("Authorization", "Bearer " + server.bearer_token);
  call.user_and_password = server.user_and_password;
  call.body = request.body;
  call.ca_file = server.ca_file;
  call.timeout_s = server.timeout_s;
  call.silence_timeout_s = server.silence_timeout_s;
  call.most_answer_bytes = request.most_answer_bytes;
  return call;
}

HttpFailure failure_of(const ServerAddress& server, const act::HttpAnswer& answer) {
  using act::HttpEnd;
  const auto kind = [&] {
    switch (answer.end) {
      case HttpEnd::too_large:
        return HttpFailure::Kind::too_much;
      case HttpEnd::cancelled:
        return HttpFailure::Kind::cancelled;
      case HttpEnd::impossible:
        return HttpFailure::Kind::permanent;
      default:
        return HttpFailure::Kind::passing;
    }
  };
  HttpFailure failure{kind(), server.origin() + ": " + answer.why};
  if (answer.end == HttpEnd::too_large) failure.why += "; scan a shorter time";
  failure.is_away = answer.head.status == 0;
  return failure;
}

}  // namespace

tl::expected<void, HttpFailure> send_request(const ServerAddress& server, const HttpRequest& request,
                                             const BodySink& body) {
  std::string words;  // of a failure
  Status taken;
  const auto is_success = [](const act::HttpHead& head) { return head.status >= 200 && head.status < 300; };
  const act::HttpAnswer answer =
      act::http_exchange(call_of(server, request), fmt::format("pass {}", name_of(Option::ca_file)),
                         [&](std::string_view bytes, const act::HttpHead& head) {
                           if (!is_success(head)) {
                             words += bytes.substr(0, kMostWords - std::min(words.size(), kMostWords));
                             return words.size() < kMostWords;
                           }
                           taken = body(bytes, head.content_type);
                           return taken.has_value();
                         });
  if (!taken)
    return tl::unexpected<HttpFailure>({HttpFailure::Kind::passing, server.origin() + ": " + taken.error().message});
  if (answer.end == act::HttpEnd::cancelled) return tl::unexpected(failure_of(server, answer));
  if (answer.head.status != 0 && !is_success(answer.head))
    return tl::unexpected(failure_of(server, answer.head.status, words));
  if (answer.end != act::HttpEnd::complete) return tl::unexpected(failure_of(server, answer));
  return {};
}

}  // namespace vramtrack::fleet
