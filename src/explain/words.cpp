#include "explain/words.hpp"

#include <algorithm>

#include "core/what_runs.hpp"

namespace vramtrack::explain {
namespace {

/// The first byte of a character from U+3000 on, and a continuation byte.
bool is_of_cjk(char c) {
  return static_cast<unsigned char>(c) >= 0xe3 && static_cast<unsigned char>(c) <= 0xef;
}
bool is_inside(char c) {
  return static_cast<unsigned char>(c) >= 0x80 && static_cast<unsigned char>(c) < 0xc0;
}

}  // namespace

bool is_part(char c) {
  const bool is_letter = (c >= 'a' && c <= 'z') || static_cast<unsigned char>(c) >= 0x80;
  return is_letter || is_digit(c) || c == '_' || c == '\'' || c == '-';
}

bool is_quote_mark(char c) {
  return c == '"' || c == '\'' || c == '`' || c == '*';
}

bool has_any(std::string_view text, std::string_view list) {
  return any_part(list, [text](std::string_view each) { return text.find(each) != std::string_view::npos; });
}
bool is_any(std::string_view word, std::string_view list) {
  if (word.empty()) return false;
  // One lookup of the list: most words are in no list.
  for (std::size_t at = list.find(word); at != std::string_view::npos; at = list.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || list[at - 1] == '|') && (end == list.size() || list[end] == '|')) return true;
  }
  return false;
}
bool begins_any(std::string_view word, std::string_view list) {
  return any_part(list, [word](std::string_view each) { return word.starts_with(each); });
}

bool ends_any(std::string_view word, std::string_view list) {
  return any_part(list, [word](std::string_view each) { return word.ends_with(each); });
}

std::vector<Word> words_of(std::string_view line) {
  std::vector<Word> out;
  for (std::size_t at = 0; at < line.size();) {
    // Dashes, dots and quotation marks of typographers (U+2000 to U+203F).
    const auto is_set = [line](std::size_t i) { return line.substr(i, 2) == "\xe2\x80"; };
    if (is_set(at)) {
      at += 3;
      continue;
    }
    if (!is_part(line[at])) {
      const bool is_mark = line[at] == ';' || line[at] == '!' || line[at] == '?' ||
                           (line[at] == '.' && (at + 1 == line.size() || line[at + 1] == ' '));
      if (is_mark && !out.empty()) out.back().ends_clause = true;
      ++at;
      continue;
    }
    if (line[at] == '\'' || line[at] == '_') {  // a quotation begins, or what is stressed
      ++at;
      continue;
    }
    // Chinese, Japanese and Korean do not separate words by blanks.
    const std::size_t begin = at;
    const bool is_cjk = is_of_cjk(line[at]);
    while (at < line.size() && is_part(line[at]) && !is_set(at) &&
           (at == begin || is_inside(line[at]) || is_of_cjk(line[at]) == is_cjk))
      ++at;
    std::size_t end = at;
    while (line[end - 1] == '\'' || line[end - 1] == '_') --end;
    out.push_back({line.substr(begin, end - begin), begin, end});
  }
  return out;
}

bool is_sentence(std::string_view line, std::ptrdiff_t one_in) {
  constexpr std::string_view kSmall =
      "the|a|an|it|to|i|and|that|this|with|but|when|my|we|have|has|so|would|while|then|be|am|if|even|there|as|about";
  constexpr std::ptrdiff_t kLeast = 3;
  const auto words = words_of(line);
  const auto small =
      std::count_if(words.begin(), words.end(), [kSmall](const Word& word) { return is_any(word.text, kSmall); });
  return small >= kLeast && small * one_in >= static_cast<std::ptrdiff_t>(words.size());
}

}  // namespace vramtrack::explain
