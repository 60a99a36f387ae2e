#include "source/log/text.hpp"

#include <algorithm>

#include "core/printable.hpp"

namespace vramtrack::logtext {

std::string excerpt(std::string_view text, std::size_t limit) {
  text = trim(text);
  const bool cut = text.size() > limit;
  std::size_t end = std::min(text.size(), limit);
  if (cut)  // do not cut within a character
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80) --end;
  std::string out = printable(text.substr(0, end));
  return cut ? out + "..." : out;
}

}  // namespace vramtrack::logtext
