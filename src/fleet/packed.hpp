// PackedSeries: the samples of one series, compressed to about three bytes each, so that a whole page of a fleet fits
// into memory before it is judged.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "core/time.hpp"

namespace vramtrack::fleet {

/// Milliseconds since 1970, as the server counts time, and back.
inline std::int64_t ms_of(Timestamp time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}
inline Timestamp time_of(std::int64_t time_ms) {
  return Timestamp{std::chrono::milliseconds{time_ms}};
}

/// Wraps instead of overflowing, because the numbers come from a server.
constexpr std::int64_t wrapping_sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

/// One value as a server stores it: Prometheus counts in milliseconds.
struct Point {
  std::int64_t time_ms = 0;
  double value = 0;
};

/// Bytes at one time.
struct Reading {
  std::int64_t time_ms = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const Reading&, const Reading&) = default;
};

/// Append-only. Times are stored as differences of differences, bytes as differences, both as variable-length integers:
/// a constant series with regular scrapes takes two bytes per sample. Not thread-safe.
class PackedSeries {
 public:
  void append(std::int64_t time_ms, std::uint64_t bytes);

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::int64_t first_ms() const { return first_ms_; }
  [[nodiscard]] std::int64_t last_ms() const { return last_.time_ms; }
  /// Whether each time was later than the one before.
  [[nodiscard]] bool is_sorted() const { return sorted_; }
  [[nodiscard]] std::size_t packed_bytes() const { return data_.capacity(); }

  /// Appends all samples to `out`, in the order of append(). O(size).
  void unpack(std::vector<Reading>& out) const;

 private:
  void put(std::int64_t value);

  std::string data_;
  std::size_t size_ = 0;
  std::int64_t first_ms_ = 0;
  Reading last_;
  std::int64_t last_step_ms_ = 0;
  bool sorted_ = true;
};

}  // namespace vramtrack::fleet
