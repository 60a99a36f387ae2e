#include "fleet/http.hpp"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "core/option.hpp"

namespace vramtrack::fleet {
namespace {

using std::chrono::steady_clock;

/// Of an answer that is a failure: the words in it.
constexpr std::size_t kMostWords = 4096;

std::string connection_words(httplib::Error error) {
  switch (error) {
    case httplib::Error::Connection:
      return "the connection failed; check the address, and that the server runs";
    case httplib::Error::ConnectionTimeout:
      return "the connection timed out";
    case httplib::Error::Read:
      return "the connection was closed, or was silent for too long, before the answer was complete";
    case httplib::Error::Write:
      return "the connection was closed while the request was sent";
    case httplib::Error::SSLConnection:
      return "the TLS handshake failed; is it an http:// address?";
    case httplib::Error::SSLLoadingCerts:
      return "the certificates to verify the server with cannot be read";
    case httplib::Error::SSLServerVerification:
      return fmt::format("its certificate is not trusted; give {} for an authority of your own",
                         name_of(Option::ca_file));
    default:
      return "the exchange failed: " + httplib::to_string(error);
  }
}

/// The server's own words, in one line of at most 200 characters.
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
  std::string why = fmt::format("{} answered with status {}", server.origin(), status);
  if (!words.empty()) why += ": " + first_words(words);
  if (status == 401 || status == 403)
    why += fmt::format("; give {} or {}", name_of(Option::bearer_token_file), name_of(Option::basic_auth_file));
  if (status >= 300 && status < 400) why += "; redirects are not followed, give the final address";
  const bool is_limit =
      (status == 400 || status == 413 || status == 414 || status == 422 || status >= 500) && speaks_of_a_limit(words);
  if (is_limit) return {HttpFailure::Kind::too_much, std::move(why)};
  const bool passes = status >= 500 || status == 429 || status == 408;
  return {passes ? HttpFailure::Kind::passing : HttpFailure::Kind::permanent, std::move(why)};
}

void set_seconds(httplib::Client& client, double timeout_s) {
  const auto whole = static_cast<time_t>(timeout_s);
  const auto micros = static_cast<time_t>((timeout_s - static_cast<double>(whole)) * 1e6);
  client.set_connection_timeout(std::min<time_t>(whole, 10), 0);
  client.set_read_timeout(whole, micros);
  client.set_write_timeout(whole, micros);
}

httplib::Request written(const ServerAddress& server, const HttpRequest& request) {
  httplib::Request out;
  out.method = request.body.empty() ? "GET" : "POST";
  out.path = server.path + request.path;
  out.body = request.body;
  out.set_header("User-Agent", "vramtrack");
  out.set_header("Accept-Encoding", "identity");
  if (!request.content_type.empty()) out.set_header("Content-Type", request.content_type);
  for (const auto& [name, value] : request.headers) out.set_header(name, value);
  for (const auto& [name, value] : server.headers) out.set_header(name, value);
  if (!server.bearer_token.empty()) out.set_header("Authorization", "Bearer " + server.bearer_token);
  return out;
}

}  // namespace

std::string ServerAddress::origin() const {
  const bool bracketed = host.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}{}", https ? "https" : "http", bracketed ? "[" : "", host, bracketed ? "]" : "",
                     port, path);
}

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '_' || c == '.' || c == '~';
    if (plain)
      out.push_back(c);
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

tl::expected<void, HttpFailure> send_request(const ServerAddress& server, const HttpRequest& request,
                                             const BodySink& body) {
  const auto failed = [](HttpFailure::Kind kind, std::string why) {
    return tl::unexpected<HttpFailure>({kind, std::move(why)});
  };
  const bool bracketed = server.host.find(':') != std::string::npos;
  httplib::Client client(fmt::format("{}://{}{}{}:{}", server.https ? "https" : "http", bracketed ? "[" : "",
                                     server.host, bracketed ? "]" : "", server.port));
  if (!client.is_valid())
    return failed(HttpFailure::Kind::permanent, server.origin() + " cannot be reached: the TLS library failed");
  set_seconds(client, server.silence_timeout_s);
  client.set_follow_location(false);
  client.set_keep_alive(false);
  if (!server.user_and_password.empty()) {
    const std::size_t colon = server.user_and_password.find(':');
    client.set_basic_auth(server.user_and_password.substr(0, colon), server.user_and_password.substr(colon + 1));
  }
#ifdef CPPHTTPLIB_OPENSSL_SUPPORT
  client.enable_server_certificate_verification(true);
  if (!server.ca_file.empty()) client.set_ca_cert_path(server.ca_file);
#endif
  httplib::Request sent = written(server, request);
  std::string words;  // of an answer that is no success
  std::string content_type;
  int status = 0;
  Status taken;
  bool is_late = false;
  const auto deadline = steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(
                                                  std::chrono::duration<double>(server.timeout_s));
  sent.response_handler = [&](const httplib::Response& answer) {
    status = answer.status;
    content_type = answer.get_header_value("Content-Type");
    return true;
  };
  sent.content_receiver = [&](const char* data, std::size_t size, std::uint64_t, std::uint64_t) {
    is_late = steady_clock::now() >= deadline;
    if (is_late) return false;
    if (status < 200 || status >= 300) {
      words.append(data, std::min(size, kMostWords - std::min(words.size(), kMostWords)));
      return true;
    }
    taken = body({data, size}, content_type);
    return taken.has_value();
  };
  httplib::Response answer;
  httplib::Error error = httplib::Error::Success;
  const bool is_whole = client.send(sent, answer, error);
  if (!taken) return failed(HttpFailure::Kind::passing, server.origin() + ": " + taken.error().message);
  if (is_late)
    return failed(HttpFailure::Kind::passing,
                  fmt::format("{}: no complete answer within {:.3g} s", server.origin(), server.timeout_s));
  if (status != 0 && (status < 200 || status >= 300)) return tl::unexpected(failure_of(server, status, words));
  if (!is_whole) return failed(HttpFailure::Kind::passing, server.origin() + ": " + connection_words(error));
  return {};
}

}  // namespace vramtrack::fleet
