// Series as JSON: the lines of VictoriaMetrics' /api/v1/export, and the answers of Prometheus's /api/v1/query_range and
// /api/v1/label/NAME/values. One day of a fleet is half a gigabyte of this text, so the numbers are parsed in place.
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
  /// Processes the next bytes. Errors name the line and the column.
  Status take(std::string_view bytes);
  /// Call it at the end: an Error if the answer stops within a line.
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

// `lacks` receives the reason, in the server's words, why the answer is only part of the server's data: "warnings" of
// Thanos and Prometheus, "isPartial" of a VictoriaMetrics cluster. Empty: it is complete.

/// Reads a whole answer with a matrix: {"status": "success", "data": {"result": [{"metric": {...}, "values": [[seconds,
/// "value"], ...]}]}}. Errors name the offset; for the status "error", the Error has the server's message.
Status read_matrix(std::string_view body, const Query& query, const SeriesSink& sink, std::string& lacks);

/// Reads {"status": "success", "data": [{"__name__": "up", "job": "node"}, ...]}.
Result<std::vector<Labels>> read_series(std::string_view body, std::string& lacks);

/// Reads {"status": "success", "data": ["a", "b"]}.
Result<std::vector<std::string>> read_names(std::string_view body, std::string& lacks);

}  // namespace vramtrack::fleet
