#include "agent/server/http.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <set>
#include <span>
#include <thread>

#include "agent/server/listen.hpp"
#include "agent/server/message.hpp"
#include "agent/server/pool.hpp"
#include "agent/server/quota.hpp"
#include "agent/server/request_rate.hpp"
#include "agent/server/stream.hpp"
#include "agent/server/waiting_room.hpp"
#include "core/json.hpp"

namespace vramtrack::agent {
namespace {

constexpr int kMostRequestsAConnection = 1000;
/// After this many, the waiting room's guests are served.
constexpr int kAcceptAtOnce = 64;
constexpr int kAcceptNice = -10;  ///< about ten times the share of a thread at nice 0 (sched(7))

Response head_error(ClientStream::Head head) {
  if (head == ClientStream::Head::too_large) return error(431, "head_too_large", "the request's head is too large");
  return error(408, "too_slow", "the request did not arrive in time");
}

}  // namespace

Response text_response(int status, std::string content_type, std::string body) {
  Response out;
  out.status = status;
  out.content_type = std::move(content_type);
  out.body = std::make_shared<const std::string>(std::move(body));
  return out;
}

Response error(int status, std::string_view code, std::string_view message) {
  const Json document = {{"error", {{"code", code}, {"message", message}}}};
  return text_response(status, "application/json", json_text(document));
}

Response refused(int status, std::string_view code, std::string_view message) {
  Response out = error(status, code, message);
  out.headers.emplace_back("Retry-After", std::to_string(kRetryAfterSeconds));
  return out;
}

/// A connection that has a place.
struct Served {
  int fd = -1;
  bool over_unix = false;
  Client client;
  Held held;
  std::string begun;                          ///< the part of its first request that has been read
  std::shared_ptr<const TlsCertificate> tls;  ///< null: plain
  int requests = kMostRequestsAConnection;
};

/// The answer to one request.
struct Reply {
  Response response;
  bool is_head = false;       ///< the body is left out
  bool is_last = true;        ///< the connection is closed after it
  bool leaves_unread = true;  ///< part of the request may be unread
};

struct HttpServer::Core {
  Core(const HttpConfig& given, const Site& given_site)
      : config(given),
        site(given_site),
        room({[this](const Request& request) {
                if (auto refusal = site.admit(request)) return *refusal;
                return site.respond(request);
              },
              [this](WaitingRoom::Guest& guest) { return let_scrape(guest); }}) {}

  ~Core() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    stopped.notify_all();
    if (wake >= 0) {
      const std::uint64_t one = 1;
      [[maybe_unused]] const ssize_t written = ::write(wake, &one, sizeof one);
    }
    if (acceptor.joinable()) acceptor.join();
    {
      const std::lock_guard lock(mutex);
      for (const int fd : open) ::shutdown(fd, SHUT_RDWR);
    }
    pool.reset();
    for (const int fd : {tcp, unix_socket, wake})
      if (fd >= 0) ::close(fd);
    if (unix_socket >= 0) ::unlink(config.socket.c_str());
  }

  void accept_loop() {
    // Decide on admission before other requests are answered. Only privileged users may raise priority.
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kAcceptNice);
    std::vector<pollfd> fds;
    while (!stopping) {
      fds = {{tcp, POLLIN, 0}, {unix_socket, POLLIN, 0}, {wake, POLLIN, 0}};
      room.add_to(fds);
      const int ready = ::poll(fds.data(), fds.size(), room.patience_ms(WaitingRoom::Clock::now()));
      if (ready < 0 && errno == EINTR) continue;
      if (ready < 0) return;
      room.look(std::span(fds).subspan(3), WaitingRoom::Clock::now());
      // Alternate, so that the queue of one listener does not block the other's.
      bool more_tcp = (fds[0].revents & POLLIN) != 0;
      bool more_unix = (fds[1].revents & POLLIN) != 0;
      for (int n = 0; n < kAcceptAtOnce && (more_tcp || more_unix); ++n) {
        more_tcp = more_tcp && accept_one(tcp, false);
        more_unix = more_unix && accept_one(unix_socket, true);
      }
    }
  }

  /// False if no connection is waiting.
  bool accept_one(int listener, bool over_unix) {
    const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      // No descriptors are left, so the connection stays in the queue; retrying at once would burn the processor.
      if (errno == EMFILE || errno == ENFILE) ::poll(nullptr, 0, 100);
      return errno == EINTR || errno == ECONNABORTED;
    }
    if (!over_unix) {
      const int yes = 1;
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      const int bytes = kSendBufferBytes;
      ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    }
    Client client = config.client_of ? config.client_of(fd) : client_of(fd, own_uid);
    Quota::Taken taken = (over_unix ? unix_connections : tcp_connections).take(client.peer);
    if (taken.answer == FairQuota::Answer::granted) {
      begin({fd, over_unix, std::move(client), std::move(taken.held), {}, over_unix ? nullptr : certificate()});
      return true;
    }
    ++refused_count;
    // An answer would need a handshake, which costs more than it protects.
    if (!over_unix && certificate()) {
      ::close(fd);
      return true;
    }
    room.enter({fd, over_unix, std::move(client), taken.answer, {}, {}}, WaitingRoom::Clock::now());
    return true;
  }

  /// Gives a guest of the waiting room that requests /metrics a place for this one request.
  bool let_scrape(WaitingRoom::Guest& guest) {
    Quota::Taken taken = scrape_connections.take(guest.client.peer);
    if (taken.answer != FairQuota::Answer::granted) return false;
    begin({guest.fd, guest.over_unix, guest.client, std::move(taken.held), std::move(guest.begun), nullptr, 1});
    return true;
  }

  [[nodiscard]] std::shared_ptr<const TlsCertificate> certificate() {
    const std::lock_guard lock(mutex);
    return tls;
  }

  void begin(Served given) {
    const auto served = std::make_shared<Served>(std::move(given));
    {
      const std::lock_guard lock(mutex);
      open.insert(served->fd);
    }
    if (!pool->run([this, served] { serve(*served); })) end(*served);
  }

  void end(Served& served) {
    {
      const std::lock_guard lock(mutex);
      open.erase(served.fd);
    }
    ::close(served.fd);
    served.held = {};
  }

  void serve(Served& served) {
    ClientStream stream = served.tls ? ClientStream(served.fd, std::make_unique<TlsSession>(served.tls, served.fd))
                                     : ClientStream(served.fd, std::move(served.begun));
    bool leaves_unread = false;
    for (int n = 1; n <= served.requests && !stopping; ++n) {
      std::string head;
      const auto came = stream.next_head(kIdleSeconds, kRequestSeconds, kMostHeadBytes, head);
      if (came == ClientStream::Head::none) break;
      if (came == ClientStream::Head::complete) {
        ++requests;
        if (!wait_turn(served.client.peer)) break;
      }
      Reply reply = came == ClientStream::Head::complete ? reply_to(served, stream, head) : Reply{head_error(came)};
      reply.is_last = reply.is_last || n == served.requests;
      leaves_unread = reply.leaves_unread;
      if (!send(stream, reply) || reply.is_last) break;
    }
    stream.send_last_chunk();
    if (leaves_unread) stream.linger();
    end(served);
  }

  [[nodiscard]] Reply reply_to(const Served& served, ClientStream& stream, std::string_view head_text) const try {
    auto head = parse_head(head_text, config.most_body_bytes);
    if (!head) return {std::move(head.error())};
    Request& request = head->request;
    request.over_unix = served.over_unix;
    request.uid = served.client.uid;
    request.peer = served.client.peer;
    request.pid_namespace = served.client.pid_namespace;
    const bool is_head = request.method == "HEAD";
    if (auto refusal = site.admit(request)) return {std::move(*refusal), is_head};
    auto body = stream.body(head->body_bytes);
    if (!body) return {head_error(ClientStream::Head::too_slow)};
    request.body = std::move(*body);
    return {site.respond(request), is_head, !head->keeps_alive, false};
  } catch (...) {
    return {error(500, "internal", "this request failed inside the agent")};
  }

  /// False if the client has disconnected or taken too long, or if the server is stopping.
  bool send(ClientStream& stream, const Reply& reply) const {
    const auto write = [&stream](std::string_view bytes) { return stream.write(bytes, kWriteSeconds); };
    const Response& response = reply.response;
    if (!write(response_head(response, reply.is_last))) return false;
    if (reply.is_head) return true;
    if (!response.stream) return !response.body || write(*response.body);
    bool sent = true;
    const Write chunk = [&](std::string_view piece) {
      if (!piece.empty()) sent = sent && write(fmt::format("{:x}\r\n{}\r\n", piece.size(), piece));
      return sent;
    };
    bool has_more = true;
    while (has_more && sent && !stopping) has_more = response.stream(chunk);
    return sent && !has_more && write("0\r\n\r\n");
  }

  /// Delays the answer to a peer that exceeds kRequestsPerSecond. False if the server is stopping.
  bool wait_turn(const Peer& peer) {
    std::unique_lock lock(mutex);
    const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
    const std::chrono::duration<double> wait(rate.wait_s(peer, now.count()));
    return !stopped.wait_for(lock, wait, [this] { return stopping.load(); });
  }

  const HttpConfig config;
  const std::uint32_t own_uid = ::geteuid();
  const Site site;
  WaitingRoom room;
  std::string address;
  int tcp = -1;
  int unix_socket = -1;
  int wake = -1;
  std::atomic<bool> stopping = false;
  std::atomic<std::uint64_t> requests = 0;
  std::atomic<std::uint64_t> refused_count = 0;
  Quota tcp_connections{config.most_tcp_connections, kReservedConnections};
  Quota unix_connections{config.most_unix_connections, kReservedConnections};
  Quota scrape_connections{kScrapeConnections, 0};
  std::mutex mutex;  ///< guards `open`, `rate` and `tls`
  std::shared_ptr<const TlsCertificate> tls = config.tls;
  std::condition_variable stopped;
  std::set<int> open;
  RequestRate rate{kRequestsPerSecond, kRequestsAtOnce};
  std::unique_ptr<Pool> pool = std::make_unique<Pool>();
  std::thread acceptor;
};

HttpServer::HttpServer(std::unique_ptr<Core> core) : core_(std::move(core)) {}
HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpConfig& config, const Site& site) {
  auto core = std::make_unique<Core>(config, site);
  if (!config.listen.empty()) {
    const auto fd = listen_tcp(config.listen);
    if (!fd) return fail(fd.error());
    core->tcp = *fd;
    core->address = listening_address(*fd);
  }
  if (!config.socket.empty()) {
    const auto fd = listen_unix(config.socket, config.socket_for_everybody);
    if (!fd) return fail(fd.error());
    core->unix_socket = *fd;
  }
  core->wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  // The main thread handles signals; this thread creates the serving threads, which inherit its mask.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  Core* running = core.get();
  core->acceptor = std::thread([running] { running->accept_loop(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(core)));
}

void HttpServer::use(std::shared_ptr<const TlsCertificate> tls) {
  const std::lock_guard lock(core_->mutex);
  core_->tls = std::move(tls);
}
const std::string& HttpServer::address() const {
  return core_->address;
}
std::uint64_t HttpServer::requests() const {
  return core_->requests;
}
std::uint64_t HttpServer::refused_connections() const {
  return core_->refused_count;
}
std::size_t HttpServer::connections() const {
  return core_->tcp_connections.taken() + core_->unix_connections.taken() + core_->scrape_connections.taken();
}

}  // namespace vramtrack::agent
