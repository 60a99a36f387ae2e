#include "fleet/xor_chunk.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstdint>

namespace vramtrack::fleet {
namespace {

/// Reads bits, starting with the highest of each byte. Past the end it returns zeros and remembers that.
class BitReader {
 public:
  explicit BitReader(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t bits(unsigned count) {
    std::uint64_t out = 0;
    while (count > 0) {
      if (at_ == bytes_.size()) {
        ended_ = true;
        return 0;
      }
      const unsigned free = 8 - used_;
      const unsigned take = count < free ? count : free;
      const auto byte = static_cast<unsigned char>(bytes_[at_]);
      const unsigned shifted = byte >> (free - take);
      out = (out << take) | (shifted & ((1U << take) - 1));
      used_ += take;
      count -= take;
      if (used_ == 8) {
        used_ = 0;
        ++at_;
      }
    }
    return out;
  }
  bool bit() { return bits(1) != 0; }

  std::uint64_t varint() {
    std::uint64_t out = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint64_t byte = bits(8);
      out |= (byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return out;
    }
    ended_ = true;  // longer than any number
    return out;
  }
  std::int64_t signed_varint() {
    const std::uint64_t value = varint();
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }

  [[nodiscard]] bool ended() const { return ended_; }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
  unsigned used_ = 0;  ///< bits used of the byte at at_
  bool ended_ = false;
};

/// The difference between two time steps: a prefix gives its number of bits.
std::int64_t delta_of_delta(BitReader& in) {
  unsigned size = 0;
  if (!in.bit()) return 0;
  if (!in.bit())
    size = 14;
  else if (!in.bit())
    size = 17;
  else if (!in.bit())
    size = 20;
  else
    return static_cast<std::int64_t>(in.bits(64));
  const std::uint64_t bits = in.bits(size);
  // Prometheus counts from -(2^(size-1))+1 to 2^(size-1), so the half itself is positive.
  return bits > (std::uint64_t{1} << (size - 1)) ? static_cast<std::int64_t>(bits) - (std::int64_t{1} << size)
                                                 : static_cast<std::int64_t>(bits);
}

/// The values: each is XORed with the previous one and stored without its leading and trailing zeros.
class ValueReader {
 public:
  explicit ValueReader(std::uint64_t first) : bits_(first) {}

  double next(BitReader& in) {
    if (!in.bit()) return std::bit_cast<double>(bits_);
    if (in.bit()) {
      leading_ = static_cast<unsigned>(in.bits(5));
      const auto width = static_cast<unsigned>(in.bits(6));
      width_ = width == 0 ? 64 : width;
    }
    if (leading_ + width_ > 64) width_ = 64 - leading_;  // in a damaged chunk
    bits_ ^= in.bits(width_) << (64 - leading_ - width_);
    return std::bit_cast<double>(bits_);
  }

 private:
  std::uint64_t bits_;
  unsigned leading_ = 0;
  unsigned width_ = 64;
};

}  // namespace

Status decode_xor_chunk(std::string_view chunk, std::vector<Point>& out) {
  BitReader in(chunk);
  const std::uint64_t count = in.bits(16);
  const auto ends_early = [&](std::uint64_t sample) -> Status {
    return fail(fmt::format("a chunk of {} bytes ends within sample {} of {}", chunk.size(), sample + 1, count));
  };
  if (in.ended()) return fail(fmt::format("a chunk of {} bytes is too short for its number of samples", chunk.size()));
  if (count == 0) return {};
  Point now;
  now.time_ms = in.signed_varint();
  const std::uint64_t first = in.bits(64);
  if (in.ended()) return ends_early(0);
  now.value = std::bit_cast<double>(first);
  out.push_back(now);
  ValueReader values(first);
  std::int64_t step = 0;
  for (std::uint64_t i = 1; i < count; ++i) {
    step = i == 1 ? static_cast<std::int64_t>(in.varint()) : wrapping_sum(step, delta_of_delta(in));
    now.time_ms = wrapping_sum(now.time_ms, step);
    now.value = values.next(in);
    if (in.ended()) return ends_early(i);
    out.push_back(now);
  }
  return {};
}

}  // namespace vramtrack::fleet
