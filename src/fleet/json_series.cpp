#include "fleet/json_series.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/number_text.hpp"
#include "fleet/json_cursor.hpp"

namespace vramtrack::fleet {
namespace {

/// A series over a week with a scrape every second takes 20 MB.
constexpr std::size_t kMostLine = 256U * 1024 * 1024;

bool read_labels(JsonCursor& in, Labels& out) {
  out.clear();
  return in.object([&](const std::string& name) {
    std::string value;
    if (!in.text(value)) return false;
    out.emplace_back(name, std::move(value));
    return true;
  });
}

bool lies_within(const Query& query, std::int64_t time_ms) {
  return time_ms >= query.start_ms && time_ms <= query.end_ms;
}

/// Converts seconds from a JSON number to milliseconds; false: not a valid time.
bool to_ms(double seconds, std::int64_t& out) {
  if (!(std::abs(seconds) < 1e12)) return false;
  out = std::llround(seconds * 1000);
  return true;
}

double number_of(const std::string& text) {
  return parse_number<double>(text).value_or(std::numeric_limits<double>::quiet_NaN());
}

/// The error that a failed server reports.
struct Outcome {
  std::string status;
  std::string error;
};

void add_once(std::string& lacks, const std::string& warning) {
  if (lacks.find(warning) == std::string::npos) lacks += (lacks.empty() ? "" : "; ") + warning;
}

/// Reads {"status": ..., "data": DATA, ...}: `data` must read the value.
template <class Data>
Status read_answer(std::string_view body, std::string& lacks, Data data) {
  JsonCursor in(body);
  Outcome outcome;
  std::string warning;
  bool is_partial = false;
  const bool read = in.object([&](const std::string& key) {
    if (key == "status") return in.text(outcome.status);
    if (key == "error") return in.text(outcome.error);
    if (key == "data") return data(in);
    if (key == "warnings")
      return in.array([&] { return in.text(warning) && (add_once(lacks, warning), true); }) || in.skip();
    if (key == "isPartial" && in.truth(is_partial)) {
      if (is_partial) add_once(lacks, "part of its storage did not answer");
      return true;
    }
    return in.skip();
  });
  if (outcome.status == "error")
    return fail(
        fmt::format("the server reports: {}", outcome.error.empty() ? "error, without a reason" : outcome.error));
  if (!read)
    return fail(
        fmt::format("the answer is not what Prometheus's API returns (at byte {} of {})", in.offset(), body.size()));
  if (outcome.status != "success") return fail("the answer has no \"status\": \"success\"");
  return {};
}

}  // namespace

Status ExportAnswer::take(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t newline = bytes.find('\n');
    if (newline == std::string_view::npos) {
      if (pending_.size() + bytes.size() > kMostLine)
        return fail(fmt::format("line {} of the export is longer than 256 MiB; scan a shorter period", line_ + 1));
      pending_ += bytes;
      return {};
    }
    ++line_;
    std::string_view line = bytes.substr(0, newline);
    if (!pending_.empty()) {
      pending_ += line;
      line = pending_;
    }
    if (const Status read = read_line(line); !read) return read;
    pending_.clear();
    bytes.remove_prefix(newline + 1);
  }
  return {};
}

Status ExportAnswer::end() const {
  if (pending_.empty()) return {};
  return fail(fmt::format("the export ends within line {}", line_ + 1));
}

Status ExportAnswer::read_line(std::string_view line) {
  JsonCursor in(line);
  if (in.at_end()) return {};
  Labels labels;
  values_.clear();
  points_.clear();
  const bool read = in.object([&](const std::string& key) {
    if (key == "metric") return read_labels(in, labels);
    if (key == "values")
      return in.array([&] {
        // "NaN" and "Infinity" are strings, because JSON has no such numbers.
        std::string word;
        double value = std::numeric_limits<double>::quiet_NaN();
        if (!in.number(value) && !in.text(word)) return false;
        values_.push_back(value);
        return true;
      });
    if (key == "timestamps")
      return in.array([&] {
        double time_ms = 0;
        if (!in.number(time_ms) || !(std::abs(time_ms) < 1e15)) return false;
        points_.push_back({static_cast<std::int64_t>(time_ms), 0});
        return true;
      });
    return in.skip();
  });
  if (!read || !in.at_end())
    return fail(fmt::format("line {} of the export is damaged at column {}", line_, in.offset() + 1));
  if (values_.size() != points_.size())
    return fail(
        fmt::format("line {} of the export has {} values and {} timestamps", line_, values_.size(), points_.size()));
  for (std::size_t i = 0; i < points_.size(); ++i) points_[i].value = values_[i];
  std::erase_if(points_, [&](const Point& p) { return !lies_within(query_, p.time_ms); });
  sink_(labels, points_);
  return {};
}

Status read_matrix(std::string_view body, const Query& query, const SeriesSink& sink, std::string& lacks) {
  Labels labels;
  std::vector<Point> points;
  std::string value;
  const auto point = [&](JsonCursor& in) {
    double seconds = 0;
    Point next;
    if (!in.take('[') || !in.number(seconds) || !in.take(',') || !in.text(value) || !in.take(']') ||
        !to_ms(seconds, next.time_ms))
      return false;
    next.value = number_of(value);
    if (lies_within(query, next.time_ms)) points.push_back(next);
    return true;
  };
  const auto series = [&](JsonCursor& in) {
    labels.clear();
    points.clear();
    const bool read = in.object([&](const std::string& key) {
      if (key == "metric") return read_labels(in, labels);
      if (key == "values") return in.array([&] { return point(in); });
      if (key == "value") return point(in);
      return in.skip();
    });
    if (read) sink(labels, points);
    return read;
  };
  return read_answer(body, lacks, [&](JsonCursor& in) {
    return in.object(
        [&](const std::string& key) { return key == "result" ? in.array([&] { return series(in); }) : in.skip(); });
  });
}

Result<std::vector<Labels>> read_series(std::string_view body, std::string& lacks) {
  std::vector<Labels> out;
  const Status read = read_answer(
      body, lacks, [&](JsonCursor& in) { return in.array([&] { return read_labels(in, out.emplace_back()); }); });
  if (!read) return fail(read.error());
  return out;
}

Result<std::vector<std::string>> read_names(std::string_view body, std::string& lacks) {
  std::vector<std::string> out;
  const Status read = read_answer(body, lacks, [&](JsonCursor& in) {
    return in.array([&] {
      std::string name;
      if (!in.text(name)) return false;
      out.push_back(std::move(name));
      return true;
    });
  });
  if (!read) return fail(read.error());
  return out;
}

}  // namespace vramtrack::fleet
