// Words: the words of a line, and lists of them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/ascii.hpp"

namespace vramtrack::explain {

/// Characters of a word: letters, digits, and those that join them.
bool is_part(char c);

/// '"', "'", '`' and '*', as Markdown has them.
bool is_quote_mark(char c);

/// `list` is separated by "|": "gpu|cuda".
bool has_any(std::string_view text, std::string_view list);
bool is_any(std::string_view word, std::string_view list);
bool begins_any(std::string_view word, std::string_view list);
bool ends_any(std::string_view word, std::string_view list);

/// A word of a line.
struct Word {
  std::string_view text;
  std::size_t begin = 0;  ///< offset in the line
  std::size_t end = 0;
  bool ends_clause = false;    ///< punctuation that ends a clause separates it from the next word
  bool is_allocation = false;  ///< cache for repeated lookups: false as words_of() returns it
  bool is_storage = false;
  bool is_code = false;
};
/// `line` is in lower case, and must outlive them. O(line).
std::vector<Word> words_of(std::string_view line);

/// Whether a person wrote `line`, in lower case, rather than a program: it has the small words of sentences, at least
/// one in so many.
bool is_sentence(std::string_view line, std::ptrdiff_t one_in = 8);

}  // namespace vramtrack::explain
