// The bytes of a trace file: definitions for its writer and its reader. docs/formats/trace.md explains them.
#pragma once

#include <zlib.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "trace/probe_file.hpp"

namespace vramtrack::trace {

static_assert(std::endian::native == std::endian::little, "trace files are written as they lie in memory");

/// Followed by the command, which has `command_bytes` bytes.
struct ProbeFileHeader {
  std::array<char, 8> magic{};
  std::uint32_t version = kProbeFileVersion;
  std::uint32_t command_bytes = 0;
  std::int64_t begin_realtime_us = 0;
  std::uint32_t crc = 0;  ///< CRC-32 of header and command with this field zero
  std::uint32_t unused = 0;
};
static_assert(sizeof(ProbeFileHeader) == 32);
inline constexpr std::size_t kMostCommandBytes = 64U << 10U;

inline constexpr std::uint32_t kProbeChunkMagic = 0x4b435456;  ///< "VTCK"

/// Followed by `packed_bytes` of one zstd frame.
struct ProbeChunkHeader {
  std::uint32_t magic = kProbeChunkMagic;
  std::uint16_t kind = 0;
  std::uint16_t unused = 0;
  std::uint32_t process = kNoProbeProcess;
  std::uint32_t pid = 0;
  std::uint32_t raw_bytes = 0;
  std::uint32_t packed_bytes = 0;
  std::uint32_t payload_crc = 0;  ///< CRC-32 of the compressed bytes
  std::uint32_t header_crc = 0;   ///< CRC-32 of the 28 bytes before it
};
static_assert(sizeof(ProbeChunkHeader) == 32);

/// A figure that the driver did not report.
inline constexpr std::uint64_t kNotRead = ~std::uint64_t{0};

inline std::uint32_t crc_of(std::string_view bytes) {
  return static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

/// Writes 8-byte numbers, and strings as a 4-byte length followed by the bytes.
class PayloadWriter {
 public:
  PayloadWriter& number(std::uint64_t value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  PayloadWriter& text(std::string_view text) {
    text = text.substr(0, kMostCommandBytes);
    const auto size = static_cast<std::uint32_t>(text.size());
    bytes_.append(reinterpret_cast<const char*>(&size), sizeof size);
    bytes_.append(text);
    return *this;
  }
  [[nodiscard]] std::string_view bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// Reads the same format; anything after the known fields is from a newer writer.
class PayloadReader {
 public:
  explicit PayloadReader(std::string_view bytes) : left_(bytes) {}
  std::uint64_t number() {
    std::uint64_t value = 0;
    const std::string_view bytes = take(sizeof value);
    if (bytes.size() == sizeof value) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string text() {
    std::uint32_t size = 0;
    const std::string_view bytes = take(sizeof size);
    if (bytes.size() == sizeof size) std::memcpy(&size, bytes.data(), sizeof size);
    return std::string(take(size));
  }
  /// Whether all reads were within the payload.
  [[nodiscard]] bool is_whole() const { return is_whole_; }

 private:
  std::string_view take(std::size_t size) {
    if (size > left_.size()) {
      is_whole_ = false;
      left_ = {};
      return {};
    }
    const std::string_view out = left_.substr(0, size);
    left_.remove_prefix(size);
    return out;
  }
  std::string_view left_;
  bool is_whole_ = true;
};

}  // namespace vramtrack::trace
