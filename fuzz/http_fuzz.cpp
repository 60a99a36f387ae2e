// Any bytes as what a client sends the agent: its server, the real routes and a store behind them. Whatever comes, the
// answers are HTTP, their texts are clean, and the connection ends.
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "agent/server/api.hpp"
#include "core/printable.hpp"
#include "store/store.hpp"

namespace {

using namespace vramtrack;
using namespace vramtrack::agent;

constexpr Timestamp kNow{std::chrono::hours{500'000}};

[[noreturn]] void fail_with(std::string_view why, std::string_view answer) {
  std::fprintf(stderr, "%.*s:\n%.*s\n", static_cast<int>(why.size()), why.data(), static_cast<int>(answer.size()),
               answer.data());
  std::abort();
}

/// An agent that has recorded ten minutes of one GPU and one process, whose names are hostile, and answers.
class Agent {
 public:
  Agent() {
    std::string name = (std::filesystem::temp_directory_path() / "vramtrack-fuzz-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    folder_ = name;
    auto config = std::make_shared<ApiConfig>();
    config->own_uid = ::geteuid();
    config->pid = 99;
    config->host = "node7";
    config->version = "1.2.3";
    config->store_path = folder_ + "/store.db";
    record(config->store_path);
    api_.configure(std::move(config));
    HttpConfig http;
    http.socket = socket_path();
    auto server = HttpServer::start(http, api_.site());
    if (!server) std::abort();
    server_ = std::move(*server);
  }
  ~Agent() {
    server_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  [[nodiscard]] std::string socket_path() const { return folder_ + "/agent.sock"; }

 private:
  void record(const std::string& path) {
    SeriesView device;
    device.key = {Metric::device_used, "GPU-1", 0, 0, {}};
    device.device.id = "GPU-1";
    device.device.name = "GPU \x1b[31m\xff\xc2\x9b\xe2\x80\xae";
    SeriesView process = device;
    process.key = {Metric::process_used, "GPU-1", 42, 4200, {}};
    process.process.emplace();
    process.process->pid = 42;
    process.process->start_ticks = 4200;
    process.process->command = "train\x01\xfe\r\n\xc2\x85";
    Catalog catalog;
    catalog.describe(device.device);
    catalog.describe(*process.process);
    StoreConfig config;
    config.path = path;
    auto store = Store::open(config, catalog, kNow);
    if (!store) std::abort();
    Batch batch;
    for (int second = 0; second < 600; ++second)
      for (const SeriesView* series : {&device, &process})
        batch.samples.push_back({kNow - std::chrono::seconds(600 - second), catalog.intern(series->key),
                                 static_cast<std::uint64_t>(second) << 21U});
    batch.events.push_back(Event{.time = kNow, .kind = Event::Kind::note, .text = "note \x1b]0;\x07\xff"});
    Alert alert;
    alert.series = catalog.intern(process.key);
    alert.raised = kNow - std::chrono::seconds(30);
    alert.finding.because = "it\x9bgrows\xed\xa0\x80";
    if (!(*store)->append(batch) || !(*store)->record(alert) || !(*store)->flush()) std::abort();
    process.alerts.push_back(alert);
    auto view = std::make_shared<View>();
    view->time = kNow;
    view->series = {device, process};
    view->notices.push_back({kNow, "notice \xff\x1b"});
    published_.publish(std::move(view), {});
    published_.close();  // streams end at once
  }

  std::string folder_;
  Published published_;
  Acknowledgements acknowledgements_{""};
  Silences silences_{""};
  Api api_{published_, acknowledgements_, silences_, [] { return kNow; }};
  std::unique_ptr<HttpServer> server_;
};

/// Sends `bytes` and the end, and reads until the server ends the connection.
std::string exchange(const std::string& path, std::string_view bytes) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (fd < 0 || ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) std::abort();
  std::string answer;
  std::string part(65536, '\0');
  if (bytes.empty()) ::shutdown(fd, SHUT_WR);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  for (bool ended = false; !ended;) {
    if (std::chrono::steady_clock::now() > deadline) fail_with("the server holds the connection", answer);
    pollfd wait{fd, static_cast<short>(bytes.empty() ? POLLIN : POLLIN | POLLOUT), 0};
    if (::poll(&wait, 1, 1000) <= 0) continue;  // the fuzzer's timer, perhaps
    if ((wait.revents & ~POLLOUT) != 0) {
      const ssize_t got = ::recv(fd, part.data(), part.size(), 0);
      ended = got == 0 || (got < 0 && errno != EINTR);
      if (got > 0) answer.append(part.data(), static_cast<std::size_t>(got));
    } else {
      const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      bytes.remove_prefix(sent > 0 ? static_cast<std::size_t>(sent) : bytes.size());
      if (bytes.empty()) ::shutdown(fd, SHUT_WR);
    }
  }
  ::close(fd);
  return answer;
}

/// The value of a header of `head`, by the name as the server writes it.
std::string_view header(std::string_view head, std::string_view name) {
  const std::size_t at = head.find(std::string("\r\n").append(name).append(": "));
  if (at == std::string_view::npos) return {};
  head.remove_prefix(at + name.size() + 4);
  return head.substr(0, head.find("\r\n"));
}

/// The agent's own pages are what they are.
bool is_clean(std::string_view type, std::string_view body) {
  if (type == "application/json") return body.empty() || (nlohmann::json::accept(body) && printable_json(body) == body);
  return !(type.starts_with("text/plain") || type == "text/event-stream") || printable_lines(body) == body;
}

/// Takes the answers apart, as far as they can be without the requests: a HEAD's has a length and no body.
void check(std::string_view answer) {
  while (!answer.empty()) {
    if (answer.substr(0, 9) != "HTTP/1.1 ") fail_with("an answer is not HTTP", answer);
    const std::size_t end = answer.find("\r\n\r\n");
    if (end == std::string_view::npos) fail_with("a head without an end", answer);
    const std::string_view head = answer.substr(0, end + 2);
    for (const char c : head)
      if ((c >= 0 && c < ' ' && c != '\r' && c != '\n') || static_cast<unsigned char>(c) >= 0x7f)
        fail_with("a head is not clean", answer);
    answer.remove_prefix(end + 4);
    std::string_view body = answer.substr(0, answer.find("HTTP/1.1 "));
    std::string whole;
    if (header(head, "Transfer-Encoding") == "chunked") {
      while (!answer.empty() && answer[0] != '0') {
        std::size_t bytes = 0;
        std::from_chars(answer.data(), answer.data() + answer.size(), bytes, 16);
        const std::size_t begin = answer.find("\r\n") + 2;
        if (begin < 2 || begin + bytes + 2 > answer.size()) fail_with("a chunk is cut off", answer);
        whole += answer.substr(begin, bytes);
        answer.remove_prefix(begin + bytes + 2);
      }
      if (answer.substr(0, 5) != "0\r\n\r\n") fail_with("chunks without an end", answer);
      answer.remove_prefix(5);
      body = whole;
    } else if (const std::string_view length = header(head, "Content-Length"); !length.empty() && !body.empty()) {
      std::size_t bytes = 0;
      std::from_chars(length.data(), length.data() + length.size(), bytes);
      if (bytes > answer.size()) fail_with("a body is cut off", answer);
      body = answer.substr(0, bytes);
      answer.remove_prefix(bytes);
    } else {
      answer.remove_prefix(body.size());
    }
    if (!is_clean(header(head, "Content-Type"), body)) fail_with("a body is not clean", body);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Agent agent;
  check(exchange(agent.socket_path(), {reinterpret_cast<const char*>(data), size}));
  return 0;
}
