// What a program under the leak gate may write into its pipe: any bytes, in pieces of any size, give the same marks as
// whole, each line is a mark or counted, and every mark that is written out again is read as itself.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "gate/marks.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vramtrack::gate;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  MarkReader whole;
  const auto marks = whole.read(bytes);

  const std::size_t piece = data[0] % 16 + 1U;
  MarkReader pieces;
  std::size_t at_mark = 0;
  for (std::size_t at = 0; at < bytes.size(); at += piece)
    for (const Mark& mark : pieces.read(bytes.substr(at, piece)))
      if (at_mark >= marks.size() || !(marks[at_mark++] == mark)) std::abort();
  if (at_mark != marks.size() || pieces.skipped_lines() != whole.skipped_lines()) std::abort();

  std::size_t lines = 0;
  for (const char c : bytes) lines += c == '\n' ? 1 : 0;
  if (marks.size() + whole.skipped_lines() != lines) std::abort();
  for (const Mark& mark : marks) {
    // 2^53 and more are rounded once, and 2^64 - 1 to what no integer holds.
    if (mark.used_bytes && *mark.used_bytes >= 18446744073709551615.0) continue;
    std::string line = mark.name;
    if (mark.used_bytes) {
      line += ' ' + std::to_string(static_cast<std::uint64_t>(*mark.used_bytes));
      if (!mark.key.empty()) line += ' ' + mark.key;
    }
    if (parse_mark(line) != mark) std::abort();
  }
  return 0;
}
