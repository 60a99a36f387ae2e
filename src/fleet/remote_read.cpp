#include "fleet/remote_read.hpp"

#include <fmt/format.h>
#include <snappy.h>

#include <algorithm>
#include <array>
#include <bit>

#include "core/crc32c.hpp"
#include "core/protobuf.hpp"
#include "fleet/xor_chunk.hpp"

namespace vramtrack::fleet {
namespace {

/// More than a server puts into a frame (1 MiB by default): a frame with a greater length is damaged.
constexpr std::uint64_t kMostFrame = 256ULL * 1024 * 1024;
constexpr std::uint64_t kMostAnswer = 1024ULL * 1024 * 1024;

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(0x80 | (value & 0x7f)));
  out.push_back(static_cast<char>(value));
}
void put_number(std::string& out, std::uint32_t field, std::uint64_t value) {
  put_varint(out, std::uint64_t{field} << 3);
  put_varint(out, value);
}
void put_bytes(std::string& out, std::uint32_t field, std::string_view bytes) {
  put_varint(out, (std::uint64_t{field} << 3) | 2);
  put_varint(out, bytes.size());
  out += bytes;
}

bool read_label(std::string_view message, Labels& out) {
  std::string_view name, value;
  ProtoFields fields(message);
  while (fields.next()) {
    if (fields.number() == 1) name = fields.bytes();
    if (fields.number() == 2) value = fields.bytes();
  }
  out.emplace_back(name, value);
  return fields.is_complete();
}

/// Removes points outside the query, because chunks extend beyond its ends.
void cut(std::vector<Point>& points, const Query& query) {
  std::erase_if(points, [&](const Point& p) { return p.time_ms < query.start_ms || p.time_ms > query.end_ms; });
}

constexpr const char* kNoMessage = "the message of a frame is damaged although its checksum is right";

}  // namespace

std::string remote_read_request(const Query& query) {
  std::string inner;
  put_number(inner, 1, static_cast<std::uint64_t>(query.start_ms));
  put_number(inner, 2, static_cast<std::uint64_t>(query.end_ms));
  for (const Matcher& m : query.matchers) {
    std::string matcher;
    put_number(matcher, 1, m.is_regex ? 2 : 0);  // EQ, NEQ, RE, NRE
    put_bytes(matcher, 2, m.name);
    put_bytes(matcher, 3, m.value);
    put_bytes(inner, 3, matcher);
  }
  std::string request;
  put_bytes(request, 1, inner);
  put_number(request, 2, 1);  // STREAMED_XOR_CHUNKS
  put_number(request, 2, 0);  // SAMPLES
  std::string compressed;
  snappy::Compress(request.data(), request.size(), &compressed);
  return compressed;
}

std::string framed(std::string_view message) {
  std::string out;
  put_varint(out, message.size());
  const std::uint32_t crc = crc32c(message);
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(crc >> shift & 0xff));
  return out.append(message);
}

Status ChunkedAnswer::take(std::string_view bytes) {
  pending_ += bytes;
  std::size_t at = 0;
  while (at < pending_.size()) {
    std::uint64_t size = 0;
    std::size_t data = at;
    bool is_whole = false;
    for (unsigned shift = 0; data < pending_.size() && shift < 64 && !is_whole; shift += 7) {
      const auto byte = static_cast<unsigned char>(pending_[data++]);
      size |= std::uint64_t{byte & 0x7fU} << shift;
      is_whole = (byte & 0x80U) == 0;
    }
    if ((!is_whole && data - at >= 10) || size > kMostFrame)
      return fail(fmt::format("no frame of remote read begins at byte {} of the answer", offset_ + at));
    if (!is_whole || pending_.size() - data < size + 4) break;
    std::uint32_t expected = 0;
    for (std::size_t i = 0; i < 4; ++i) expected = (expected << 8) | static_cast<unsigned char>(pending_[data + i]);
    const std::string_view message = std::string_view(pending_).substr(data + 4, static_cast<std::size_t>(size));
    if (crc32c(message) != expected)
      return fail(fmt::format("the frame at byte {} of the answer has a wrong checksum", offset_ + at));
    if (const Status read = read_frame(message); !read)
      return fail(read.error().during(fmt::format("the frame at byte {} of the answer", offset_ + at)));
    at = data + 4 + message.size();
  }
  pending_.erase(0, at);
  offset_ += at;
  return {};
}

Status ChunkedAnswer::end() const {
  if (pending_.empty()) return {};
  return fail(fmt::format("the answer ends within a frame, after {} bytes", offset_ + pending_.size()));
}

Status ChunkedAnswer::read_frame(std::string_view message) {
  ProtoFields frame(message);
  while (frame.next()) {
    if (frame.number() != 1) continue;
    Labels labels;
    points_.clear();
    ProtoFields series(frame.bytes());
    while (series.next()) {
      if (series.number() == 1 && !read_label(series.bytes(), labels)) return fail(kNoMessage);
      if (series.number() != 2) continue;
      ProtoFields chunk(series.bytes());
      std::uint64_t type = 0;
      std::string_view data;
      while (chunk.next()) {
        if (chunk.number() == 3) type = chunk.value();
        if (chunk.number() == 4) data = chunk.bytes();
      }
      if (!chunk.is_complete()) return fail(kNoMessage);
      if (type != 1) continue;  // a histogram: no memory metric is one
      if (const Status decoded = decode_xor_chunk(data, points_); !decoded) return decoded;
    }
    if (!series.is_complete()) return fail(kNoMessage);
    cut(points_, query_);
    sink_(labels, points_);
  }
  return frame.is_complete() ? Status{} : fail(kNoMessage);
}

Status read_sampled_answer(std::string_view body, const Query& query, const SeriesSink& sink) {
  std::size_t size = 0;
  std::string message;
  if (!snappy::GetUncompressedLength(body.data(), body.size(), &size) || size > kMostAnswer ||
      !snappy::Uncompress(body.data(), body.size(), &message))
    return fail(fmt::format("the answer of {} bytes is not compressed with snappy", body.size()));
  constexpr const char* kDamaged = "the message of the answer is damaged";
  std::vector<Point> points;
  ProtoFields response(message);
  while (response.next()) {
    if (response.number() != 1) continue;
    ProtoFields result(response.bytes());
    while (result.next()) {
      if (result.number() != 1) continue;
      Labels labels;
      points.clear();
      ProtoFields series(result.bytes());
      while (series.next()) {
        if (series.number() == 1 && !read_label(series.bytes(), labels)) return fail(kDamaged);
        if (series.number() != 2) continue;
        Point point;
        ProtoFields sample(series.bytes());
        while (sample.next()) {
          if (sample.number() == 1) point.value = sample.as_double();
          if (sample.number() == 2) point.time_ms = static_cast<std::int64_t>(sample.value());
        }
        if (!sample.is_complete()) return fail(kDamaged);
        points.push_back(point);
      }
      if (!series.is_complete()) return fail(kDamaged);
      cut(points, query);
      sink(labels, points);
    }
    if (!result.is_complete()) return fail(kDamaged);
  }
  return response.is_complete() ? Status{} : fail(kDamaged);
}

}  // namespace vramtrack::fleet
