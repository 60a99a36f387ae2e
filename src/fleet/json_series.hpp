// Series as JSON: the lines of VictoriaMetrics' /api/v1/export, and the answers of Prometheus's /api/v1/query_range and
// /api/v1/label/NAME/values. A fleet's day is half a gigabyte of this text, so the numbers are read in place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "fleet/remote_read.hpp"

namespace vramtrack::fleet {

/// Reads the export piece by piece: one object per line, {"metric": {...}, "values": [...], "timestamps": [...]}.
class ExportAnswer {
 public:
  /// `sink` must outlive this.
  ExportAnswer(const Query& query, const SeriesSink& sink) : query_(query), sink_(sink) {}
  /// Takes the next bytes. Errors name the line and the column.
  Status take(std::string_view bytes);
  /// At the end: an Error when it stops within a line.
  [[nodiscard]] Status end() const;

 private:
  Status read_line(std::string_view line);

  Query query_;
  const SeriesSink& sink_;
  std::string pending_;
  std::uint64_t line_ = 0;
  std::vector<Point> points_;
  std::vector<double> values_;
};

// `lacks` gets why the answer is a part of what the server has, in its words: "warnings" of Thanos and Prometheus,
// "isPartial" of VictoriaMetrics' cluster. Empty: it is whole.

/// Reads a whole answer with a matrix: {"status": "success", "data": {"result": [{"metric": {...}, "values":
/// [[seconds, "value"], ...]}]}}. Errors name the offset; a status of "error" is an Error with the server's words.
Status read_matrix(std::string_view body, const Query& query, const SeriesSink& sink, std::string& lacks);

/// Reads {"status": "success", "data": [{"__name__": "up", "job": "node"}, ...]}.
Result<std::vector<Labels>> read_series(std::string_view body, std::string& lacks);

/// Reads {"status": "success", "data": ["a", "b"]}.
Result<std::vector<std::string>> read_names(std::string_view body, std::string& lacks);

}  // namespace vramtrack::fleet
