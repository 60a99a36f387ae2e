// Fields of Protocol Buffers, written by hand.
#pragma once

#include <cstdint>
#include <string>

namespace vramtrack::trace::test {

inline std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
inline std::string number(unsigned field, std::uint64_t value) {
  return varint(field << 3U) + varint(value);
}
inline std::string bytes(unsigned field, const std::string& value) {
  return varint((field << 3U) | 2U) + varint(value.size()) + value;
}

}  // namespace vramtrack::trace::test
