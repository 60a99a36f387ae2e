#include "core/meaning.hpp"

#include <algorithm>
#include <unordered_map>

namespace vramtrack {
namespace {

const std::unordered_map<std::string_view, Meaning>& table() {
  static const std::unordered_map<std::string_view, Meaning> words = {
#define VRAMTRACK_WORD(word, meaning) {word, Meaning::meaning},
#include "core/words.def"
  };
  return words;
}

}  // namespace

std::string lowered_word(std::string_view word) {
  std::string out(word);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  for (std::size_t i = 0; i + 1 < out.size(); ++i) {
    const auto letter = static_cast<unsigned char>(out[i + 1]);
    if (out[i] != '\xd0' || letter < 0x90 || letter > 0xaf) continue;  // from U+0410 to U+042F
    if (letter >= 0xa0) out[i] = '\xd1';
    out[i + 1] = static_cast<char>(letter >= 0xa0 ? letter - 0x20 : letter + 0x20);
  }
  return out;
}

Meaning meaning_of(std::string_view word) {
  const auto it = table().find(word);
  if (it != table().end()) return it->second;
  // Called for every word of every line of text, and nearly all are in lower case already.
  const auto may_change = [](char c) { return (c >= 'A' && c <= 'Z') || c == '\xd0'; };
  if (std::none_of(word.begin(), word.end(), may_change)) return Meaning::none;
  const auto lower = table().find(lowered_word(word));
  return lower == table().end() ? Meaning::none : lower->second;
}

}  // namespace vramtrack
