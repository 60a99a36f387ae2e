#include "act/http_post.hpp"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace vramtrack::act {

std::string Url::origin() const {
  const bool usual = port == (https ? 443 : 80);
  const bool bracketed = host.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}{}", https ? "https" : "http", bracketed ? "[" : "", host, bracketed ? "]" : "",
                     usual ? "" : fmt::format(":{}", port));
}

Result<Url> parse_url(std::string_view text) {
  static constexpr std::string_view kExpected = "expected http://host[:port]/path or https://host[:port]/path";
  Url url;
  std::string_view rest = text;
  const auto take = [&rest](std::string_view prefix) {
    const bool has = rest.starts_with(prefix);
    if (has) rest.remove_prefix(prefix.size());
    return has;
  };
  if (take("https://"))
    url.https = true;
  else if (!take("http://"))
    return fail(fmt::format("the address does not begin with http:// or https://; {}", kExpected));
  if (std::any_of(text.begin(), text.end(), [](char c) { return c <= ' ' || c == 0x7f; }))
    return fail(fmt::format("the address contains a space or a control character; {}", kExpected));
  const std::size_t slash = std::min(rest.find_first_of("/?#"), rest.size());
  std::string_view authority = rest.substr(0, slash);
  const std::string_view path = rest.substr(slash, rest.find('#', slash) - slash);
  url.path = path.starts_with('/') ? std::string(path) : '/' + std::string(path);
  if (authority.find('@') != std::string_view::npos)
    return fail("the address contains a user or a password; leave them out and use webhook-token-file");
  std::string_view port;
  if (authority.starts_with('[')) {
    const std::size_t close = authority.find(']');
    if (close == std::string_view::npos) return fail(fmt::format("the address has no closing ]; {}", kExpected));
    url.host = authority.substr(1, close - 1);
    port = authority.substr(close + 1);
  } else {
    const std::size_t colon = std::min(authority.find(':'), authority.size());
    url.host = authority.substr(0, colon);
    port = authority.substr(colon);
  }
  if (url.host.empty()) return fail(fmt::format("the address has no host; {}", kExpected));
  url.port = url.https ? 443 : 80;
  if (!port.empty()) {
    const char* end = port.data() + port.size();
    const auto [at, error] = std::from_chars(port.data() + 1, end, url.port);
    if (port.front() != ':' || error != std::errc{} || at != end || url.port == 0)
      return fail(fmt::format("the address has no valid port; {}", kExpected));
  }
  return url;
}

namespace {

using std::chrono::steady_clock;

constexpr std::size_t kMostAnswer = 64 * 1024;

std::string host_and_port(const Url& url) {
  const bool bracketed = url.host.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}", url.https ? "https" : "http", bracketed ? "[" : "", url.host,
                     bracketed ? "]" : "", url.port);
}

/// Ends the exchange when its time is up or a stop is requested: the library's own limits apply to a single read, so
/// a receiver that sends one byte per second would never end.
class Deadline {
 public:
  Deadline(httplib::Client& client, steady_clock::time_point at, const std::atomic<bool>& stop)
      : thread_([this, &client, at, &stop] {
          std::unique_lock lock(mutex_);
          while (!done_) {
            if (stop || steady_clock::now() >= at) client.stop();  // repeatedly: it may not be connected yet
            changed_.wait_for(lock, std::chrono::milliseconds(50));
          }
        }) {}
  ~Deadline() {
    {
      const std::scoped_lock lock(mutex_);
      done_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;
};

/// Seconds; the other form, a date, is rare and treated as not given.
std::optional<double> retry_after_s(const httplib::Response& answer) {
  const std::string text = answer.get_header_value("Retry-After");
  unsigned seconds = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc{} || at != text.data() + text.size()) return {};
  return seconds;
}

Outcome outcome_of(const Url& url, const httplib::Response& answer) {
  const int status = answer.status;
  if (status >= 200 && status < 300) return {Outcome::Kind::delivered, {}, {}};
  const std::string why = fmt::format("{} answered with status {}", url.origin(), status);
  if (status >= 300 && status < 400)
    return {Outcome::Kind::retry, why + "; redirects are not followed, give the final address", {}};
  for (const int refusal : {400, 413, 415, 422})
    if (status == refusal) return {Outcome::Kind::refused, why, {}};
  return {Outcome::Kind::retry, why, retry_after_s(answer)};
}

void set_time_limits(httplib::Client& client, double timeout_s) {
  const auto whole = static_cast<time_t>(timeout_s);
  const auto micros = static_cast<time_t>((timeout_s - static_cast<double>(whole)) * 1e6);
  client.set_connection_timeout(whole, micros);
  client.set_read_timeout(whole, micros);
  client.set_write_timeout(whole, micros);
}

/// The library has only one word for each error; the person who set the address needs to know what to check.
std::string failure_words(httplib::Error error) {
  switch (error) {
    case httplib::Error::Connection:
      return "the connection failed (connection refused, or no such host?)";
    case httplib::Error::ConnectionTimeout:
      return "the connection timed out (a firewall?)";
    case httplib::Error::Read:
      return "the connection was closed before an answer came";
    case httplib::Error::Write:
      return "the connection was closed while the message was sent";
    case httplib::Error::SSLConnection:
      return "the TLS handshake failed (is it an http:// address?)";
    case httplib::Error::SSLLoadingCerts:
      return "the certificates to verify it with cannot be read (notify.ca-file, or the system's)";
    case httplib::Error::SSLServerVerification:
      return "its certificate is not trusted (set notify.ca-file for an authority of your own)";
    default:
      return "the exchange failed: " + httplib::to_string(error);
  }
}

Outcome exchange(const HttpTarget& target, const std::string& id, const std::string& body,
                 const std::atomic<bool>& stop) {
  httplib::Client client(host_and_port(target.url));
  if (!client.is_valid())
    return {Outcome::Kind::retry, target.url.origin() + " cannot be reached: the TLS library cannot be set up", {}};
  set_time_limits(client, target.timeout_s);
  client.set_follow_location(false);
  client.set_keep_alive(false);
#ifdef CPPHTTPLIB_OPENSSL_SUPPORT
  client.enable_server_certificate_verification(true);
  if (!target.ca_file.empty()) client.set_ca_cert_path(target.ca_file);
#endif
  httplib::Request request;
  request.method = "POST";
  request.path = target.url.path;
  request.set_header("Content-Type", "application/json");
  request.set_header("Accept-Encoding", "identity");
  request.set_header("User-Agent", "vramtrack");
  request.set_header("Idempotency-Key", id);
  if (!target.token.empty()) request.set_header("Authorization", "Bearer " + target.token);
  request.body = body;
  std::size_t answered = 0;
  request.content_receiver = [&answered](const char*, std::size_t size, std::uint64_t, std::uint64_t) {
    answered += size;
    return answered <= kMostAnswer;
  };
  httplib::Response answer;
  httplib::Error error = httplib::Error::Success;
  const auto deadline = steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(
                                                  std::chrono::duration<double>(target.timeout_s));
  bool answered_whole = false;
  {
    const Deadline guard(client, deadline, stop);
    answered_whole = client.send(request, answer, error);
  }
  // The status line has come: what follows it does not matter.
  if (answered_whole || (answer.status > 0 && answered > 0)) return outcome_of(target.url, answer);
  if (stop) return {Outcome::Kind::retry, "it was cancelled because vramtrack ended", {}};
  std::string why = failure_words(error);
  if (steady_clock::now() >= deadline) why = fmt::format("no answer within {:.3g} s", target.timeout_s);
  return {Outcome::Kind::retry, fmt::format("{}: {}", target.url.origin(), why), {}};
}

}  // namespace

Status can_post([[maybe_unused]] const Url& url) {
#ifndef CPPHTTPLIB_OPENSSL_SUPPORT
  if (url.https)
    return fail(
        "this build does not support https, because its cpp-httplib was built without OpenSSL; use notify.exec with "
        "curl");
#endif
  return {};
}

Outcome http_post(const HttpTarget& target, const std::string& id, const std::string& body,
                  const std::atomic<bool>& stop) {
  try {
    return exchange(target, id, body, stop);
  } catch (const std::exception& e) {
    return {Outcome::Kind::retry, fmt::format("{}: {}", target.url.origin(), e.what()), {}};
  }
}

}  // namespace vramtrack::act
