#include "fleet/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "core/percent.hpp"
#include "fleet/json_series.hpp"

namespace vramtrack::fleet {
namespace {

using Failure = HttpFailure;
template <class T>
using Answer = tl::expected<T, Failure>;

constexpr const char* kForm = "application/x-www-form-urlencoded";
/// The limit for answers that are kept as a whole: lists of names, and samples.
constexpr std::size_t kMostNames = std::size_t{64} << 20U;
constexpr std::size_t kMostSamples = std::size_t{256} << 20U;
/// The time limit for an answer without content.
constexpr double kAsked_s = 30;
/// Prometheus refuses more than 11,000 points per series in one answer.
constexpr std::int64_t kMostSteps = 10'000;
/// The limit for a server's message.
constexpr std::size_t kMostWhy = 300;

std::string seconds_of(std::int64_t time_ms) {
  return fmt::format("{}.{:03}", time_ms / 1000, time_ms % 1000);
}

/// Reads a whole answer into memory.
Answer<std::string> whole_answer(const ServerAddress& server, HttpRequest request, std::size_t most_bytes) {
  request.most_answer_bytes = most_bytes;
  std::string body;
  const auto sent = send_request(server, request, [&](std::string_view bytes, const std::string&) -> Status {
    body += bytes;
    return {};
  });
  if (!sent) return tl::unexpected(sent.error());
  return body;
}

tl::unexpected<Failure> unusable(const ServerAddress& server, const Error& error) {
  // Half a document from a server that was stopped also looks damaged, so another attempt is worthwhile.
  return tl::unexpected<Failure>({Failure::Kind::passing, server.origin() + ": " + error.message});
}

HttpRequest read_request(const Query& query) {
  return {"/api/v1/read",
          remote_read_request(query),
          "application/x-protobuf",
          {{"Content-Encoding", "snappy"}, {"X-Prometheus-Remote-Read-Version", "0.1.0"}},
          kMostSamples};
}

HttpRequest export_request(const Query& query) {
  return {"/api/v1/export",
          fmt::format("match%5B%5D={}&start={}&end={}&reduce_mem_usage=1", percent_encoded(selector_of(query)),
                      seconds_of(query.start_ms), seconds_of(query.end_ms)),
          kForm,
          {}};
}

Answer<void> read_remotely(const ServerAddress& server, const Query& query, const SeriesSink& sink) {
  ChunkedAnswer chunks(query, sink);
  std::string sampled;
  bool is_sampled = false;
  const auto sent =
      send_request(server, read_request(query), [&](std::string_view bytes, const std::string& type) -> Status {
        // "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse", or a plain message
        if (type.find("x-streamed-protobuf") != std::string::npos) return chunks.take(bytes);
        if (type.find("protobuf") == std::string::npos)
          return fail(fmt::format("the server answered remote read with \"{}\"", type.substr(0, 80)));
        is_sampled = true;
        sampled += bytes;
        return {};
      });
  if (!sent) return sent;
  const Status read = is_sampled ? read_sampled_answer(sampled, query, sink) : chunks.end();
  if (!read) return unusable(server, read.error());
  return {};
}

Answer<void> read_export(const ServerAddress& server, const Query& query, const SeriesSink& sink) {
  ExportAnswer lines(query, sink);
  const auto sent = send_request(server, export_request(query),
                                 [&](std::string_view bytes, const std::string&) { return lines.take(bytes); });
  if (!sent) return sent;
  if (const Status read = lines.end(); !read) return unusable(server, read.error());
  return {};
}

Answer<void> read_ranges(const ServerAddress& server, double step_s, const Query& query, const SeriesSink& sink,
                         std::string& lacks) {
  const auto step_ms = std::max<std::int64_t>(1000, static_cast<std::int64_t>(step_s * 1000));
  for (std::int64_t start = query.start_ms; start <= query.end_ms; start += kMostSteps * step_ms) {
    const std::int64_t end = std::min(query.end_ms, start + (kMostSteps - 1) * step_ms);
    const HttpRequest request{"/api/v1/query_range",
                              fmt::format("query={}&start={}&end={}&step={}", percent_encoded(selector_of(query)),
                                          seconds_of(start), seconds_of(end), seconds_of(step_ms)),
                              kForm,
                              {}};
    const Answer<std::string> body = whole_answer(server, request, kMostSamples);
    if (!body) return tl::unexpected(body.error());
    if (const Status read = read_matrix(*body, query, sink, lacks); !read) return unusable(server, read.error());
  }
  return {};
}

Answer<void> read_one(const ServerAddress& server, ReadPath path, double step_s, const Query& query,
                      const SeriesSink& sink, std::string& lacks) {
  switch (path) {
    case ReadPath::remote_read:
      return read_remotely(server, query, sink);
    case ReadPath::export_lines:
      return read_export(server, query, sink);
    case ReadPath::query_range:
      break;
  }
  return read_ranges(server, step_s, query, sink, lacks);
}

/// Queries a metric that nobody has: the answer is empty, and shows whether the server supports the request.
Answer<void> read_nothing(const ServerAddress& server, ReadPath path) {
  const Query nothing{{{"__name__", "vramtrack_no_such_metric", false}}, 1000, 2000};
  ServerAddress asked = server;
  asked.timeout_s = std::min(asked.timeout_s, kAsked_s);
  std::string lacks;  // ignored: the next query reports it, too
  return read_one(
      asked, path, 30, nothing, [](const Labels&, const std::vector<Point>&) {}, lacks);
}

}  // namespace

std::string_view to_string(ReadPath path) {
  constexpr std::array<std::string_view, 3> kNames = {"remote-read", "export", "query-range"};
  return kNames[static_cast<std::size_t>(path)];
}

std::string selector_of(const Query& query) {
  std::string out = "{";
  for (const Matcher& m : query.matchers) {
    if (out.size() > 1) out += ',';
    out += m.name + (m.is_regex ? "=~\"" : "=\"");
    for (const char c : m.value) {
      if (c == '"' || c == '\\') out += '\\';
      if (c == '\n')
        out += "\\n";
      else
        out += c;
    }
    out += '"';
  }
  return out + '}';
}

std::string alternation_of(const std::vector<std::string>& values) {
  std::string out;
  for (const std::string& value : values) {
    if (!out.empty()) out += '|';
    for (const char c : value) {
      if (std::string_view(R"(\.+*?()|[]{}^$)").find(c) != std::string_view::npos) out += '\\';
      out += c;
    }
  }
  return out;
}

Answer<ReadPath> Reader::ask(const ServerAddress& server) {
  std::string why;
  for (const ReadPath path : {ReadPath::remote_read, ReadPath::export_lines, ReadPath::query_range}) {
    const auto answered = read_nothing(server, path);
    if (answered) return path;
    if (why.find(answered.error().why) == std::string::npos) why += (why.empty() ? "" : "; ") + answered.error().why;
    // A server that is unreachable or refuses access fails with every method.
    const bool knows_us_not = why.find(" 401") != std::string::npos || why.find(" 403") != std::string::npos;
    const bool is_cancelled = answered.error().kind == Failure::Kind::cancelled;
    if (answered.error().is_away || is_cancelled || knows_us_not)
      return tl::unexpected<Failure>({answered.error().kind, std::move(why)});
  }
  return tl::unexpected<Failure>({Failure::Kind::permanent, std::move(why)});
}

Reader Reader::answering(std::vector<AwayServer>& away) {
  std::vector<ServerToRead> here;
  for (ServerToRead& server : servers_) {
    std::optional<Failure> failure;
    if (!server.path) {
      if (const auto path = ask(server.address))
        server.path = *path;
      else
        failure = path.error();
    } else if (servers_.size() > 1) {
      if (const auto answered = read_nothing(server.address, *server.path); !answered) failure = answered.error();
    }
    if (failure)
      away.push_back({server.address.origin(), std::move(*failure)});
    else
      here.push_back(server);
  }
  Reader out(std::move(here), step_s_);
  out.lacking_ = lacking_;
  return out;
}

void Reader::lacks(const ServerAddress& server, const std::string& why) const {
  if (why.empty()) return;
  const std::scoped_lock lock(lacking_->mutex);
  lacking_->why.try_emplace(server.origin(), why.substr(0, kMostWhy));
}

std::map<std::string, std::string> Reader::take_lacking() const {
  const std::scoped_lock lock(lacking_->mutex);
  return std::exchange(lacking_->why, {});
}

Answer<void> Reader::read(const Query& query, const SeriesSink& sink) const {
  for (const ServerToRead& server : servers_) {
    if (!server.path)
      return tl::unexpected<Failure>({Failure::Kind::passing, server.address.origin() + " has not answered yet"});
    std::string why;
    const auto read = read_one(server.address, *server.path, step_s_, query, sink, why);
    lacks(server.address, why);
    if (!read) return read;
  }
  return {};
}

Answer<std::vector<Labels>> Reader::series(const Query& query) const {
  std::vector<Labels> out;
  // Sent as a form: the names of a hundred pods do not fit into a URL.
  const HttpRequest request{"/api/v1/series",
                            fmt::format("match%5B%5D={}&start={}&end={}", percent_encoded(selector_of(query)),
                                        seconds_of(query.start_ms), seconds_of(query.end_ms)),
                            kForm,
                            {}};
  for (const auto& [server, path] : servers_) {
    const Answer<std::string> body = whole_answer(server, request, kMostNames);
    if (!body) return tl::unexpected(body.error());
    std::string why;
    Result<std::vector<Labels>> series = read_series(*body, why);
    lacks(server, why);
    if (!series) return unusable(server, series.error());
    std::move(series->begin(), series->end(), std::back_inserter(out));
  }
  return out;
}

Answer<std::vector<std::string>> Reader::label_values(const std::string& name, const Query& query) const {
  const HttpRequest request{
      fmt::format("/api/v1/label/{}/values?match%5B%5D={}&start={}&end={}", percent_encoded(name),
                  percent_encoded(selector_of(query)), seconds_of(query.start_ms), seconds_of(query.end_ms)),
      {},
      {},
      {}};
  std::vector<std::string> out;
  for (const auto& [server, path] : servers_) {
    const Answer<std::string> body = whole_answer(server, request, kMostNames);
    if (!body) return tl::unexpected(body.error());
    std::string why;
    Result<std::vector<std::string>> names = read_names(*body, why);
    lacks(server, why);
    if (!names) return unusable(server, names.error());
    std::move(names->begin(), names->end(), std::back_inserter(out));
  }
  if (servers_.size() > 1) {
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
  }
  return out;
}

std::string Reader::origin() const {
  std::string out;
  for (const ServerToRead& server : servers_) out += (out.empty() ? "" : ", ") + server.address.origin();
  return out;
}

std::string Reader::paths() const {
  std::string out;
  for (const ServerToRead& server : servers_) {
    if (!server.path) continue;
    const std::string path(to_string(*server.path));
    if (out.find(path) == std::string::npos) out += (out.empty() ? "" : ", ") + path;
  }
  return out;
}

}  // namespace vramtrack::fleet
