// The server's sockets against clients from several addresses: all of 127/8 is this machine, and each address counts
// separately here.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <functional>
#include <thread>

#include "agent/server/http.hpp"
#include "agent/server/listen.hpp"
#include "agent/server/waiting_room.hpp"

namespace vramtrack::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kHostile = "127.0.0.2";
constexpr const char* kOther = "127.0.0.3";
constexpr const char* kTrusted = "127.0.0.9";

/// A connection that the destructor closes.
class Caller {
 public:
  Caller(const std::string& from, std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval limit{20, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    ::inet_pton(AF_INET, from.c_str(), &address.sin_addr);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    address.sin_port = htons(port);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  Caller(Caller&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Caller& operator=(Caller&&) = delete;
  ~Caller() {
    if (fd_ >= 0) ::close(fd_);
  }
  void send(const std::string& text) const {
    [[maybe_unused]] const ssize_t sent = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
  }
  [[nodiscard]] std::string read_all() const {
    std::string out;
    std::array<char, 4096> chunk{};
    for (ssize_t got = 0; (got = ::recv(fd_, chunk.data(), chunk.size(), 0)) > 0;)
      out.append(chunk.data(), static_cast<std::size_t>(got));
    return out;
  }
  [[nodiscard]] std::string ask(const std::string& path) const {
    send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    return read_all();
  }

 private:
  int fd_;
};

Client by_address(int fd) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size);
  std::array<char, INET_ADDRSTRLEN> text{};
  const std::string name = ::inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  return {std::nullopt, {name, name == kTrusted}};
}

class ServerLimits : public ::testing::Test {
 protected:
  void start(std::size_t most) {
    HttpConfig config;
    config.listen = "127.0.0.1:0";
    config.most_tcp_connections = most;
    config.client_of = by_address;
    auto server = HttpServer::start(
        config, {[](const Request&) { return std::nullopt; },
                 [](const Request& request) { return text_response(200, "text/plain", "answer to " + request.path); }});
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    port_ = parse_listen(server_->address())->second;
  }
  [[nodiscard]] std::string ask(const char* from, const std::string& path) const {
    return Caller(from, port_).ask(path);
  }
  /// Opens `count` connections that send nothing; returns once the server has seen them all.
  void idle(const std::string& from, std::size_t count) {
    const std::uint64_t before = server_->connections() + server_->refused_connections();
    for (std::size_t n = 0; n < count; ++n) callers_.emplace_back(from, port_);
    while (server_->connections() + server_->refused_connections() < before + count) std::this_thread::yield();
  }

  std::unique_ptr<HttpServer> server_;
  std::uint16_t port_ = 0;
  std::vector<Caller> callers_;
};

TEST_F(ServerLimits, OneAddressLeavesTheOthersTheirPlaces) {
  start(16);
  idle(kHostile, 100);
  EXPECT_EQ(server_->connections(), 8U);
  EXPECT_THAT(ask(kOther, "/api"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(ask(kTrusted, "/api"), StartsWith("HTTP/1.1 200 "));
  const std::string refused = ask(kHostile, "/api");
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 429 Too Many Requests\r\n"));
  EXPECT_THAT(refused, HasSubstr("\r\nRetry-After: 1\r\n"));
  EXPECT_THAT(refused, HasSubstr("127.0.0.2 has too many connections open"));
}

TEST_F(ServerLimits, HealthIsAnsweredAndMetricsAreServedThoughAllIsTaken) {
  start(8);
  for (int n = 0; n < 20; ++n) idle("127.0.1." + std::to_string(n + 1), 1);
  EXPECT_EQ(server_->connections(), 8U);
  const std::string full = ask(kOther, "/api");
  EXPECT_THAT(full, StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_THAT(full, HasSubstr("Retry-After: 1"));
  EXPECT_THAT(ask(kOther, "/healthz"), HasSubstr("answer to /healthz"));
  EXPECT_THAT(ask(kOther, "/metrics?x=1"), HasSubstr("answer to /metrics"));
  EXPECT_THAT(ask(kTrusted, "/api"), HasSubstr("answer to /api")) << "the reserve";
}

TEST_F(ServerLimits, TheWaitingRoomIsNotFilledByOne) {
  start(2);
  idle(kHostile, 1);
  idle("127.0.0.4", 1);
  const Caller patient(kOther, port_);  // it sends a request only after hundreds of others have come
  idle(kHostile, 300);
  EXPECT_THAT(patient.ask("/healthz"), HasSubstr("answer to /healthz"));
  EXPECT_THAT(ask(kHostile, "/healthz"), HasSubstr("answer to /healthz"));
}

TEST_F(ServerLimits, WhoAsksNothingIsToldAndClosed) {
  start(2);
  idle(kHostile, 1);
  EXPECT_THAT(Caller(kHostile, port_).read_all(), StartsWith("HTTP/1.1 429 "));
  const Caller endless(kHostile, port_);
  endless.send("GET /" + std::string(20'000, 'x'));
  EXPECT_THAT(endless.read_all(), StartsWith("HTTP/1.1 429 "));
  const Caller nonsense(kHostile, port_);
  nonsense.send("\r\n\r\n");
  EXPECT_THAT(nonsense.read_all(), StartsWith("HTTP/1.1 429 "));
}

TEST_F(ServerLimits, PlacesComeFreeAgain) {
  start(4);
  idle(kHostile, 10);
  callers_.clear();
  while (server_->connections() > 0) std::this_thread::yield();
  EXPECT_THAT(ask(kHostile, "/api"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(ServerLimits, ManyQuickQuestionsTakeTurns) {
  start(16);
  const Caller hasty(kHostile, port_);
  constexpr int kCount = static_cast<int>(HttpServer::kRequestsAtOnce) + 20;
  std::string questions;
  for (int n = 1; n < kCount; ++n) questions += "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const auto begin = std::chrono::steady_clock::now();
  hasty.send(questions + "GET /a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(hasty.read_all(), HasSubstr("answer to /a"));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(180)) << "20 at 100 a second";
}

}  // namespace
}  // namespace vramtrack::agent
