
#include <algorithm>
#include <iterator>
#include <utility>

#include "source/log/labels.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtext::is_ascii_letter;
using logtext::is_digit;
using logtext::lower;
using logtext::trim;

std::int64_t time_unit_ns(std::string_view word) {
  if (word == "s" || word == "sec" || word == "secs" || word == "second" || word == "seconds") return 1'000'000'000;
  if (word == "ms" || word == "msec" || word == "millis" || word == "milliseconds") return 1'000'000;
  if (word == "us" || word == "usec" || word == "micros" || word == "microseconds") return 1'000;
  if (word == "ns" || word == "nsec" || word == "nanos" || word == "nanoseconds") return 1;
  if (word == "min" || word == "mins" || word == "minutes") return 60'000'000'000;
  if (word == "h" || word == "hr" || word == "hrs" || word == "hours") return 3'600'000'000'000;
  return 0;
}

/// Takes `word` as the unit; returns false if it is not a unit.
bool take_unit(TitleWords& out, std::string_view word) {
  if (word.ends_with('%') || is_percent_word(word)) {
    out.percent = true;
    return true;
  }
  if (const std::uint64_t bytes = logtext::unit_bytes(word); bytes != 0) {
    out.unit_bytes = bytes;
    return true;
  }
  if (const std::int64_t ns = time_unit_ns(word); ns != 0) {
    out.unit_ns = ns;
    return true;
  }
  return false;
}

/// Whether a title gives a unit in brackets that belongs to another quantity: "GPU Memory Junction [°C]", "[℃]".
bool is_other_unit(std::string_view inner) {
  constexpr std::string_view kUnits[] = {"c",   "f",   "w",   "mw",  "v",  "mv",     "a",   "ma",   "j",   "mj",
                                         "kwh", "mhz", "ghz", "khz", "hz", "yes/no", "rpm", "gt/s", "fps", "x"};
  const std::string_view letters = inner.substr(std::min(inner.find_first_of("cfwvajkmghyrx"), inner.size()));
  // Signs are in U+0080 to U+00BF or from U+2000 on, unlike letters.
  const bool is_sign = inner.starts_with('\xc2') || inner.starts_with('\xe2');
  return (is_sign && letters.size() < 2) || inner.ends_with("/s") ||
         std::find(std::begin(kUnits), std::end(kUnits), inner) != std::end(kUnits);
}

/// The English word for `word`; empty if it is English already, or unknown.
std::string_view translation(const Word& word) {
  if (logtext::same_letters(word.text, "mo")) return "mb";
  if (logtext::same_letters(word.text, "go")) return "gb";
  return is_foreign(word.text) ? word_for(word.meaning) : std::string_view{};
}

/// `title` with the words of other languages in English.
std::string translated(std::string_view title) {
  std::vector<Word> words;
  cut_words(title, words);
  std::string out;
  std::size_t from = 0;
  for (const Word& word : words) {
    const std::string_view to = translation(word);
    if (to.empty()) continue;
    const auto begin = static_cast<std::size_t>(word.text.data() - title.data());
    out += title.substr(from, begin - from);
    // Some languages do not separate words by spaces: insert spaces here.
    out += begins_wide(word.text.front()) ? " " + std::string(to) + " " : std::string(to);
    from = begin + word.text.size();
  }
  return out.append(title.substr(from));
}

}  // namespace

std::string TitleWords::text() const {
  std::string out;
  for (const std::string& word : words) out += out.empty() ? word : ' ' + word;
  return out;
}

Label TitleWords::label() const {
  std::vector<Word> meant;
  for (const std::string_view word : words) {
    Meaning meaning = meaning_of(word);
    const std::string_view name = word.substr(0, word.find_last_not_of("0123456789") + 1);
    if (meaning == Meaning::none && !name.empty()) meaning = meaning_of(name);
    meant.push_back({name.empty() ? word : name, meaning});
  }
  Label label = label_of(meant);
  label.measured |= other_unit;
  label.vram |= of_card;
  return label;
}

TitleWords read_title(std::string_view written) {
  TitleWords out;
  const std::string in_english = translated(written);
  std::string_view title = in_english;
  std::string word;
  const auto flush = [&] {
    if (!word.empty()) out.words.push_back(std::move(word));
    word.clear();
  };
  title = trim(title);
  for (std::size_t i = 0; i < title.size(); ++i) {
    const char c = title[i];
    if (c == '[' || c == '(') {
      const std::size_t close = title.find(c == '[' ? ']' : ')', i);
      const std::string inner =
          logtext::lower(trim(title.substr(i + 1, close == std::string_view::npos ? close : close - i - 1)));
      flush();
      if (!take_unit(out, inner)) {
        out.other_unit |= is_other_unit(inner);
        out.of_card |= meaning_of(inner) == Meaning::vram;
      }
      if (close == std::string_view::npos) break;
      i = close;
    } else if (c == '%') {
      flush();
      out.percent = true;
    } else if (is_ascii_letter(c) || is_digit(c)) {
      // "memoryAllocatedBytes" is three words; "MiB" and "DCGM" are one word each.
      if (!word.empty() && word != "mi" && word != "gi" && word != "ki" && logtext::begins_capital_word(title, i))
        flush();
      word += lower(c);
    } else {
      flush();
    }
  }
  flush();
  // A unit as the last word: mem_used_mib, t_s, host_mem_util_pct. There, "min" means minimum more often than minutes.
  const bool of_time =
      out.words.size() == 2 && (out.words[0] == "t" || out.words[0] == "time" || out.words[0] == "elapsed");
  // "mem_used_mib_0": the unit before the GPU's number.
  if (out.words.size() > 2 && is_digit(out.words.back().front()) && take_unit(out, out.words[out.words.size() - 2]))
    out.words.erase(out.words.end() - 2);
  if (out.words.size() > 1 && out.unit_bytes == 0 &&
      (of_time || (out.words.back() != "min" && out.words.back() != "h")) && take_unit(out, out.words.back()))
    out.words.pop_back();
  else if (out.words.size() == 1 && out.unit_ns == 0)
    out.unit_ns = time_unit_ns(out.words[0]);  // a column titled "seconds" or "ms"
  return out;
}

}  // namespace vramtrack
