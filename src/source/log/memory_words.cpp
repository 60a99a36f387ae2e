#include "source/log/memory_words.hpp"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "core/units.hpp"
#include "source/log/labels.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

const std::unordered_set<std::string_view>& german_words() {
  static const std::unordered_set<std::string_view> words = {
#define VRAMTRACK_GERMAN_WORD(word, meaning) word,
#include "core/words.def"
  };
  return words;
}

/// The words of languages other than English that are pure ASCII, and other words of the same languages.
const std::unordered_set<std::string_view>& foreign_words() {
  static const std::unordered_set<std::string_view> words = {
#define VRAMTRACK_GERMAN_WORD(word, meaning) word,
#define VRAMTRACK_FRENCH_WORD(word, meaning) word,
#include "core/words.def"
  };
  return words;
}

/// The longest word of the table at the start of `text`. REQUIRES: `text` begins with a wide letter.
Word wide_word(std::string_view text) {
  constexpr std::size_t kLongest = 24;
  for (std::size_t n = std::min(text.size(), kLongest); n > 2; --n)
    if (const Meaning meaning = meaning_of(text.substr(0, n)); meaning != Meaning::none)
      return {text.substr(0, n), meaning};
  std::size_t n = 1;
  while (n < text.size() && (static_cast<unsigned char>(text[n]) & 0xc0U) == 0x80U) ++n;
  return {text.substr(0, n), Meaning::none};
}

}  // namespace

bool begins_wide(char c) {
  return static_cast<unsigned char>(c) >= 0xe0;  // from U+0800 on
}

bool is_letter(char c) {
  return logtext::is_ascii_letter(c) || (static_cast<unsigned char>(c) >= 0x80);
}

void cut_words(std::string_view text, std::vector<Word>& words) {
  words.clear();
  for (std::size_t i = 0; i < text.size();) {
    if (begins_wide(text[i])) {
      const Word word = wide_word(text.substr(i));
      words.push_back(word);
      i += word.text.size();
    } else if (is_letter(text[i])) {
      std::size_t end = i + 1;
      // "gpuMemUsed" is three words, "KiB" is one.
      std::size_t letters = i;
      while (letters < text.size() && is_letter(text[letters])) ++letters;
      const bool is_unit = letters - i > 1 && letters - i <= 3 && written_unit(text.substr(i, letters - i)) != 0;
      while (end < text.size() && is_letter(text[end]) && !begins_wide(text[end]) &&
             (is_unit || !logtext::begins_capital_word(text, end)))
        ++end;
      const std::string_view word = text.substr(i, end - i);
      words.push_back({word, meaning_of(word)});
      i = end;
    } else {
      ++i;
    }
  }
}

bool is_german(std::string_view text) {
  std::vector<Word> words;
  cut_words(text, words);
  return std::any_of(words.begin(), words.end(),
                     [](const Word& word) { return german_words().contains(logtext::lower(word.text)); });
}

bool is_foreign(std::string_view word) {
  return std::any_of(word.begin(), word.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; }) ||
         foreign_words().contains(logtext::lower(word));
}

bool is_title_of_gpu_memory(std::string_view title) {
  return read_label(title).is_of_gpu();
}

std::string_view word_for(Meaning meaning) {
  static const auto words = [] {
    std::array<std::string_view, static_cast<std::size_t>(Meaning::other) + 1> out;
    const auto add = [&](std::string_view word, Meaning its) {
      std::string_view& known = out[static_cast<std::size_t>(its)];
      if (known.empty() && !is_foreign(word)) known = word;
    };
#define VRAMTRACK_WORD(word, meaning) add(word, Meaning::meaning);
#include "core/words.def"
    return out;
  }();
  return words[static_cast<std::size_t>(meaning)];
}

std::string_view count_word(Meaning meaning) {
  return word_for(meaning >= Meaning::step && meaning <= Meaning::request ? meaning : Meaning::step);
}

std::uint64_t written_unit(std::string_view word) {
  // Called for every word in every line of text: units begin with these letters, and are at most this long.
  constexpr std::string_view kFirst = "mMgGkKbBtT\xd0";
  constexpr std::size_t kLongest = 9;
  if (word.empty() || word.size() > kLongest || kFirst.find(word.front()) == std::string_view::npos) return 0;
  if (word == "M" || word == "Mi" || logtext::same_letters(word, "mio")) return kBytesPerMiB;
  if (word == "G" || word == "Gi" || word == "Go") return kBytesPerGiB;
  if (word == "Mo" || logtext::same_letters(word, "megs")) return kBytesPerMiB;
  if (logtext::same_letters(word, "gigs") || logtext::same_letters(word, "gig")) return kBytesPerGiB;
  if (word.size() < 2) return 0;
  for (const auto& [russian, bytes] :
       {std::pair{"мб", kBytesPerMiB}, {"миб", kBytesPerMiB}, {"гб", kBytesPerGiB}, {"гиб", kBytesPerGiB}})
    if (static_cast<unsigned char>(word.front()) == 0xd0 && lowered_word(word) == russian) return bytes;
  return logtext::unit_bytes(word);
}

}  // namespace vramtrack
