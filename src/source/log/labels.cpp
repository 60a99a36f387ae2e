#include "source/log/labels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "core/option.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

/// A label is at most this long.
constexpr std::size_t kLongestLabel = 80;

/// The last separator in `text` and the text after it; `is_bracket`: it opens a bracket that is not closed.
struct LastSeparator {
  std::string_view before, after;
  bool is_bracket = false;
};

std::optional<LastSeparator> last_separator(std::string_view text) {
  std::optional<LastSeparator> last;
  std::size_t closed = 0;
  for (std::size_t i = text.size(); i-- > 0;) {
    const std::size_t length = separator_length(text.substr(i));
    if (length == 0) continue;
    const std::string_view separator = text.substr(i, length);
    const bool opens = separator == "(" || separator == "[" || separator == "（";
    if (separator == ")" || separator == "]" || separator == "）") {
      ++closed;
      continue;
    }
    if (opens && closed > 0) {
      --closed;
      continue;
    }
    if (closed == 0) return LastSeparator{text.substr(0, i), text.substr(i + length), opens};
  }
  return last;
}

}  // namespace

namespace {

/// Whether the word is like that in "Reserving 805 MB": the amount is the growth of the memory in use.
bool is_event(std::string_view word) {
  constexpr std::string_view kEnding = "ing";
  if (word.size() <= kEnding.size() + 3 || !logtext::same_letters(word.substr(word.size() - kEnding.size()), kEnding))
    return false;
  const Meaning done = meaning_of(std::string(word.substr(0, word.size() - kEnding.size())) + "ed");
  return done == Meaning::allocated || done == Meaning::reserved;
}

}  // namespace

Label read_label(std::string_view text) {
  std::vector<Word> words;
  cut_words(text, words);
  return label_of(words);
}

/// "memory allocated after loading the model": the rest names the moment, not the contents of the memory.
bool begins_moment(std::string_view word) {
  constexpr std::array<std::string_view, 7> kWords = {"after", "before", "during", "while", "nach", "vor", "während"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view known) { return logtext::same_letters(word, known); });
}

bool is_percent_word(std::string_view word) {
  constexpr std::array<std::string_view, 4> kWords = {"percent", "percentage", "pct", "perc"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view known) { return logtext::same_letters(word, known); });
}

Label label_of(std::span<const Word> words) {
  Label out;
  std::string_view limit;  // next to a word for memory; "--mem-fraction 0.8 --tp-size 16" has none there
  const auto is_memory = [](const Word& word) {
    return word.meaning == Meaning::memory || word.meaning == Meaning::vram;
  };
  bool is_moment = false;
  for (const Word& word : words) {
    const bool is_behind_gpu = out.nearest_is_gpu;
    out.nearest_is_gpu = false;
    switch (word.meaning) {
      case Meaning::used:
      case Meaning::allocated:
      case Meaning::reserved:
      case Meaning::free:
      case Meaning::total:
      case Meaning::peak:
      case Meaning::current:
        out.roles.push_back(word.meaning);
        out.role_words.push_back(word.text);
        break;
      case Meaning::vram:
        out.vram = true;
        out.subject = word.text;
        break;
      case Meaning::memory:
        out.memory = true;
        out.subject = word.text;
        break;
      case Meaning::gpu:
        out.gpu = out.nearest_is_gpu = true;
        if (out.subject.empty()) out.subject = word.text;
        break;
      case Meaning::rate:
        out.rate = true;
        break;
      case Meaning::change:
        out.change |= !is_moment;
        break;
      case Meaning::resident:
        out.host = out.ram = true;
        break;
      case Meaning::ram:
        if (is_behind_gpu && logtext::same_letters(word.text, "ram")) {  // "GPU RAM"
          out.vram = true;
          out.subject = word.text;
        } else {
          out.host = out.ram = true;
        }
        break;
      case Meaning::swap:
        out.host = out.swap = true;
        break;
      case Meaning::host:
        out.host = true;
        break;
      case Meaning::other:
        out.other |= !is_moment;
        break;
      case Meaning::measured:
        out.measured = true;
        break;
      case Meaning::share:
        out.share = true;
        break;
      case Meaning::process:
        out.process = true;
        break;
      case Meaning::things:
        out.things = word.text;
        break;
      case Meaning::limit:
        out.limit = true;
        if ((&word != &words.front() && is_memory(*(&word - 1))) || (&word != &words.back() && is_memory(*(&word + 1))))
          limit = word.text;
        break;
      default:
        is_moment |= !out.roles.empty() && begins_moment(word.text);
        if (is_event(word.text) && !is_moment) out.change = true;
        out.percent |= is_percent_word(word.text);
        if (word.text.size() > 1)
          if (const std::uint64_t unit = written_unit(word.text); unit != 0) out.unit_bytes = unit;
        break;
    }
  }
  if (!limit.empty() && out.roles.empty()) {
    out.roles.push_back(Meaning::total);
    out.role_words.push_back(limit);
  }
  return out;
}

bool is_query_field(std::string_view title) {
  constexpr std::string_view kMemory = "memory.";
  title.remove_prefix(std::min(title.find_first_not_of(" \t,;|"), title.size()));
  if (!logtext::same_letters(title.substr(0, kMemory.size()), kMemory)) return false;
  const std::string_view rest = title.substr(kMemory.size());
  constexpr std::array<std::string_view, 4> kFields = {"used", "free", "total", "reserved"};
  return std::any_of(kFields.begin(), kFields.end(), [&](std::string_view field) {
    return logtext::same_letters(rest.substr(0, field.size()), field) &&
           (rest.size() == field.size() || !is_letter(rest[field.size()]));
  });
}

bool names_host_memory(std::string_view name) {
  const Label label = read_label(name);
  return label.host && (label.memory || label.ram || label.swap) && !label.is_of_gpu() && !label.measured &&
         !label.change;
}

std::string only_host_memory(std::string_view name) {
  return fmt::format(
      "'{}' is the memory of the host, not of a GPU, and there is no other; record the GPU's, for example with "
      "'vramtrack watch' or 'nvidia-smi --query-gpu=timestamp,memory.used,memory.total --format=csv -l 1', or, if it "
      "is the GPU's, name it gpu_memory_used, or describe its lines with {}",
      logtext::excerpt(name), name_of(Option::line_pattern));
}

std::string may_be_of_host(std::string_view part) {
  return fmt::format("no {} says that its memory is a GPU's: it may be that of a process or of the host", part);
}

std::size_t separator_length(std::string_view text) {
  if (text.empty()) return 0;
  switch (text.front()) {
    case ',':
    case ';':
    case '|':
    case '\t':
    case '(':
    case ')':
    case '[':
    case ']':
      return 1;
    case '-':
    case '=':
      if (text.starts_with("->") || text.starts_with("=>")) return 2;
      break;
    default:
      break;
  }
  if (static_cast<unsigned char>(text.front()) < 0x80) return 0;
  if (text.starts_with("\u2192")) return 3;
  for (const std::string_view wide : {"，", "；", "、", "（", "）", "。"})
    if (text.starts_with(wide)) return wide.size();
  return 0;
}

bool separates_elements(std::string_view gap) {
  gap = logtext::trim(gap);
  const std::size_t length = separator_length(gap);
  return length > 0 && length == gap.size() && gap != "(" && gap != "[" && gap != "（" && !joins_change(gap);
}

std::string_view label_before(std::string_view text) {
  if (text.size() > kLongestLabel) {
    std::size_t from = text.size() - kLongestLabel;
    while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xc0U) == 0x80U) ++from;
    text = text.substr(from);
  }
  const auto last = last_separator(text);
  if (!last) return text;
  const Label label = read_label(last->after);
  if (!label.has_meaning() && !label.gpu) return text;
  if (!last->is_bracket || label.roles.size() != 1) return last->after;
  // "GPU memory (used: 5, free: 6)": the brackets refer to the text before them.
  const Label outer = read_label(last->before);
  return (outer.memory || outer.vram) && outer.roles.empty() ? text : last->after;
}

std::string_view label_after(std::string_view text) {
  const std::string_view trimmed = logtext::trim(text);
  const std::size_t close = trimmed.starts_with('(') ? trimmed.find(')') : std::string_view::npos;
  if (close != std::string_view::npos) return trimmed.substr(1, close - 1);
  for (std::size_t i = 0; i < text.size(); ++i)
    if (separator_length(text.substr(i)) > 0) return text.substr(0, i);
  return text;
}

std::string_view word_right_before(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0 && std::string_view(" :=#[(_-\"'/").find(text[end - 1]) != std::string_view::npos) --end;
  std::vector<Word> words;
  const std::string_view tail = text.substr(end > 40 ? end - 40 : 0, std::min<std::size_t>(end, 40));
  cut_words(tail, words);
  if (words.empty() || words.back().text.data() + words.back().text.size() != text.data() + end) return {};
  return words.back().text;
}

bool joins_change(std::string_view gap) {
  gap = logtext::trim(gap);
  for (const std::string_view sign : {"to", "->", "-->", "=>", "\u2192", "auf", "\u5230"})
    if (gap == sign) return true;
  return false;
}

bool ends_in_to(std::string_view label) {
  label = logtext::trim(label);
  for (const std::string_view word : {"to", "auf", "\u5230", "\u81f3"})
    if (label.ends_with(word)) return true;
  return false;
}

bool is_log_level(std::string_view word) {
  constexpr std::array<std::string_view, 11> kLevels = {"trace", "debug", "info",     "notice", "warn",   "warning",
                                                        "error", "err",   "critical", "fatal",  "success"};
  return std::any_of(kLevels.begin(), kLevels.end(), [&](std::string_view level) {
    return level.size() == word.size() && logtext::same_letters(word, level);
  });
}

std::string label_key(std::string_view text) {
  std::string out;
  const auto put = [&](char c) {
    if (!logtext::is_digit(c) && !(c == ' ' && !out.empty() && out.back() == ' ')) out += logtext::lower(c);
  };
  for (std::size_t i = 0; i < text.size();) {
    if (const std::size_t close = text[i] == '[' ? text.find(']', i) : std::string_view::npos;
        close != std::string_view::npos) {
      const Label inner = read_label(text.substr(i, close - i));
      if (!inner.has_meaning() && !inner.gpu && inner.unit_bytes == 0) {  // a level, or a name
        i = close + 1;
        continue;
      }
    }
    std::size_t end = i;
    while (end < text.size() && logtext::is_ascii_letter(text[end])) ++end;
    if (end > i && is_log_level(text.substr(i, end - i))) {
      i = end;
      continue;
    }
    end = std::max(end, i + 1);
    for (; i < end; ++i) put(text[i]);
  }
  return std::string(logtext::trim(out));
}

namespace {

bool is_connector(std::string_view word) {
  constexpr std::array<std::string_view, 9> kWords = {"of", "von", "de", "sur", "su", "z", "из", "共", "/"};
  return std::find(kWords.begin(), kWords.end(), logtext::lower(word)) != kWords.end() || word == "／";
}

/// The words of `gap` and its slashes, without separators; nullopt if it has other punctuation.
std::optional<std::vector<Word>> words_and_slashes(std::string_view gap) {
  std::vector<Word> out;
  std::vector<Word> words;
  std::size_t from = 0;
  const auto take_words = [&](std::size_t end) {
    cut_words(gap.substr(from, end - from), words);
    out.insert(out.end(), words.begin(), words.end());
  };
  for (std::size_t i = 0; i < gap.size();) {
    const std::size_t separator = separator_length(gap.substr(i));
    const std::size_t slash = gap[i] == '/' ? 1 : gap.substr(i).starts_with("／") ? 3 : 0;
    if (separator + slash > 0) {
      if (gap[i] == '|' || gap[i] == ';') return std::nullopt;  // another column, another statement
      take_words(i);
      if (slash > 0) out.push_back({gap.substr(i, slash), Meaning::none});
      i += separator + slash;
      from = i;
    } else if (gap[i] == ' ' || is_letter(gap[i])) {
      ++i;
    } else {
      return std::nullopt;
    }
  }
  take_words(gap.size());
  return out;
}

}  // namespace

std::optional<std::string_view> joins_pair(std::string_view gap) {
  if (gap.size() > kLongestLabel) return std::nullopt;
  const auto words = words_and_slashes(gap);
  if (!words) return std::nullopt;
  std::optional<std::string_view> behind;
  for (const Word& word : *words) {
    if (!behind && is_connector(word.text)) {
      behind = gap.substr(0, static_cast<std::size_t>(word.text.data() - gap.data()));
      continue;
    }
    // "in use", "out of"; "of the total", "of total memory".
    constexpr std::array<std::string_view, 6> kBefore = {"in", "out", "is", "are", "being", "im"};
    const bool is_role = word.meaning >= Meaning::used && word.meaning <= Meaning::vram;
    const bool fits = behind ? word.meaning == Meaning::total || word.meaning == Meaning::memory ||
                                   word.meaning == Meaning::vram || word.text == "the" || word.text == "a"
                             : is_role || std::find(kBefore.begin(), kBefore.end(), word.text) != kBefore.end();
    if (!fits) return std::nullopt;
  }
  return behind;
}

bool is_call_of_runtime(std::string_view label) {
  constexpr std::array<std::string_view, 3> kCalls = {"mem_get_info", "MemGetInfo", "memGetInfo"};
  return std::any_of(kCalls.begin(), kCalls.end(),
                     [&](std::string_view call) { return label.find(call) != std::string_view::npos; });
}

std::vector<Meaning> roles_in_order(std::string_view label, std::size_t count) {
  if (is_call_of_runtime(label) && count == 2) return {Meaning::free, Meaning::total};
  std::vector<Meaning> roles;
  std::size_t from = 0;
  for (std::size_t i = 0; i <= label.size(); ++i) {
    if (i < label.size() && label[i] != '/' && label[i] != ',') continue;
    const Meaning role = read_label(label.substr(from, i - from)).role().first;
    if (role == Meaning::none) return {};
    roles.push_back(role);
    from = i + 1;
  }
  if (roles.size() != count || count < 2) return {};
  return roles;
}

}  // namespace vramtrack
