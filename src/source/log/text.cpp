#include "source/log/text.hpp"

namespace vramtrack::logtext {

std::string excerpt(std::string_view text, std::size_t limit) {
  text = trim(text);
  const bool cut = text.size() > limit;
  std::string out(text.substr(0, limit));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  // A message must be valid UTF-8, but the cut may be inside a character, or the log may be Latin-1.
  for (char& c : out)
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  return cut ? out + "..." : out;
}

}  // namespace vramtrack::logtext
