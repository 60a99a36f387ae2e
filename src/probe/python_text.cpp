#include "probe/python_text.hpp"

namespace vramtrack::probe {
namespace {

/// Returns the number of bytes; 0 if it does not fit.
std::size_t encode(std::uint32_t point, char* into, std::size_t room) {
  if (point >= 0xd800 && point < 0xe000) point = 0xfffd;  // surrogateescape: a byte of a path that is not UTF-8
  if (point > 0x10ffff) point = 0xfffd;
  const std::size_t size = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  if (size > room) return 0;
  static constexpr unsigned char kFirst[5] = {0, 0, 0xc0, 0xe0, 0xf0};
  for (std::size_t i = size; i-- > 1; point >>= 6U) into[i] = static_cast<char>(0x80U | (point & 0x3fU));
  into[0] = static_cast<char>(kFirst[size] | point);
  return size;
}

}  // namespace

std::size_t read_text(ReadMemory read, const PythonLayout& layout, std::uint64_t object, char* into,
                      std::size_t bytes) {
  std::int64_t length = 0;
  std::uint32_t state = 0;
  if (object == 0 || !read(object + kTextLength, &length, sizeof length) ||
      !read(object + kTextState, &state, sizeof state) || length <= 0)
    return 0;
  // PyASCIIObject.state: interned 2, kind 3, compact 1, ascii 1.
  const unsigned kind = state >> 2U & 7U;
  const bool is_compact = (state >> 5U & 1U) != 0;
  const bool is_ascii = (state >> 6U & 1U) != 0;
  if (!is_compact || (kind != 1 && kind != 2 && kind != 4) || (is_ascii && kind != 1)) return 0;
  const std::uint64_t data = object + (is_ascii ? layout.ascii_text : layout.other_text);
  unsigned char block[128];
  std::size_t size = 0;
  const std::uint64_t all = static_cast<std::uint64_t>(length) * kind;
  for (std::uint64_t offset = 0; offset < all; offset += sizeof block) {
    const std::uint64_t here = all - offset < sizeof block ? all - offset : sizeof block;
    if (!read(data + offset, block, here)) return 0;
    for (std::uint64_t at = 0; at < here; at += kind) {
      std::uint32_t point = 0;
      for (unsigned i = 0; i < kind; ++i) point |= std::uint32_t{block[at + i]} << 8 * i;
      const std::size_t added = encode(point, into + size, bytes - size);
      if (added == 0) return size;
      size += added;
    }
  }
  return size;
}

}  // namespace vramtrack::probe
