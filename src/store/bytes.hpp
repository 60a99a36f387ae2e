// Variable-length integers: the alphabet of a chunk (docs/formats/store.md).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace vramtrack {

using Bytes = std::vector<std::uint8_t>;

/// LEB128: seven bits per byte, least significant first; the high bit means that more bytes follow; 1..10 bytes.
inline void put_varint(Bytes& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<std::uint8_t>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<std::uint8_t>(value));
}

/// Maps a difference modulo 2^64 so that small ones of either sign become small numbers: 0 -1 1 -2 -> 0 1 2 3.
/// Differences wrap, so that any two 64-bit values have a difference.
inline std::uint64_t zigzag(std::uint64_t difference) {
  return (difference << 1) ^ (0 - (difference >> 63));
}
inline std::uint64_t unzigzag(std::uint64_t code) {
  return (code >> 1) ^ (0 - (code & 1));
}

/// Reads bytes front to back; never past the end.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  std::optional<std::uint8_t> byte() {
    if (at_ == bytes_.size()) return std::nullopt;
    return bytes_[at_++];
  }

  /// nullopt if the bytes end first or the number needs more than 64 bits.
  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && at_ < bytes_.size(); shift += 7) {
      const std::uint64_t b = bytes_[at_++];
      if (shift == 63 && b > 1) return std::nullopt;
      value |= (b & 0x7f) << shift;
      if (b < 0x80) return value;
    }
    return std::nullopt;
  }

  [[nodiscard]] std::size_t offset() const { return at_; }
  [[nodiscard]] std::size_t left() const { return bytes_.size() - at_; }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

}  // namespace vramtrack
