// CRC-32C (Castagnoli; RFC 3720, appendix B.4): the checksum of TFRecord and Prometheus remote read. zlib lacks it.
#pragma once

#include <cstdint>
#include <string_view>

namespace vramtrack {

/// Eight bytes per round: "slicing-by-8" by Kounavis and Berry, 2005. Thread-safe.
std::uint32_t crc32c(std::string_view bytes);

}  // namespace vramtrack
