// Reader: series from a Prometheus-compatible server, by the way that this server answers best.
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

/// How samples are read, the best first.
enum class ReadPath : std::uint8_t {
  remote_read,   ///< compressed chunks: Prometheus, Mimir, Cortex
  export_lines,  ///< VictoriaMetrics' /api/v1/export
  query_range,   ///< resampled by the server: Thanos, managed services, everybody
};
std::string_view to_string(ReadPath path);

/// One server, and how it is read; nullopt: it has not answered yet.
struct ServerToRead {
  ServerAddress address;
  std::optional<ReadPath> path;
};

/// A server that does not answer now.
struct AwayServer {
  std::string origin;
  HttpFailure failure;
};

/// One server or several, which are read as if they were one. Its functions block, may be called by several threads,
/// and try nothing twice.
class Reader {
 public:
  /// `step_s`: of query_range, the time between two values; others give what is stored.
  Reader(ServerAddress server, ReadPath path, double step_s = 30)
      : servers_({{std::move(server), path}}), step_s_(step_s) {}
  Reader(std::vector<ServerToRead> servers, double step_s) : servers_(std::move(servers)), step_s_(step_s) {}

  /// Asks `server` which of the ways it answers. Costs up to three small requests.
  static tl::expected<ReadPath, HttpFailure> ask(const ServerAddress& server);

  /// Those of its servers that answer now; `away` gets the others. One server whose path is known is not asked. Costs a
  /// small request for each server, up to three where the path is not known yet. Not while another function runs.
  Reader answering(std::vector<AwayServer>& away);

  /// All series of `query`, to `sink`. After a failure, what came before it is a part.
  [[nodiscard]] tl::expected<void, HttpFailure> read(const Query& query, const SeriesSink& sink) const;
  /// The values that the label `name` has in the series that match.
  [[nodiscard]] tl::expected<std::vector<std::string>, HttpFailure> label_values(const std::string& name,
                                                                                 const Query& query) const;

  /// The servers that answered with a part of what they have, and why, in their words: since the last call, of this
  /// reader and its copies. Thanos does so while one of its stores is away.
  [[nodiscard]] std::map<std::string, std::string> take_lacking() const;

  /// The labels of the series that match: no samples.
  [[nodiscard]] tl::expected<std::vector<Labels>, HttpFailure> series(const Query& query) const;

  /// All servers, for messages.
  [[nodiscard]] std::string origin() const;
  /// The paths by which they are read, for messages.
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

/// The matchers as PromQL writes them: {__name__="up",host=~"a|b"}.
std::string selector_of(const Query& query);

/// One of `values`, and nothing else, as a regular expression: "a\\.b|c".
std::string alternation_of(const std::vector<std::string>& values);

}  // namespace vramtrack::fleet
