// Reader: reads series from a Prometheus-compatible server, by the best method that the server supports.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/http.hpp"
#include "fleet/remote_read.hpp"

namespace vramtrack::fleet {

/// How samples are read, best method first.
enum class ReadPath : std::uint8_t {
  remote_read,   ///< compressed chunks: Prometheus, Mimir, Cortex
  export_lines,  ///< VictoriaMetrics' /api/v1/export
  query_range,   ///< resampled by the server: Thanos, managed services, all others
};
std::string_view to_string(ReadPath path);

/// One server, and how it is read; nullopt: it has not answered yet.
struct ServerToRead {
  ServerAddress address;
  std::optional<ReadPath> path;
};

/// A server that does not answer at present.
struct AwayServer {
  std::string origin;
  HttpFailure failure;
};

/// One server, or several that are read as if they were one. Its functions block, may be called by several threads, and
/// do not retry.
class Reader {
 public:
  /// `step_s`: for query_range, the time between two values; the other methods return stored samples.
  Reader(ServerAddress server, ReadPath path, double step_s = 30)
      : servers_({{std::move(server), path}}), step_s_(step_s) {}
  Reader(std::vector<ServerToRead> servers, double step_s) : servers_(std::move(servers)), step_s_(step_s) {}

  /// Determines which methods `server` supports. Costs up to three small requests.
  static tl::expected<ReadPath, HttpFailure> ask(const ServerAddress& server);

  /// A reader of the servers that answer now; `away` receives the others. A single server with a known path is not
  /// queried. Costs one small request per server, up to three if its path is unknown. Not during another function.
  Reader answering(std::vector<AwayServer>& away);

  /// Passes all series of `query` to `sink`. After a failure, `sink` has received part of them.
  [[nodiscard]] tl::expected<void, HttpFailure> read(const Query& query, const SeriesSink& sink) const;
  /// The values of the label `name` in the matching series.
  [[nodiscard]] tl::expected<std::vector<std::string>, HttpFailure> label_values(const std::string& name,
                                                                                 const Query& query) const;

  /// The servers that returned only part of their data, with the reason in their words: since the last call, for this
  /// reader and its copies. Thanos does so while one of its stores is away.
  [[nodiscard]] std::map<std::string, std::string> take_lacking() const;

  /// The labels of the matching series, without samples.
  [[nodiscard]] tl::expected<std::vector<Labels>, HttpFailure> series(const Query& query) const;

  /// All servers, for messages.
  [[nodiscard]] std::string origin() const;
  /// The methods by which they are read, for messages.
  [[nodiscard]] std::string paths() const;
  [[nodiscard]] std::size_t servers() const { return servers_.size(); }

 private:
  struct Lacking {
    std::mutex mutex;
    std::map<std::string, std::string> why;  ///< by ServerAddress::origin()
  };
  void lacks(const ServerAddress& server, const std::string& why) const;

  std::vector<ServerToRead> servers_;
  double step_s_;
  std::shared_ptr<Lacking> lacking_ = std::make_shared<Lacking>();
};

/// The matchers in PromQL syntax: {__name__="up",host=~"a|b"}.
std::string selector_of(const Query& query);

/// A regular expression that matches exactly one of `values`: "a\\.b|c".
std::string alternation_of(const std::vector<std::string>& values);

}  // namespace vramtrack::fleet
