#include "act/http_exchange.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <httplib.h>
#include <netdb.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>

#include "act/socket_guard.hpp"
#include "core/errno_words.hpp"
#include "core/format.hpp"
#include "host/interrupt.hpp"

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

using Clock = SocketGuard::Clock;

/// The limit for the status line and the headers.
constexpr std::uint64_t kMostHeadBytes = 256 * 1024;
/// The allowance for the bytes of an answer besides its body: headers, chunks, TLS.
constexpr std::uint64_t kWireBytes = 4U << 20U;

Clock::duration seconds(double s) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
}

/// The numeric addresses of a name, in order of preference.
struct Resolved {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_done = false;
  std::vector<std::string> addresses;
};

bool is_numeric(const std::string& host) {
  unsigned char bytes[sizeof(in6_addr)];
  return ::inet_pton(AF_INET, host.c_str(), bytes) == 1 || ::inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

void resolve(const std::string& host, Resolved& into) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  std::vector<std::string> addresses;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) == 0)
    for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
      char text[NI_MAXHOST];
      if (::getnameinfo(one->ai_addr, one->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0)
        addresses.emplace_back(text);
    }
  if (found != nullptr) ::freeaddrinfo(found);
  {
    const std::scoped_lock lock(into.mutex);
    into.addresses = std::move(addresses);
    into.is_done = true;
  }
  into.changed.notify_all();
}

/// Empty: there are none, or the guard ended the wait. getaddrinfo() may take minutes and cannot be interrupted, so it
/// runs on a thread that is left behind.
std::vector<std::string> addresses_of(const std::string& host, const SocketGuard& guard) {
  if (is_numeric(host)) return {host};
  const auto resolved = std::make_shared<Resolved>();
  std::thread([resolved, host] { resolve(host, *resolved); }).detach();
  std::unique_lock lock(resolved->mutex);
  if (!guard.wait(resolved->changed, lock, [&] { return resolved->is_done; })) return {};
  return resolved->addresses;
}

httplib::Client client_of(const HttpCall& call) {
  if (!call.unix_socket.empty()) return httplib::Client(call.unix_socket, call.url.port);
  const bool bracketed = call.url.host.find(':') != std::string::npos;
  return httplib::Client(fmt::format("{}://{}{}{}:{}", call.url.https ? "https" : "http", bracketed ? "[" : "",
                                     call.url.host, bracketed ? "]" : "", call.url.port));
}

httplib::Request written(const HttpCall& call) {
  httplib::Request out;
  out.method = call.method;
  out.path = call.url.path;
  out.body = call.body;
  if (!call.unix_socket.empty()) out.set_header("Host", call.url.host);  // otherwise the library would send the path
  out.set_header("User-Agent", "vramtrack");
  out.set_header("Accept-Encoding", "identity");
  for (const auto& [name, value] : call.headers) out.set_header(name, value);
  return out;
}

void set_seconds(httplib::Client& client, double silence_s) {
  const auto whole = static_cast<time_t>(silence_s);
  const auto micros = static_cast<time_t>((silence_s - static_cast<double>(whole)) * 1e6);
  // A host may have several addresses, and the first may not answer.
  constexpr time_t kConnection_s = 10;
  client.set_connection_timeout(std::min(whole, kConnection_s), whole < kConnection_s ? micros : 0);
  client.set_read_timeout(whole, micros);
  client.set_write_timeout(whole, micros);
}

HttpHead head_of(const httplib::Response& answer) {
  HttpHead head;
  head.status = answer.status;
  head.content_type = answer.get_header_value("Content-Type");
  // The other form, a date, is rare.
  const std::string text = answer.get_header_value("Retry-After");
  unsigned wait_s = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), wait_s);
  if (error == std::errc{} && at == text.data() + text.size()) head.retry_after_s = wait_s;
  return head;
}

/// The library has only one word for each error; the person who set the address needs to know what to check.
std::pair<HttpEnd, std::string> end_of(httplib::Error error, std::string_view ca_words) {
  switch (error) {
    case httplib::Error::Connection:
    case httplib::Error::ConnectionTimeout:
      return {HttpEnd::no_connection, "the connection failed; check the address, and that the server is running"};
    case httplib::Error::Read:
      return {HttpEnd::broken_off,
              "the connection was closed, or was silent for too long, before the answer was complete"};
    case httplib::Error::Write:
      return {HttpEnd::broken_off, "the connection was closed while the request was sent"};
    case httplib::Error::SSLConnection:
      return {HttpEnd::tls_failed, "the TLS handshake failed; is it an http:// address?"};
    case httplib::Error::SSLLoadingCerts:
      return {HttpEnd::impossible,
              "the certificates to verify the server with cannot be read; check the file, or the system's"};
    case httplib::Error::SSLServerVerification:
      return {HttpEnd::not_trusted,
              fmt::format("its certificate is not trusted; {} for an authority of your own", ca_words)};
    default:
      return {HttpEnd::broken_off, "the exchange failed: " + httplib::to_string(error)};
  }
}

std::pair<HttpEnd, std::string> end_of(GuardVerdict verdict, const HttpCall& call) {
  if (verdict == GuardVerdict::cancelled) return {HttpEnd::cancelled, "it was interrupted"};
  if (verdict == GuardVerdict::too_large)
    return {HttpEnd::too_large,
            fmt::format("the answer is larger than {}", format_bytes(static_cast<double>(call.most_answer_bytes)))};
  return {HttpEnd::late, fmt::format("no complete answer within {:.3g} s", call.timeout_s)};
}

/// Makes one attempt at one address of the host, or at the Unix socket. Returns why there is no connection, as the
/// errno left by connect(2), which the library does not report.
int try_address(const HttpCall& call, const std::string& address, std::string_view ca_words, const HttpSink& sink,
                SocketGuard& guard, HttpAnswer& out) {
  httplib::Client client = client_of(call);
  if (!client.is_valid()) {
    out.why = "the TLS library cannot be set up";
    return 0;
  }
  set_seconds(client, call.silence_timeout_s > 0 ? std::min(call.silence_timeout_s, call.timeout_s) : call.timeout_s);
  if (call.unix_socket.empty())
    client.set_hostname_addr_map({{call.url.host, address}});
  else
    client.set_address_family(AF_UNIX);
  client.set_socket_options([&guard](socket_t socket) { guard.watch(socket); });
  client.set_follow_location(false);
  client.set_keep_alive(false);
  if (const std::size_t colon = call.user_and_password.find(':'); colon != std::string::npos)
    client.set_basic_auth(call.user_and_password.substr(0, colon), call.user_and_password.substr(colon + 1));
#ifdef CPPHTTPLIB_OPENSSL_SUPPORT
  client.enable_server_certificate_verification(true);
  if (!call.ca_file.empty()) client.set_ca_cert_path(call.ca_file);
#endif
  httplib::Request request = written(call);
  bool is_refused = false;
  bool is_too_large = false;
  std::size_t taken_bytes = 0;
  request.response_handler = [&](const httplib::Response& answer) {
    out.head = head_of(answer);
    guard.head_has_come();
    return true;
  };
  request.content_receiver = [&](const char* data, std::size_t size, std::uint64_t, std::uint64_t) {
    taken_bytes += size;  // a body that a server compressed unasked is larger than what arrived
    is_too_large = taken_bytes > call.most_answer_bytes;
    if (is_too_large || guard.verdict() != GuardVerdict::none) return false;
    if (sink)
      is_refused = !sink({data, size}, out.head);
    else
      out.body.append(data, size);
    return !is_refused;
  };
  httplib::Response answer;
  httplib::Error error = httplib::Error::Success;
  errno = 0;
  const bool is_whole = client.send(request, answer, error);
  const int system_error = errno;
  if (is_whole) out.head = head_of(answer);  // an answer without a body, such as 204, has not set it yet
  const GuardVerdict verdict = is_too_large ? GuardVerdict::too_large : guard.verdict();
  if (verdict != GuardVerdict::none)
    std::tie(out.end, out.why) = end_of(verdict, call);
  else if (is_refused)
    out.end = HttpEnd::refused;
  else if (is_whole)
    std::tie(out.end, out.why) = std::pair(HttpEnd::complete, std::string());
  else
    std::tie(out.end, out.why) = end_of(error, ca_words);
  if (call.unix_socket.empty() || out.end != HttpEnd::no_connection || system_error == 0) return 0;
  out.why = errno_words(system_error);
  return system_error;
}

}  // namespace

HttpAnswer http_exchange(const HttpCall& call, std::string_view ca_words, const HttpSink& sink) {
  HttpAnswer out;
  if (call.url.https && !has_https()) {
    out.why = "this build does not support https, because its cpp-httplib was built without OpenSSL";
    return out;
  }
  try {
    SocketGuard guard({Clock::now() + seconds(call.timeout_s), call.most_answer_bytes + kWireBytes, kMostHeadBytes,
                       call.is_cancelled ? call.is_cancelled : Interrupt::requested, seconds(call.grace_s)});
    const bool is_unix = !call.unix_socket.empty();
    const std::vector<std::string> addresses =
        is_unix ? std::vector{call.unix_socket} : addresses_of(call.url.host, guard);
    std::tie(out.end, out.why) = end_of(httplib::Error::Connection, ca_words);
    int error = 0;
    do {
      // Try the next address only if nothing listens at this one: then no request has been sent.
      for (std::size_t i = 0; i < addresses.size() && out.end == HttpEnd::no_connection; ++i)
        error = try_address(call, addresses[i], ca_words, sink, guard, out);
    } while (error == EAGAIN && guard.pause());  // the queue of a Unix socket is full
    if (out.end == HttpEnd::no_connection && guard.verdict() != GuardVerdict::none)
      std::tie(out.end, out.why) = end_of(guard.verdict(), call);
  } catch (const std::exception& e) {
    out.end = HttpEnd::impossible;
    out.why = e.what();
  }
  return out;
}

std::string status_words(std::string_view server, int status, std::string_view text) {
  return fmt::format("{} answered with status {}{}{}{}", server, status, text.empty() ? "" : ": ", text,
                     status >= 300 && status < 400 ? "; redirects are not followed; give the final address" : "");
}

bool has_https() {
#ifdef CPPHTTPLIB_OPENSSL_SUPPORT
  return true;
#else
  return false;
#endif
}

}  // namespace vramtrack::act
