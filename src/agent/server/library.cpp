#include "agent/server/library.hpp"

#include <httplib.h>

#include <functional>
#include <utility>

namespace vramtrack::agent {
namespace {

constexpr std::size_t kMostPathBytes = 256;

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

}  // namespace

/// Parses and routes; its own sockets are not used.
class Library::Server : public httplib::Server {
 public:
  Server(Site site, std::size_t most_body_bytes) : site_(std::move(site)), most_body_bytes_(most_body_bytes) {
    svr_sock_ = 0;  // INVALID_SOCKET would mean: shutting down, end all streams
    set_payload_max_length(most_body_bytes_);
    set_pre_routing_handler([this](const httplib::Request& in, httplib::Response& out) { return route(in, out); });
    Post(".*", [this](const httplib::Request& in, httplib::Response& out) { write(site_.respond(request(in)), out); });
    set_exception_handler([](const httplib::Request&, httplib::Response& out, const std::exception_ptr&) {
      write(text_response(500, "application/json",
                          R"({"error": {"code": "internal", "message": "this request failed inside the agent"}})"),
            out);
    });
    // What the library itself refuses: a line that is not a request, a body that did not come.
    set_error_handler([](const httplib::Request&, httplib::Response& out) {
      if (t_connection->answered) return;
      t_connection->close = true;
      out.set_content(R"({"error": {"code": "bad_request", "message": "the agent does not understand this request"}})",
                      "application/json");
    });
  }

  bool serve_one(httplib::Stream& stream, bool last, bool& closed) { return process(stream, last, closed); }
  void end_streams() { svr_sock_ = INVALID_SOCKET; }

 private:
  /// The library's, which since 0.16 needs the addresses that it has no socket to ask for.
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
    out.over_unix = t_connection->over_unix;
    out.uid = t_connection->client.uid;
    out.peer = t_connection->client.peer;
    out.pid_namespace = t_connection->client.pid_namespace;
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

  [[nodiscard]] std::optional<Response> refuse(const httplib::Request& in) const {
    const auto bad = [](int status, const char* code, const std::string& message) {
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
        std::stoul(length) > most_body_bytes_)
      return bad(413, "too_large", "a body may have at most " + std::to_string(most_body_bytes_ / 1024) + " KiB");
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
  std::size_t most_body_bytes_;
};

Library::Library(Site site, std::size_t most_body_bytes)
    : server_(std::make_unique<Server>(std::move(site), most_body_bytes)) {}
Library::~Library() = default;

bool Library::serve_one(Connection& connection, bool last) {
  t_connection = &connection;
  connection.answered = false;
  LibraryStream stream(connection.stream);
  bool closed = false;
  const bool served = server_->serve_one(stream, last, closed);
  t_connection = nullptr;
  return served && !closed;
}

void Library::end_streams() {
  server_->end_streams();
}

}  // namespace vramtrack::agent
