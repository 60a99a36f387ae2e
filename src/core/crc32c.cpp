#include "core/crc32c.hpp"

#include <array>
#include <cstddef>

namespace vramtrack {
namespace {

class Crc32c {
 public:
  Crc32c() {
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78U : 0);
      table_[0][i] = crc;
    }
    for (std::uint32_t i = 0; i < 256; ++i)
      for (std::size_t slice = 1; slice < 8; ++slice)
        table_[slice][i] = (table_[slice - 1][i] >> 8) ^ table_[0][table_[slice - 1][i] & 0xff];
  }

  [[nodiscard]] std::uint32_t of(std::string_view bytes) const {
    std::uint32_t crc = 0xffffffffU;
    const auto at = [&](std::size_t i) -> std::uint32_t { return static_cast<unsigned char>(bytes[i]); };
    std::size_t i = 0;
    for (; i + 8 <= bytes.size(); i += 8) {
      crc ^= at(i) | at(i + 1) << 8 | at(i + 2) << 16 | at(i + 3) << 24;
      crc = table_[7][crc & 0xff] ^ table_[6][(crc >> 8) & 0xff] ^ table_[5][(crc >> 16) & 0xff] ^
            table_[4][crc >> 24] ^ table_[3][at(i + 4)] ^ table_[2][at(i + 5)] ^ table_[1][at(i + 6)] ^
            table_[0][at(i + 7)];
    }
    for (; i < bytes.size(); ++i) crc = (crc >> 8) ^ table_[0][(crc ^ at(i)) & 0xff];
    return ~crc;
  }

 private:
  std::array<std::array<std::uint32_t, 256>, 8> table_{};
};

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static const Crc32c instance;
  return instance.of(bytes);
}

}  // namespace vramtrack
