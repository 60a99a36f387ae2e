// What the probe reads of other people's memory while their program runs: unwind tables, CPython's line tables and
// texts, lines of /proc/self/maps. Whatever lies there, an answer comes, and nothing outside is read.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "probe/modules.hpp"
#include "probe/python_lines.hpp"
#include "probe/python_text.hpp"
#include "probe/unwind_table.hpp"

namespace {

using namespace vramtrack::probe;

constexpr std::uint64_t kBase = 0x10000;
std::string_view memory;
bool read_input(std::uint64_t address, void* into, std::size_t bytes) {
  if (address < kBase || address - kBase > memory.size() || bytes > memory.size() - (address - kBase)) return false;
  std::memcpy(into, memory.data() + (address - kBase), bytes);
  return true;
}

void read_unwind_table(std::uint64_t at) {
  const Rule rule = find_rule(read_input, kBase, kBase + at);
  if (rule.cfa_offset % 8 != 0 || rule.fp_offset % 8 != 0) std::abort();
}

void read_lines(LineTable kind, std::uint64_t at) {
  const std::uint32_t line = find_line(read_input, kind, kBase, memory.size(), static_cast<std::int64_t>(at), 1);
  if (line == 0 || line > 0x7fff'ffffU) std::abort();
}

void read_object(int minor) {
  char text[64];
  const std::size_t size = read_text(read_input, *layout_of(minor), kBase, text, sizeof text);
  if (size > sizeof text) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  const std::uint8_t what = data[0] % 7;
  // 24 bits, signed: functions lie below their tables.
  const auto at = static_cast<std::uint64_t>(static_cast<std::int32_t>(static_cast<std::uint32_t>(data[1]) << 8U |
                                                                       static_cast<std::uint32_t>(data[2]) << 16U |
                                                                       static_cast<std::uint32_t>(data[3]) << 24U) >>
                                             8);
  memory = {reinterpret_cast<const char*>(data) + 4, size - 4};
  Mapping mapping;
  switch (what) {
    case 0:
      read_unwind_table(at);
      break;
    case 1:
      read_lines(LineTable::pairs, at);
      break;
    case 2:
      read_lines(LineTable::ranges, at);
      break;
    case 3:
      read_lines(LineTable::locations, at);
      break;
    case 4:
      read_object(8);
      break;
    case 5:
      read_object(12);
      break;
    default:
      parse_mapping(memory, mapping);
      break;
  }
  return 0;
}
