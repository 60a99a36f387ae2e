#include "fleet/packed.hpp"

namespace vramtrack::fleet {
namespace {

/// Maps small numbers of either sign to small unsigned numbers.
std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

/// Wraps around, like unsigned numbers; wrapping around again restores the value.
std::int64_t difference(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::int64_t>(a - b);
}

std::int64_t take(const char*& at) {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(*at++);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if ((byte & 0x80U) == 0) return unzigzag(value);
  }
}

}  // namespace

void PackedSeries::put(std::int64_t value) {
  std::uint64_t rest = zigzag(value);
  for (; rest >= 0x80; rest >>= 7) data_.push_back(static_cast<char>(0x80 | (rest & 0x7f)));
  data_.push_back(static_cast<char>(rest));
}

void PackedSeries::append(std::int64_t time_ms, std::uint64_t bytes) {
  const std::int64_t step = difference(static_cast<std::uint64_t>(time_ms), static_cast<std::uint64_t>(last_.time_ms));
  if (size_ == 0)
    first_ms_ = time_ms;
  else if (time_ms <= last_.time_ms)
    sorted_ = false;
  put(difference(static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(last_step_ms_)));
  put(difference(bytes, last_.bytes));
  last_step_ms_ = size_ == 0 ? 0 : step;  // the first step is the time itself
  last_ = {time_ms, bytes};
  ++size_;
}

void PackedSeries::unpack(std::vector<Reading>& out) const {
  Reading now;
  std::int64_t step = 0;
  const char* at = data_.data();
  for (std::size_t i = 0; i < size_; ++i) {
    step = wrapping_sum(step, take(at));
    now.time_ms = wrapping_sum(now.time_ms, step);
    now.bytes += static_cast<std::uint64_t>(take(at));
    out.push_back(now);
    if (i == 0) step = 0;
  }
}

}  // namespace vramtrack::fleet
