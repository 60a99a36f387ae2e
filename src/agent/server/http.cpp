#include "agent/server/http.hpp"

#include <fcntl.h>
#include <httplib.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "agent/server/listen.hpp"
#include "agent/server/peer.hpp"
#include "agent/server/pool.hpp"
#include "agent/server/stream.hpp"

namespace vramtrack::agent {
namespace {

constexpr std::size_t kMostHeadBytes = HttpServer::kMostRequestBytes - HttpServer::kMostBodyBytes;
constexpr std::size_t kMostPathBytes = 256;
constexpr int kMostRequestsAConnection = 1000;

/// What is known of the connection that this thread serves.
struct Connection {
  ClientStream stream;
  bool over_unix = false;
  bool answered = false;  ///< by the site, so that the library's own errors are told from its
  bool close = false;     ///< after this answer: something of the request may be unread
  std::optional<std::optional<std::uint32_t>> uid;
};
thread_local Connection* t_connection = nullptr;

/// ClientStream as the library sees it.
class LibraryStream : public httplib::Stream {
 public:
  explicit LibraryStream(ClientStream& stream) : stream_(stream) {}
  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* into, std::size_t size) override { return stream_.read(into, size); }
  ssize_t write(const char* bytes, std::size_t size) override {
    return stream_.write({bytes, size}, HttpServer::kWriteSeconds) ? static_cast<ssize_t>(size) : -1;
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return stream_.fd(); }

 private:
  ClientStream& stream_;
};

/// Parses and routes; its own sockets are not used.
class Library : public httplib::Server {
 public:
  explicit Library(Site site) : site_(std::move(site)) {
    svr_sock_ = 0;  // INVALID_SOCKET would mean: shutting down, end all streams
    set_payload_max_length(HttpServer::kMostBodyBytes);
    set_pre_routing_handler([this](const httplib::Request& in, httplib::Response& out) { return route(in, out); });
    Post(".*", [this](const httplib::Request& in, httplib::Response& out) { write(site_.respond(request(in)), out); });
    set_exception_handler([](const httplib::Request&, httplib::Response& out, const std::exception_ptr&) {
      write(text_response(500, "application/json",
                          R"({"error": {"code": "internal", "message": "this request failed inside the agent"}})"),
            out);
    });
    // What the library itself refuses: a line that is no request, a body that did not come.
    set_error_handler([](const httplib::Request&, httplib::Response& out) {
      if (t_connection->answered) return;
      t_connection->close = true;
      out.set_content(R"({"error": {"code": "bad_request", "message": "this is no request the agent understands"}})",
                      "application/json");
    });
  }

  bool serve_one(httplib::Stream& stream, bool last, bool& closed) { return process(stream, last, closed); }
  void end_streams() { svr_sock_ = INVALID_SOCKET; }

 private:
  /// The library's, which since 0.16 wants to be told the addresses that it has no socket to ask for.
  template <class Stream>
  bool process(Stream& stream, bool last, bool& closed) {
    const std::function<void(httplib::Request&)> as_it_is;
    if constexpr (requires { this->process_request(stream, last, closed, as_it_is); })
      return this->process_request(stream, last, closed, as_it_is);
    else
      return this->process_request(stream, std::string(), 0, std::string(), 0, last, closed, as_it_is);
  }
  static Request request(const httplib::Request& in) {
    Request out;
    out.method = in.method;
    out.path = in.path;
    out.query = {in.params.begin(), in.params.end()};
    out.host = in.get_header_value("Host");
    out.origin = in.get_header_value("Origin");
    out.authorization = in.get_header_value("Authorization");
    out.content_type = in.get_header_value("Content-Type");
    out.if_none_match = in.get_header_value("If-None-Match");
    out.body = in.body;
    Connection* connection = t_connection;
    out.over_unix = connection->over_unix;
    out.uid = [connection] {
      if (!connection->uid) connection->uid = peer_uid(connection->stream.fd());
      return *connection->uid;
    };
    return out;
  }

  static void write(const Response& in, httplib::Response& out) {
    t_connection->answered = true;
    out.status = in.status;
    for (const auto& header : in.headers) out.set_header(header.first.c_str(), header.second);
    if (in.stream) {
      out.set_chunked_content_provider(
          in.content_type.c_str(), [stream = in.stream](std::size_t, httplib::DataSink& sink) {
            bool sent = true;
            const bool more =
                stream([&](std::string_view piece) { return sent = sent && sink.write(piece.data(), piece.size()); });
            if (sent && !more) sink.done();
            return sent;
          });
    } else if (in.body && !in.body->empty()) {
      // Not copied: a hundred clients may be sent the same view.
      out.set_content_provider(in.body->size(), in.content_type.c_str(),
                               [body = in.body](std::size_t offset, std::size_t length, httplib::DataSink& sink) {
                                 return sink.write(body->data() + offset, length);
                               });
    }
  }

  static std::optional<Response> refuse(const httplib::Request& in) {
    const auto bad = [](int status, const char* code, const char* message) {
      return text_response(status, "application/json",
                           std::string(R"({"error": {"code": ")") + code + R"(", "message": ")" + message + R"("}})");
    };
    if (in.path.size() > kMostPathBytes) return bad(414, "path_too_long", "the path is too long");
    if (in.method != "GET" && in.method != "HEAD" && in.method != "POST" && in.method != "DELETE")
      return bad(405, "method", "the agent supports GET, HEAD, POST and DELETE");
    if (in.has_header("Transfer-Encoding") || in.get_header_value_count("Content-Length") > 1)
      return bad(411, "length_required", "send a body with one Content-Length");
    if (in.get_header_value_count("Host") > 1) return bad(400, "bad_host", "more than one Host header");
    const std::string length = in.get_header_value("Content-Length");
    if (in.method != "POST") {
      if (!length.empty() && length != "0") return bad(400, "unexpected_body", "only POST may have a body");
      return std::nullopt;
    }
    if (length.empty()) return bad(411, "length_required", "POST needs a Content-Length");
    if (length.size() > 7 || length.find_first_not_of("0123456789") != std::string::npos ||
        std::stoul(length) > HttpServer::kMostBodyBytes)
      return bad(413, "too_large", "a body may have at most 64 KiB");
    // The library would unpack it, to any size; and a form is nothing that the agent takes.
    if (in.has_header("Content-Encoding"))
      return bad(415, "content_encoding", "send the body without a Content-Encoding");
    if (in.get_header_value("Content-Type").rfind("application/json", 0) != 0)
      return bad(415, "content_type", "send Content-Type: application/json");
    return std::nullopt;
  }

  HandlerResponse route(const httplib::Request& in, httplib::Response& out) const {
    std::optional<Response> refused = refuse(in);
    if (!refused) refused = site_.admit(request(in));
    if (refused) {
      t_connection->close = true;
      write(*refused, out);
      return HandlerResponse::Handled;
    }
    if (in.method == "POST") return HandlerResponse::Unhandled;  // its body is read first
    write(site_.respond(request(in)), out);
    return HandlerResponse::Handled;
  }

  Site site_;
};

constexpr std::string_view kBusy =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: 83\r\nConnection: "
    "close\r\n\r\n"
    "{\"error\": {\"code\": \"busy\", \"message\": \"too many connections are open; try again\"}}\n";

std::string_view head_error(ClientStream::Head head) {
  if (head == ClientStream::Head::too_large)
    return "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
  if (head == ClientStream::Head::too_slow)
    return "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
  return {};
}

}  // namespace

Response text_response(int status, std::string content_type, std::string body) {
  Response out;
  out.status = status;
  out.content_type = std::move(content_type);
  out.body = std::make_shared<const std::string>(std::move(body));
  return out;
}

struct HttpServer::Core {
  explicit Core(Site site) : library(std::move(site)) {}

  ~Core() {
    stopping = true;
    if (wake >= 0) {
      const std::uint64_t one = 1;
      [[maybe_unused]] const ssize_t written = ::write(wake, &one, sizeof one);
    }
    if (acceptor.joinable()) acceptor.join();
    library.end_streams();
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
    while (!stopping) {
      pollfd fds[] = {{tcp, POLLIN, 0}, {unix_socket, POLLIN, 0}, {wake, POLLIN, 0}};
      if (::poll(fds, 3, -1) < 0 && errno != EINTR) return;
      if ((fds[0].revents & POLLIN) != 0) accept_one(tcp, false);
      if ((fds[1].revents & POLLIN) != 0) accept_one(unix_socket, true);
    }
  }

  void accept_one(int listener, bool over_unix) {
    const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      // No descriptors left: the connection stays in the queue; looking again at once would burn the processor.
      if (errno == EMFILE || errno == ENFILE) ::poll(nullptr, 0, 100);
      return;
    }
    std::atomic<std::size_t>& count = over_unix ? unix_count : tcp_count;
    const std::size_t most = over_unix ? config.most_unix_connections : config.most_tcp_connections;
    if (count >= most) {
      refuse(fd);
      return;
    }
    if (!over_unix) {
      const int yes = 1;
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    }
    ++count;
    {
      const std::lock_guard lock(mutex);
      open.insert(fd);
    }
    if (pool->run([this, fd, over_unix] { serve(fd, over_unix); })) return;
    forget(fd, over_unix);
  }

  void refuse(int fd) {
    ++refused;
    [[maybe_unused]] const ssize_t sent = ::send(fd, kBusy.data(), kBusy.size(), MSG_NOSIGNAL);
    ::close(fd);
  }

  void forget(int fd, bool over_unix) {
    {
      const std::lock_guard lock(mutex);
      open.erase(fd);
    }
    ::close(fd);
    --(over_unix ? unix_count : tcp_count);
  }

  void serve(int fd, bool over_unix) {
    Connection connection{.stream = ClientStream(fd), .over_unix = over_unix, .uid = {}};
    t_connection = &connection;
    LibraryStream stream(connection.stream);
    bool closed = false;
    for (int n = 1; n <= kMostRequestsAConnection && !closed && !connection.close && !stopping; ++n) {
      const auto head = connection.stream.next_head(kIdleSeconds, kRequestSeconds, kMostHeadBytes, kMostBodyBytes);
      if (head != ClientStream::Head::complete) {
        if (const std::string_view answer = head_error(head); !answer.empty()) {
          connection.stream.write(answer, 1);
          connection.close = true;
        }
        break;
      }
      ++requests;
      connection.answered = false;
      if (!library.serve_one(stream, n == kMostRequestsAConnection, closed)) break;
    }
    if (connection.close) connection.stream.linger();
    t_connection = nullptr;
    forget(fd, over_unix);
  }

  HttpConfig config;
  Library library;
  std::string address;
  int tcp = -1;
  int unix_socket = -1;
  int wake = -1;
  std::atomic<bool> stopping = false;
  std::atomic<std::uint64_t> requests = 0;
  std::atomic<std::uint64_t> refused = 0;
  std::atomic<std::size_t> tcp_count = 0;
  std::atomic<std::size_t> unix_count = 0;
  std::mutex mutex;  ///< of `open`
  std::set<int> open;
  std::unique_ptr<Pool> pool = std::make_unique<Pool>();
  std::thread acceptor;
};

HttpServer::HttpServer(std::unique_ptr<Core> core) : core_(std::move(core)) {}
HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpConfig& config, Site site) {
  auto core = std::make_unique<Core>(std::move(site));
  core->config = config;
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
  // Signals are the main thread's; the threads that serve are made by this one and inherit its mask.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  Core* running = core.get();
  core->acceptor = std::thread([running] { running->accept_loop(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(core)));
}

const std::string& HttpServer::address() const {
  return core_->address;
}
std::uint64_t HttpServer::requests() const {
  return core_->requests;
}
std::uint64_t HttpServer::refused_connections() const {
  return core_->refused;
}
std::size_t HttpServer::connections() const {
  return core_->tcp_count + core_->unix_count;
}

}  // namespace vramtrack::agent
