#include "remote_write.hpp"

#include <httplib.h>
#include <snappy.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace vramtrack::bench {
namespace {

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(0x80 | (value & 0x7f)));
  out.push_back(static_cast<char>(value));
}
void put_bytes(std::string& out, std::uint32_t field, const std::string& bytes) {
  put_varint(out, (std::uint64_t{field} << 3) | 2);
  put_varint(out, bytes.size());
  out += bytes;
}

std::string message_of(const WrittenSeries& series, std::size_t begin, std::size_t end, std::int64_t step_ms) {
  std::string out;
  for (const auto& [name, value] : series.labels) {
    std::string label;
    put_bytes(label, 1, name);
    put_bytes(label, 2, value);
    put_bytes(out, 1, label);
  }
  for (std::size_t i = begin; i < std::min(end, series.values.size()); ++i) {
    if (std::isnan(series.values[i])) continue;
    std::string sample;
    sample.push_back(1 << 3 | 1);
    const auto bits = std::bit_cast<std::uint64_t>(series.values[i]);
    for (int byte = 0; byte < 8; ++byte) sample.push_back(static_cast<char>(bits >> (8 * byte) & 0xff));
    sample.push_back(2 << 3);
    put_varint(sample, static_cast<std::uint64_t>(series.first_ms + static_cast<std::int64_t>(i) * step_ms));
    put_bytes(out, 2, sample);
  }
  return out;
}

void post(httplib::Client& client, const std::string& message) {
  std::string body;
  snappy::Compress(message.data(), message.size(), &body);
  const httplib::Headers headers = {{"Content-Encoding", "snappy"}, {"X-Prometheus-Remote-Write-Version", "0.1.0"}};
  const auto answer = client.Post("/api/v1/write", headers, body, "application/x-protobuf");
  if (!answer) throw std::runtime_error("the server does not answer: " + httplib::to_string(answer.error()));
  if (answer->status / 100 != 2)
    throw std::runtime_error("the server answered " + std::to_string(answer->status) + ": " + answer->body);
}

}  // namespace

void write_series(const std::string& host, int port, const std::vector<WrittenSeries>& series, std::int64_t step_ms) {
  httplib::Client client(host, port);
  client.set_keep_alive(true);
  client.set_read_timeout(120, 0);
  std::int64_t from_ms = INT64_MAX, until_ms = INT64_MIN;
  for (const WrittenSeries& s : series) {
    from_ms = std::min(from_ms, s.first_ms);
    until_ms = std::max(until_ms, s.first_ms + static_cast<std::int64_t>(s.values.size()) * step_ms);
  }
  constexpr std::int64_t kHourMs = 3'600'000 / 2;  // a head takes what is younger than its last hour
  constexpr std::size_t kAtOnce = 200;
  for (std::int64_t now_ms = from_ms; now_ms < until_ms; now_ms += kHourMs) {
    std::string message;
    std::size_t count = 0;
    for (const WrittenSeries& s : series) {
      const auto step_of = [&](std::int64_t time_ms) {
        return static_cast<std::size_t>(std::max<std::int64_t>(0, (time_ms - s.first_ms + step_ms - 1) / step_ms));
      };
      const std::size_t begin = step_of(now_ms), end = std::min(step_of(now_ms + kHourMs), s.values.size());
      if (begin >= end) continue;
      put_bytes(message, 1, message_of(s, begin, end, step_ms));
      if (++count == kAtOnce) {
        post(client, message);
        message.clear();
        count = 0;
      }
    }
    if (!message.empty()) post(client, message);
  }
}

}  // namespace vramtrack::bench
