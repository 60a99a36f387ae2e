// Prometheus's remote read (https://prometheus.io/docs/prometheus/latest/querying/remote_read_api/): the request, and
// what comes back: frames of compressed chunks, or one compressed message with samples.
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

/// name="value", or name=~"value" where `is_regex`.
struct Matcher {
  std::string name;
  std::string value;
  bool is_regex = false;
};

/// All series that all matchers hold for, from `start_ms` to `end_ms`, both included.
struct Query {
  std::vector<Matcher> matchers;
  std::int64_t start_ms = 0;
  std::int64_t end_ms = 0;
};

/// Gets the series as they come. A series may come in several pieces, each with its labels; the points of one piece are
/// in the server's order and lie within the query's time.
using SeriesSink = std::function<void(const Labels& labels, const std::vector<Point>& points)>;

/// The body of the request, compressed as the protocol wants it. It asks for chunks, and accepts samples.
std::string remote_read_request(const Query& query);

/// Reads the streamed answer piece by piece: frames of a length, a CRC-32C and a ChunkedReadResponse. Not thread-safe.
class ChunkedAnswer {
 public:
  /// `sink` must outlive this.
  ChunkedAnswer(const Query& query, const SeriesSink& sink) : query_(query), sink_(sink) {}

  /// Takes the next bytes of the answer. After an Error (damaged bytes; it names their offset) nothing more is read.
  Status take(std::string_view bytes);
  /// At the end of the answer: an Error when it stops within a frame.
  [[nodiscard]] Status end() const;

 private:
  Status read_frame(std::string_view message);

  Query query_;
  const SeriesSink& sink_;
  std::string pending_;  ///< the beginning of a frame
  std::uint64_t offset_ = 0;
  std::vector<Point> points_;
};

/// One frame of an answer around `message`, as a server sends it: for those who test.
std::string framed(std::string_view message);

/// Reads the other answer, a whole ReadResponse with samples: what servers send that cannot stream chunks.
Status read_sampled_answer(std::string_view body, const Query& query, const SeriesSink& sink);

}  // namespace vramtrack::fleet
