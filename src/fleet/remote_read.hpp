// Prometheus's remote read (https://prometheus.io/docs/prometheus/latest/querying/remote_read_api/): the request, and
// the answer, as frames of compressed chunks or as one compressed message with samples.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "fleet/exporters.hpp"
#include "fleet/packed.hpp"

namespace vramtrack::fleet {

/// name="value", or name=~"value" if `is_regex`.
struct Matcher {
  std::string name;
  std::string value;
  bool is_regex = false;
};

/// All series that match every matcher, from `start_ms` to `end_ms`, inclusive.
struct Query {
  std::vector<Matcher> matchers;
  std::int64_t start_ms = 0;
  std::int64_t end_ms = 0;
};

/// Receives the series as they arrive. A series may come in several pieces, each with its labels; the points of one
/// piece are in the server's order and within the time of the query.
using SeriesSink = std::function<void(const Labels& labels, const std::vector<Point>& points)>;

/// The body of the request, compressed as the protocol requires. It requests chunks, and also accepts samples.
std::string remote_read_request(const Query& query);

/// Reads the streamed answer piece by piece: frames of length, CRC-32C and ChunkedReadResponse. Not thread-safe.
class ChunkedAnswer {
 public:
  /// `sink` must outlive this.
  ChunkedAnswer(const Query& query, const SeriesSink& sink) : query_(query), sink_(sink) {}

  /// Processes the next bytes. After an Error (damaged bytes; it names their offset), further bytes are ignored.
  Status take(std::string_view bytes);
  /// Call it at the end of the answer: an Error if it stops within a frame.
  [[nodiscard]] Status end() const;

 private:
  Status read_frame(std::string_view message);

  Query query_;
  const SeriesSink& sink_;
  std::string pending_;  ///< the beginning of a frame
  std::uint64_t offset_ = 0;
  std::vector<Point> points_;
};

/// One frame of an answer around `message`, in the format of a server. For tests.
std::string framed(std::string_view message);

/// Reads the other form of answer, a whole ReadResponse with samples: servers that cannot stream chunks send it.
Status read_sampled_answer(std::string_view body, const Query& query, const SeriesSink& sink);

}  // namespace vramtrack::fleet
