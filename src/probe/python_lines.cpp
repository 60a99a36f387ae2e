#include "probe/python_lines.hpp"

namespace vramtrack::probe {
namespace {

/// A table's bytes, read in chunks; -1 past its end, or if it cannot be read.
class Table {
 public:
  Table(ReadMemory read, std::uint64_t begin, std::uint64_t bytes) : read_(read), begin_(begin), bytes_(bytes) {}
  int next() {
    if (at_ >= bytes_) return -1;
    if (at_ >= block_ + held_) {
      block_ = at_;
      held_ = bytes_ - at_ < sizeof buffer_ ? bytes_ - at_ : sizeof buffer_;
      if (!read_(begin_ + block_, buffer_, held_)) {
        bytes_ = at_;
        return -1;
      }
    }
    return buffer_[at_++ - block_];
  }

 private:
  ReadMemory read_;
  std::uint64_t begin_;
  std::uint64_t bytes_;
  std::uint64_t at_ = 0;
  std::uint64_t block_ = 0;
  std::uint64_t held_ = 0;
  unsigned char buffer_[256];
};

/// Objects/lnotab_notes.txt of 3.8: pairs of a byte increment and a signed line increment.
std::int64_t line_of_pairs(Table& table, std::int64_t at, std::int64_t line) {
  for (std::int64_t address = 0;;) {
    const int bytes = table.next();
    const int lines = table.next();
    if (lines < 0) return line;
    address += bytes;
    if (address > at) return line;
    line += static_cast<signed char>(lines);
  }
}

/// Objects/lnotab_notes.txt of 3.10: pairs of a length and a signed line increment, -128: no line.
std::int64_t line_of_ranges(Table& table, std::int64_t at, std::int64_t line) {
  for (std::int64_t end = 0;;) {
    const int bytes = table.next();
    const int lines = table.next();
    if (lines < 0) return -1;
    end += bytes;
    const auto step = static_cast<signed char>(lines);
    if (step != -128) line += step;
    if (end > at) return step == -128 ? -1 : line;
  }
}

std::uint64_t varint(Table& table) {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 6) {
    const int byte = table.next();
    if (byte < 0) return value;
    if (shift < 64) value |= static_cast<std::uint64_t>(byte & 0x3f) << shift;
    if ((byte & 0x40) == 0) return value;
  }
}

/// Objects/locations.md of 3.11: entries that begin with a byte with the top bit set: kind and length.
std::int64_t line_of_locations(Table& table, std::int64_t at, std::int64_t line) {
  std::int64_t end = 0;
  int head = table.next();
  while (head >= 0) {
    if ((head & 0x80) == 0) {
      head = table.next();
      continue;
    }
    const int kind = head >> 3 & 0xf;
    end += ((head & 7) + 1) * 2;
    if (kind == 13 || kind == 14) {
      const std::uint64_t step = varint(table);
      const auto size = static_cast<std::int64_t>(step >> 1U & 0x7fff'ffffU);
      line += (step & 1U) != 0 ? -size : size;
    } else if (kind >= 10 && kind <= 12) {
      line += kind - 10;
    }
    if (end > at) return kind == 15 ? -1 : line;
    head = table.next();
  }
  return -1;
}

}  // namespace

std::uint32_t find_line(ReadMemory read, LineTable kind, std::uint64_t table, std::uint64_t bytes, std::int64_t at,
                        std::int32_t first_line) {
  constexpr std::uint64_t kMostBytes = 1U << 24U;
  Table in(read, table, bytes < kMostBytes ? bytes : kMostBytes);
  if (at < 0) at = 0;
  const std::int64_t line = kind == LineTable::pairs    ? line_of_pairs(in, at, first_line)
                            : kind == LineTable::ranges ? line_of_ranges(in, at, first_line)
                                                        : line_of_locations(in, at, first_line);
  return static_cast<std::uint32_t>(line > 0 && line <= 0x7fff'ffff ? line : first_line > 0 ? first_line : 0);
}

}  // namespace vramtrack::probe
