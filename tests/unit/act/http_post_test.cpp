#include "act/http_post.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "patience.hpp"

namespace vramtrack::act {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ParseUrl, TakesWhatAWebhookIs) {
  struct Case {
    const char* text;
    bool https;
    const char* host;
    int port;
    const char* path;
    const char* origin;
  };
  for (const Case& c :
       {Case{"http://localhost", false, "localhost", 80, "/", "http://localhost"},
        Case{"http://127.0.0.1:8080/a/b?c=d#e", false, "127.0.0.1", 8080, "/a/b?c=d", "http://127.0.0.1:8080"},
        Case{"https://hooks.slack.com/services/T/B/x", true, "hooks.slack.com", 443, "/services/T/B/x",
             "https://hooks.slack.com"},
        Case{"https://[::1]:8443?q", true, "::1", 8443, "/?q", "https://[::1]:8443"}}) {
    const auto url = parse_url(c.text);
    ASSERT_TRUE(url) << c.text << url.error().message;
    EXPECT_EQ(url->https, c.https);
    EXPECT_EQ(url->host, c.host);
    EXPECT_EQ(url->port, c.port);
    EXPECT_EQ(url->path, c.path);
    EXPECT_EQ(url->origin(), c.origin);
  }
}

TEST(ParseUrl, ErrorsDoNotGiveTheSecretAway) {
  for (const char* text : {"", "ftp://host/s3cret", "host/s3cret", "http://", "http:///s3cret", "http://host:0/s3cret",
                           "http://host:99999/s3cret", "http://host:8x/s3cret", "http://[::1/s3cret",
                           "http://host/s3 cret", "http://host/s3cret\r\nX: y", "http://user:s3cret@host/"}) {
    const auto url = parse_url(text);
    ASSERT_FALSE(url) << text;
    EXPECT_THAT(url.error().message, HasSubstr("address"));
    EXPECT_THAT(url.error().message, Not(HasSubstr("s3")));
  }
}

/// A receiver that accepts one connection, reads a little, and sends the given answer byte by byte.
class Receiver {
 public:
  Receiver(std::string answer, std::chrono::milliseconds between)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket_, 1), 0);
    EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, answer = std::move(answer), between] { serve(answer, between); });
  }
  ~Receiver() {
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
  }
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;
  [[nodiscard]] HttpTarget target(double timeout_s = 10) const {
    return {*parse_url("http://127.0.0.1:" + std::to_string(port_) + "/s3cret"), "t0ken", {}, timeout_s};
  }
  /// Complete once http_post has been answered; otherwise what had arrived before it gave up.
  std::string got() const {
    const std::scoped_lock lock(mutex_);
    return got_;
  }

 private:
  void serve(const std::string& answer, std::chrono::milliseconds between) {
    const int client = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    char part[4096];
    while (got().find("{\"a\":1}") == std::string::npos) {
      const ssize_t n = ::read(client, part, sizeof part);
      if (n <= 0) break;
      const std::scoped_lock lock(mutex_);
      got_.append(part, static_cast<std::size_t>(n));
    }
    if (between.count() == 0) {
      std::string_view rest = answer;
      while (!rest.empty()) {
        const ssize_t n = ::send(client, rest.data(), rest.size(), MSG_NOSIGNAL);
        if (n <= 0) break;
        rest.remove_prefix(static_cast<std::size_t>(n));
      }
    } else {
      for (const char c : answer) {
        if (::send(client, &c, 1, MSG_NOSIGNAL) != 1) break;
        std::this_thread::sleep_for(between);  // the behaviour under test: a slow receiver
      }
    }
    ::close(client);
  }

  int socket_;
  std::uint16_t port_ = 0;
  mutable std::mutex mutex_;  ///< guards got_
  std::string got_;
  std::thread thread_;
};

Outcome post(const HttpTarget& target) {
  const std::atomic<bool> stop{false};
  return http_post(target, "m-1", "{\"a\":1}", stop);
}

std::string answer(const char* status, const std::string& headers = {}) {
  return std::string("HTTP/1.1 ") + status + "\r\nContent-Length: 2\r\n" + headers + "\r\nok";
}

TEST(HttpPost, DeliversWithTheTokenAndOnlyOn2xx) {
  Receiver receiver(answer("204 No Content"), {});
  EXPECT_EQ(post(receiver.target()).kind, Outcome::Kind::delivered);
  EXPECT_THAT(receiver.got(), HasSubstr("POST /s3cret HTTP/1.1\r\n"));
  EXPECT_THAT(receiver.got(), HasSubstr("Authorization: Bearer t0ken\r\n"));
  EXPECT_THAT(receiver.got(), HasSubstr("Idempotency-Key: m-1\r\n"));
  EXPECT_THAT(receiver.got(), HasSubstr("Content-Type: application/json\r\n"));
}

TEST(HttpPost, OtherStatusesAreTriedAgainUnlessTheMessageIsRefused) {
  for (const char* status : {"400 Bad", "413 Long", "415 Type", "422 No"})
    EXPECT_EQ(post(Receiver(answer(status), {}).target()).kind, Outcome::Kind::refused) << status;
  for (const char* status : {"401 Who", "404 Where", "429 Slow", "500 Oh", "503 Later"}) {
    Receiver receiver(answer(status, "Retry-After: 7\r\n"), {});
    const Outcome outcome = post(receiver.target());
    EXPECT_EQ(outcome.kind, Outcome::Kind::retry) << status;
    EXPECT_THAT(outcome.why, HasSubstr(std::string(status).substr(0, 3)));
    EXPECT_THAT(outcome.why, Not(HasSubstr("s3cret")));
    EXPECT_EQ(outcome.retry_after_s, 7.0);
  }
}

TEST(HttpPost, RedirectsAreNotFollowed) {
  Receiver other(answer("200 OK"), {});
  const std::string there = "Location: http://127.0.0.1:" + std::to_string(other.target().url.port) + "/\r\n";
  Receiver receiver(answer("302 Found", there), {});
  const Outcome outcome = post(receiver.target());
  EXPECT_EQ(outcome.kind, Outcome::Kind::retry);
  EXPECT_THAT(outcome.why, HasSubstr("redirect"));
  EXPECT_EQ(other.got(), "");
}

TEST(HttpPost, ASlowReceiverIsLeftAfterTheTimeLimit) {
  const auto begin = std::chrono::steady_clock::now();
  Receiver receiver(answer("200 OK", std::string(400, 'x') + ": y\r\n"), std::chrono::milliseconds(20));
  const Outcome outcome = post(receiver.target(0.4));
  EXPECT_EQ(outcome.kind, Outcome::Kind::retry);
  EXPECT_THAT(outcome.why, HasSubstr("0.4 s"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, patience(std::chrono::seconds(2)));
}

TEST(HttpPost, StopEndsItEarly) {
  Receiver receiver(answer("200 OK", std::string(400, 'x') + ": y\r\n"), std::chrono::milliseconds(20));
  std::atomic<bool> stop{true};
  EXPECT_EQ(http_post(receiver.target(30), "m-1", "{\"a\":1}", stop).kind, Outcome::Kind::retry);
}

TEST(HttpPost, AnEndlessAnswerIsNotReadToItsEnd) {
  Receiver receiver("HTTP/1.1 200 OK\r\n\r\n" + std::string(4 << 20, 'x'), {});
  EXPECT_EQ(post(receiver.target()).kind, Outcome::Kind::delivered);
}

TEST(HttpPost, NobodyThereIsTriedAgain) {
  HttpTarget target = Receiver(answer("200 OK"), {}).target();  // gone by the next line
  const Outcome outcome = post(target);
  EXPECT_EQ(outcome.kind, Outcome::Kind::retry);
  EXPECT_THAT(outcome.why, HasSubstr("127.0.0.1"));
  EXPECT_THAT(outcome.why, HasSubstr("the connection failed"));
  target.url.https = true;
  EXPECT_EQ(post(target).kind, Outcome::Kind::retry);
}

TEST(HttpPost, AReceiverThatSpeaksNoTlsIsNotTrusted) {
  Receiver receiver("HTTP/1.1 200 OK\r\n\r\n", std::chrono::milliseconds(1));
  HttpTarget target = receiver.target(2);
  target.url.https = true;
  EXPECT_EQ(post(target).kind, Outcome::Kind::retry);
  EXPECT_EQ(receiver.got().find("t0ken"), std::string::npos);
}

}  // namespace
}  // namespace vramtrack::act
