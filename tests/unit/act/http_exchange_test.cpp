#include "act/http_exchange.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "../temp_folder.hpp"
#include "host/interrupt.hpp"
#include "host/unix_socket.hpp"
#include "patience.hpp"

namespace vramtrack::act {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// As the console does for the program.
[[maybe_unused]] const auto kNoPipeSignal = std::signal(SIGPIPE, SIG_IGN);

/// A server that handles each connection as given, until it is closed.
class Rogue {
 public:
  using Conduct = std::function<void(int client)>;
  /// `path`: path of a Unix socket; empty: listens on loopback.
  explicit Rogue(Conduct conduct, int backlog = 16, std::string path = {})
      : path_(std::move(path)),
        socket_(::socket(path_.empty() ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)),
        conduct_(std::move(conduct)) {
    if (path_.empty())
      bind_to_loopback();
    else
      bind_to_path();
    EXPECT_EQ(::listen(socket_, backlog), 0);
    if (conduct_)
      thread_ = std::thread([this] {
        for (int client; (client = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
          {
            const std::scoped_lock lock(mutex_);
            client_ = client;
            if (is_over_) ::shutdown(client, SHUT_RDWR);
          }
          conduct_(client);
          const std::scoped_lock lock(mutex_);
          client_ = -1;
          ::close(client);
        }
      });
  }
  ~Rogue() {
    {
      const std::scoped_lock lock(mutex_);
      is_over_ = true;
      ::shutdown(socket_, SHUT_RDWR);
      if (client_ >= 0) ::shutdown(client_, SHUT_RDWR);
    }
    if (thread_.joinable()) thread_.join();
    ::close(socket_);
  }
  Rogue(const Rogue&) = delete;
  Rogue& operator=(const Rogue&) = delete;
  [[nodiscard]] HttpCall call(bool https = false) const {
    HttpCall call;
    call.url = {https, "127.0.0.1", port_, "/"};
    call.unix_socket = path_;
    call.timeout_s = 60;
    return call;
  }
  /// Handles the connections that wait in the queue.
  void handle_waiting(const Conduct& conduct) const {
    for (pollfd one{socket_, POLLIN, 0}; ::poll(&one, 1, 0) > 0;) {
      const int client = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
      conduct(client);
      ::close(client);
    }
  }

 private:
  void bind_to_loopback() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  void bind_to_path() const {
    sockaddr_un address;
    EXPECT_TRUE(unix_address(path_, address));
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }

  std::string path_;
  int socket_;
  std::uint16_t port_ = 0;
  Conduct conduct_;
  std::mutex mutex_;  ///< guards the members below
  int client_ = -1;
  bool is_over_ = false;
  std::thread thread_;
};

bool say(int client, std::string_view text) {
  return ::send(client, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}
void hear(int client) {
  char part[4096];
  (void)!::read(client, part, sizeof part);
}
/// Stays silent until the client closes.
void be_silent(int client) {
  char part[4096];
  while (::read(client, part, sizeof part) > 0) {
  }
}
void never_end(int client, std::string_view head, const std::string& what) {
  hear(client);
  if (!say(client, head)) return;
  while (say(client, what)) {
  }
}

HttpAnswer ask(const HttpCall& call) {
  return http_exchange(call, "pass --ca-file");
}

/// The result of `call`, which must come soon.
HttpAnswer soon(const HttpCall& call) {
  const auto begun = Clock::now();
  HttpAnswer answer = ask(call);
  EXPECT_LT(Clock::now() - begun, patience(3s)) << answer.why;
  return answer;
}

TEST(HttpExchange, AWholeAnswer) {
  Rogue server([](int client) {
    hear(client);
    say(client, "HTTP/1.1 429 Slow\r\nContent-Type: text/x\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\nok");
  });
  std::string body;
  const HttpAnswer answer = http_exchange(server.call(), "", [&](std::string_view bytes, const HttpHead& head) {
    EXPECT_EQ(head.status, 429);
    body += bytes;
    return true;
  });
  EXPECT_EQ(answer.end, HttpEnd::complete);
  EXPECT_EQ(answer.head.content_type, "text/x");
  EXPECT_EQ(answer.head.retry_after_s, 7);
  EXPECT_EQ(body, "ok");
}

TEST(HttpExchange, ANameIsResolved) {
  Rogue server([](int client) {
    hear(client);
    say(client, "HTTP/1.1 204 No Content\r\n\r\n");
  });
  HttpCall call = server.call();
  call.url.host = "localhost";  // this may be ::1 first, where nobody listens
  EXPECT_EQ(soon(call).head.status, 204);
}

TEST(HttpExchange, AServerAtAUnixSocket) {
  const TempFolder folder;
  std::string asked;
  Rogue server(
      [&asked](int client) {
        char part[4096];
        asked.assign(part, static_cast<std::size_t>(std::max<ssize_t>(::read(client, part, sizeof part), 0)));
        say(client, "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone");
      },
      16, folder.file("socket"));
  HttpCall call = server.call();
  call.url = {false, "localhost", 80, "/x?a=%20"};
  const HttpAnswer answer = soon(call);
  EXPECT_EQ(answer.end, HttpEnd::complete) << answer.why;
  EXPECT_EQ(answer.head.status, 404);
  EXPECT_EQ(answer.body, "none") << "there is no sink";
  EXPECT_THAT(asked, StartsWith("GET /x?a=%20 HTTP/1.1\r\n"));
  EXPECT_THAT(asked, HasSubstr("\r\nHost: localhost\r\n"));
}

TEST(HttpExchange, NobodyAtAUnixSocket) {
  const TempFolder folder;
  HttpCall call;
  call.unix_socket = folder.file("nobody");
  const HttpAnswer answer = soon(call);
  EXPECT_EQ(answer.end, HttpEnd::no_connection);
  EXPECT_EQ(answer.why, "No such file or directory");
}

TEST(HttpExchange, AUnixSocketWhoseQueueIsFullIsWaitedFor) {
  const TempFolder folder;
  const Rogue server({}, 0, folder.file("socket"));
  HttpCall call = server.call();
  std::vector<int> others;
  for (int other; (other = connect_unix(call.unix_socket)) >= 0;) others.push_back(other);
  call.timeout_s = 0.1;
  EXPECT_EQ(soon(call).end, HttpEnd::late);
  call.timeout_s = 60;
  int looks = 0;
  call.is_cancelled = [&] {
    if (++looks == 3)
      for (const int other : others) ::close(other);
    if (looks >= 3)
      server.handle_waiting([](int client) {
        hear(client);
        say(client, "HTTP/1.1 204 No Content\r\n\r\n");
      });
    return false;
  };
  const HttpAnswer answer = soon(call);
  EXPECT_EQ(answer.head.status, 204) << answer.why;
}

TEST(HttpExchange, AnswersWithoutEndAreTooLarge) {
  const std::string much(1 << 16, 'x');
  const std::vector<std::pair<std::string, std::string>> servers = {
      {"HTTP/1.1 200 OK\r\n\r\n", much},                                                        // a body
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "10\r\n0123456789abcdef\r\n"},  // chunks
      {"HTTP/1.1 200 OK\r\n", "X-Header: " + std::string(1000, 'y') + "\r\n"},                  // headers
      {"HTTP/1.1 200 OK\r\nX-Header: ", much},                                                  // one header
      {"HTTP/1.1 ", much},                                                                      // a status line
  };
  for (const auto& sent : servers) {
    Rogue server([&](int client) { never_end(client, sent.first, sent.second); });
    HttpCall call = server.call();
    call.most_answer_bytes = 1 << 20;
    const HttpAnswer answer = soon(call);
    EXPECT_TRUE(answer.end == HttpEnd::too_large || answer.end == HttpEnd::broken_off) << sent.first << answer.why;
  }
}

TEST(HttpExchange, OneDeadlineForAllOfIt) {
  const auto drip = [](std::string_view text) {
    return [text](int client) {
      hear(client);
      for (std::size_t i = 0; say(client, text.substr(i % text.size(), 1)); ++i)
        std::this_thread::sleep_for(20ms);  // the behaviour under test: a server that drips
    };
  };
  for (const char* text :
       {"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nxxxxxxxxxx", "HTTP/1.1 200 OK\r\nX: yyyyy"}) {
    Rogue server(drip(text));
    HttpCall call = server.call();
    call.timeout_s = 0.3;
    const HttpAnswer answer = soon(call);
    EXPECT_EQ(answer.end, HttpEnd::late) << answer.why;
    EXPECT_THAT(answer.why, HasSubstr("0.3 s"));
  }
}

TEST(HttpExchange, SilenceHasALimitOfItsOwn) {
  Rogue server(be_silent);
  HttpCall call = server.call();
  call.silence_timeout_s = 0.2;
  EXPECT_EQ(soon(call).end, HttpEnd::broken_off);
}

/// Calls that wait for an answer, a handshake or a connection.
std::vector<std::pair<HttpCall, std::shared_ptr<void>>> waits() {
  std::vector<std::pair<HttpCall, std::shared_ptr<void>>> out;
  const auto add = [&out](std::shared_ptr<Rogue> server, bool https) {
    out.emplace_back(server->call(https), std::move(server));
  };
  add(std::make_shared<Rogue>(be_silent), false);
  add(std::make_shared<Rogue>(be_silent), true);
  add(std::make_shared<Rogue>([](int client) { never_end(client, "HTTP/1.1 200 OK\r\n\r\n", "x"); }), false);
  return out;
}

TEST(HttpExchange, ACancellationEndsWhateverItWaitsFor) {
  for (auto& [call, server] : waits()) {
    if (call.url.https && !has_https()) continue;
    std::atomic<bool> stop{false};
    call.is_cancelled = [&stop] { return stop.load(); };
    std::thread later([&stop] {
      std::this_thread::sleep_for(100ms);  // while it waits
      stop = true;
    });
    EXPECT_EQ(soon(call).end, HttpEnd::cancelled);
    later.join();
  }
}

TEST(HttpExchange, AConnectionThatDoesNotComeAboutIsCancelled) {
  // Nobody accepts, and the queue is full: the kernel does not answer.
  Rogue server({}, 0);
  HttpCall call = server.call();
  std::vector<int> others;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(call.url.port);
  for (int i = 0; i < 4; ++i) {
    others.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    (void)!::connect(others.back(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  call.is_cancelled = [] { return true; };
  EXPECT_EQ(soon(call).end, HttpEnd::cancelled);
  for (const int other : others) ::close(other);
}

TEST(HttpExchange, AnInterruptOfTheProcessCancels) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const Interrupt interrupt;
    Rogue server(be_silent);
    std::thread later([signal] {
      std::this_thread::sleep_for(100ms);  // while it waits
      ::kill(::getpid(), signal);          // to any thread
    });
    EXPECT_EQ(soon(server.call()).end, HttpEnd::cancelled);
    later.join();
  }
}

TEST(HttpExchange, AChangeIsWaitedForALittle) {
  Rogue server([](int client) {
    hear(client);
    std::this_thread::sleep_for(200ms);  // it is cancelled before it answers
    say(client, "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
  });
  HttpCall call = server.call();
  call.method = "POST";
  call.is_cancelled = [] { return true; };
  call.grace_s = 30;
  EXPECT_EQ(soon(call).head.status, 201);
}

TEST(HttpExchange, AStatusInWords) {
  EXPECT_EQ(status_words("http://a", 503), "http://a answered with status 503");
  EXPECT_EQ(status_words("it", 301, "Moved"),
            "it answered with status 301: Moved; redirects are not followed; give the final address");
}

TEST(HttpExchange, ASinkThatRefusesEndsIt) {
  Rogue server([](int client) { never_end(client, "HTTP/1.1 200 OK\r\n\r\n", "x"); });
  EXPECT_EQ(http_exchange(server.call(), "", [](std::string_view, const HttpHead&) { return false; }).end,
            HttpEnd::refused);
}

}  // namespace
}  // namespace vramtrack::act
