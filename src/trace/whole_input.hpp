// Reads a whole input, for formats with tables that may come after references to them.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/byte_input.hpp"
#include "core/result.hpp"

namespace vramtrack::trace {

/// Reads the rest of `input`. Errors: reading fails, or there are more than `most_bytes`, which is `limit` in words ("1
/// GiB, which no heap profile is"). They name the file.
inline Result<std::string> read_whole(ByteInput& input, std::size_t most_bytes, std::string_view limit) {
  std::string bytes;
  for (std::array<std::uint8_t, 1 << 16> piece;;) {
    const auto size = input.read(piece);
    if (!size) return fail(size.error());
    if (*size == 0) return bytes;
    bytes.append(reinterpret_cast<const char*>(piece.data()), *size);
    if (bytes.size() > most_bytes) return fail(fmt::format("{}: is larger than {}", input.name(), limit));
  }
}

}  // namespace vramtrack::trace
