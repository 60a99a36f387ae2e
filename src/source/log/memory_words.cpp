#include "source/log/memory_words.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "core/units.hpp"
#include "source/log/stamp.hpp"
#include "source/log/stamp_search.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtext::is_alpha;
using logtext::is_digit;

constexpr std::size_t kLongestLine = 4096;
/// A label is not longer than this.
constexpr std::size_t kLongestLabel = 80;

const std::unordered_map<std::string_view, Meaning>& table() {
  static const std::unordered_map<std::string_view, Meaning> words = {
#define VRAMTRACK_MEMORY_WORD(word, meaning) {word, Meaning::meaning},
#include "source/log/memory_words.def"
#undef VRAMTRACK_MEMORY_WORD
  };
  return words;
}

const std::unordered_set<std::string_view>& german_words() {
  static const std::unordered_set<std::string_view> words = {
#define VRAMTRACK_MEMORY_WORD(word, meaning)
#define VRAMTRACK_GERMAN_WORD(word, meaning) word,
#include "source/log/memory_words.def"
#undef VRAMTRACK_MEMORY_WORD
  };
  return words;
}

bool begins_wide(char c) {
  return static_cast<unsigned char>(c) >= 0xe0;  // from U+0800 on: letters of languages without spaces between words
}
bool is_letter(char c) {
  return is_alpha(c) || (static_cast<unsigned char>(c) >= 0x80);
}

struct Word {
  std::string_view text;
  Meaning meaning = Meaning::none;
};

/// The longest word of the table with which `text` begins. REQUIRES: `text` begins with a wide letter.
Word wide_word(std::string_view text) {
  constexpr std::size_t kLongest = 24;
  for (std::size_t n = std::min(text.size(), kLongest); n > 2; --n)
    if (const auto it = table().find(text.substr(0, n)); it != table().end()) return {text.substr(0, n), it->second};
  std::size_t n = 1;
  while (n < text.size() && (static_cast<unsigned char>(text[n]) & 0xc0U) == 0x80U) ++n;
  return {text.substr(0, n), Meaning::none};
}

/// The words of `text` in order. "gpuMemUsed" and "gpu_mem_used" are three.
void cut_words(std::string_view text, std::vector<Word>& words) {
  words.clear();
  for (std::size_t i = 0; i < text.size();) {
    if (begins_wide(text[i])) {
      const Word word = wide_word(text.substr(i));
      words.push_back(word);
      i += word.text.size();
    } else if (is_letter(text[i])) {
      std::size_t end = i + 1;
      while (end < text.size() && is_letter(text[end]) && !begins_wide(text[end]) &&
             !(text[end] >= 'A' && text[end] <= 'Z' && text[end - 1] >= 'a' && text[end - 1] <= 'z'))
        ++end;
      const std::string_view word = text.substr(i, end - i);
      words.push_back({word, meaning_of(word)});
      i = end;
    } else {
      ++i;
    }
  }
}

/// A number in the line.
struct Token {
  std::size_t begin = 0, digits_end = 0, end = 0;  ///< `end`: with its unit
  double number = 0;
  std::uint64_t unit_bytes = 0;
  bool percent = false, rate = false, whole = true, open = false;
  bool binary = false;  ///< in MiB or GiB, which are hardly used for anything but memory

  [[nodiscard]] bool is_amount() const { return unit_bytes != 0 || percent; }
};

void cut_numbers(std::string_view line, std::string_view stamp, Grouping open, std::vector<Token>& tokens) {
  tokens.clear();
  const std::size_t stamp_begin = stamp.empty() ? line.size() : static_cast<std::size_t>(stamp.data() - line.data());
  for (std::size_t i = 0; i < line.size();) {
    if (i == stamp_begin) {
      i += stamp.size();
      continue;
    }
    if (!is_digit(line[i])) {
      ++i;
      continue;
    }
    Token t;
    t.begin = i;
    while (i < line.size() && (is_digit(line[i]) || ((line[i] == '.' || line[i] == ',') && i + 1 < line.size() &&
                                                     is_digit(line[i + 1]) && i + 1 > t.begin))) {
      t.whole &= is_digit(line[i]) || line[i] == ',';
      ++i;
    }
    t.digits_end = t.end = i;
    // "A100", "v1.2", "-3" are not figures. "gpu0" is treated as a name.
    const char before = t.begin > 0 ? line[t.begin - 1] : ' ';
    const bool negative = before == '-' && (t.begin < 2 || line[t.begin - 2] == ' ' || line[t.begin - 2] == '=');
    std::size_t word = i;
    while (word < line.size() && line[word] == ' ') ++word;
    std::size_t end = word;
    while (end < line.size() && is_alpha(line[end])) ++end;
    const std::string_view unit = line.substr(word, end - word);
    t.unit_bytes = written_unit(unit);
    t.binary = unit == "MiB" || unit == "GiB";
    // A single letter is a unit only if it touches the number: "8 M" may mean anything.
    if (t.unit_bytes != 0 && unit.size() == 1 && word != i) t.unit_bytes = 0;
    if (t.unit_bytes != 0) {
      t.end = end;
      t.rate = end + 1 < line.size() && line[end] == '/' && line[end + 1] == 's';
    } else if (word < line.size() && line[word] == '%') {
      t.percent = true;
      t.end = word + 1;
    } else if (end > word && word == i) {
      t.rate = true;  // "12x", "3ms", "0b1f"
    }
    const std::string_view digits = line.substr(t.begin, t.digits_end - t.begin);
    t.number = read_number(digits, t.unit_bytes, open);
    t.open = is_open_number(digits, t.unit_bytes);
    t.whole |= t.open && open == Grouping::by_dot && t.number >= 1000;  // "1.200"
    if (t.number < 0 || negative) t.rate = true;
    i = std::max(t.end, i);
    // Directly after a letter ("A100", "cuda0"): kept, since it may be an index, but it is never an amount.
    if (is_letter(before) && !begins_wide(before) && (static_cast<unsigned char>(before) < 0x80)) {
      t.rate = true;
      t.unit_bytes = 0;
      t.percent = false;
    }
    tokens.push_back(t);
  }
}

constexpr std::string_view kSeparators = ",;|\t";

/// What the words of a label mean together.
struct Label {
  std::vector<Meaning> roles;  ///< in order
  std::vector<std::string_view> role_words;
  bool memory = false, vram = false, gpu = false, rate = false, other = false;
  std::string_view subject;
  std::uint64_t unit_bytes = 0;
  bool nearest_is_gpu = false;

  [[nodiscard]] bool is_of_gpu() const { return vram || (gpu && memory); }
  [[nodiscard]] bool says_anything() const { return !roles.empty() || memory || vram || other || rate; }
  /// The role, and the word that gives it: a peak of allocated memory is a peak.
  [[nodiscard]] std::pair<Meaning, std::string_view> role() const {
    // "total_memory_available" is all that there is.
    if (roles.size() > 1 && roles.front() == Meaning::total && roles.back() == Meaning::free)
      return {Meaning::total, role_words.front()};
    for (const Meaning wanted : {Meaning::peak, Meaning::reserved, Meaning::allocated, Meaning::free, Meaning::used,
                                 Meaning::total, Meaning::current})
      for (std::size_t i = roles.size(); i-- > 0;)
        if (roles[i] == wanted) return {wanted, role_words[i]};
    return {Meaning::none, {}};
  }
};

Label read_label(std::string_view text) {
  Label out;
  std::vector<Word> words;
  cut_words(text, words);
  for (const Word& word : words) {
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
      case Meaning::other:
        out.other = true;
        break;
      default:
        if (word.text.size() > 1)
          if (const std::uint64_t unit = written_unit(word.text); unit != 0) out.unit_bytes = unit;
        break;
    }
  }
  return out;
}

/// The label in the text before a number: the part after the last separator, unless that part has no meaning.
std::string_view label_before(std::string_view text) {
  if (text.size() > kLongestLabel) {
    std::size_t from = text.size() - kLongestLabel;
    while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xc0U) == 0x80U) ++from;
    text = text.substr(from);
  }
  const std::size_t last = text.find_last_of(kSeparators);
  if (last == std::string_view::npos) return text;
  const std::string_view cut = text.substr(last + 1);
  return read_label(cut).says_anything() || read_label(cut).gpu ? cut : text;
}

std::string_view label_after(std::string_view text) {
  return text.substr(0, std::min(text.find_first_of(",;|)]\t"), text.size()));
}

std::string without_digits(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (!is_digit(c) && !(c == ' ' && !out.empty() && out.back() == ' ')) out += logtext::lower(c);
  return std::string(logtext::trim(out));
}

/// Whether `text` between two numbers makes them a pair: "5 / 24 GB", "5 of 24 GB".
bool joins_pair(std::string_view text) {
  text = logtext::trim(text);
  return text == "/" || text == "of" || text == "out of" || text == "von" || text == "／";
}

/// "Max Allocated / Max Reserved": what each number of a pair is, if its label says so.
std::optional<std::pair<Meaning, Meaning>> roles_of_pair(std::string_view label) {
  const std::size_t slash = label.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const Meaning first = read_label(label.substr(0, slash)).role().first;
  const Meaning second = read_label(label.substr(slash + 1)).role().first;
  if (first == Meaning::none || second == Meaning::none) return std::nullopt;
  return std::pair(first, second);
}

/// The word right before a number, ignoring punctuation, as in "step [3", "GPU#0:", "gpu0".
std::string_view word_right_before(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0 && std::string_view(" :=#[(_-\"'/").find(text[end - 1]) != std::string_view::npos) --end;
  std::vector<Word> words;
  const std::string_view tail = text.substr(end > 40 ? end - 40 : 0, std::min<std::size_t>(end, 40));
  cut_words(tail, words);
  if (words.empty() || words.back().text.data() + words.back().text.size() != text.data() + end) return {};
  return words.back().text;
}

/// A time takes the letters behind it for the name of a zone, as in "10:00:15 Free memory: 5 GB".
std::string_view without_memory_word(std::string_view stamp) {
  std::size_t end = stamp.size();
  while (end > 0 && is_letter(stamp[end - 1])) --end;
  return meaning_of(stamp.substr(end)) == Meaning::none ? stamp : logtext::trim(stamp.substr(0, end));
}

bool is_count(Meaning meaning) {
  return meaning >= Meaning::step && meaning <= Meaning::request;
}

/// The prefix that docker compose, kubectl logs --prefix or srun --label put before the message.
std::string_view line_prefix(std::string_view line) {
  if (line.starts_with("[pod/")) {
    const std::size_t end = line.find(']');
    return end == std::string_view::npos ? std::string_view{} : line.substr(5, end - 5);
  }
  const std::size_t bar = line.find(" | ");
  if (bar != std::string_view::npos && bar > 0 && bar < 64) {
    const std::string_view name = logtext::trim(line.substr(0, bar));
    if (!name.empty() && is_alpha(name.front()) && name.find_first_of(" :=%") == std::string_view::npos) return name;
  }
  const std::string_view rest = logtext::trim(line);
  std::size_t digits = 0;
  while (digits < rest.size() && is_digit(rest[digits])) ++digits;
  if (digits > 0 && digits <= 4 && rest.substr(digits).starts_with(": ")) return rest.substr(0, digits);
  return {};
}

/// `line` without its prefix and without what stands between that and the message: "|", "]", ":".
std::string_view message_of(std::string_view line, std::string_view prefix) {
  if (!prefix.empty()) line.remove_prefix(static_cast<std::size_t>(prefix.data() + prefix.size() - line.data()));
  line.remove_prefix(std::min(line.find_first_not_of(" \t|:[](\"'"), line.size()));
  return line;
}

/// `line` behind what Python's logging ("INFO:trainer:") or syslog ("node7 python[4242]:") put before the message.
std::string_view behind_header(std::string_view line) {
  for (const std::string_view level : {"DEBUG:", "INFO:", "WARNING:", "ERROR:", "CRITICAL:"}) {
    if (!line.starts_with(level)) continue;
    const std::size_t name_end = line.find_first_of(": ", level.size());
    if (name_end != std::string_view::npos && line[name_end] == ':') return line.substr(name_end + 1);
  }
  const std::size_t pid = line.find('[');
  if (pid == std::string_view::npos ||
      std::count(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(pid), ' ') != 1)
    return line;
  const std::size_t pid_end = line.find_first_not_of("0123456789", pid + 1);
  if (pid_end == std::string_view::npos || pid_end == pid + 1 || !line.substr(pid_end).starts_with("]: ")) return line;
  return line.substr(pid_end + 3);
}

/// "10:05" or "9:05 PM" with which `line` begins, behind its prefix and in brackets or not.
std::string_view leading_minute(std::string_view line, std::string_view prefix) {
  line = message_of(line, prefix);
  std::size_t digits = 0;
  while (digits < line.size() && is_digit(line[digits])) ++digits;
  if (digits == 0 || digits > 2 || line.substr(digits, 1) != ":") return {};
  Civil civil;
  if (!read_civil(line, DateOrder::month_first, civil) || !civil.has_time || civil.has_date) return {};
  std::size_t end = digits + 3;
  if (line.size() < end ||
      (line.size() > end && std::string_view(" \t,;|])\"'").find(line[end]) == std::string_view::npos))
    return {};
  const std::string_view rest = line.substr(end);
  for (const std::string_view half : {" AM", " PM", " am", " pm"})
    if (rest.starts_with(half) && (rest.size() == half.size() || !is_letter(rest[half.size()]))) end += half.size();
  return line.substr(0, end);
}

}  // namespace

Meaning meaning_of(std::string_view word) {
  const auto it = table().find(word);
  if (it != table().end()) return it->second;
  const auto lower = table().find(logtext::lowered(word));
  return lower == table().end() ? Meaning::none : lower->second;
}

bool is_german(std::string_view text) {
  std::vector<Word> words;
  cut_words(text, words);
  return std::any_of(words.begin(), words.end(),
                     [](const Word& word) { return german_words().contains(logtext::lowered(word.text)); });
}

bool is_title_of_gpu_memory(std::string_view title) {
  return read_label(title).is_of_gpu();
}

std::string_view count_word(Meaning meaning) {
  switch (meaning) {
    case Meaning::iteration:
      return "iteration";
    case Meaning::epoch:
      return "epoch";
    case Meaning::batch:
      return "batch";
    case Meaning::request:
      return "request";
    default:
      return "step";
  }
}

std::uint64_t written_unit(std::string_view word) {
  if (word == "M" || word == "Mi" || logtext::same_letters(word, "mio")) return kBytesPerMiB;
  if (word == "G" || word == "Gi" || word == "Go") return kBytesPerGiB;
  if (word == "Mo") return kBytesPerMiB;
  if (word.size() < 2) return 0;
  return logtext::unit_bytes(word);
}

std::uint64_t MemoryFigure::bytes(std::uint64_t default_unit) const {
  const double bytes = number * static_cast<double>(unit_bytes != 0 ? unit_bytes : default_unit);
  return bytes < 0x1p60 ? static_cast<std::uint64_t>(std::llround(bytes)) : 0;
}

namespace {

/// "peak memory allocated: 5 GB, current: 4 GB" is about one kind of memory, that of the peak. "current: 4 GB" alone is
/// not about memory.
void settle_current(std::vector<MemoryFigure>& figures) {
  Meaning kind = Meaning::none;
  for (const MemoryFigure& f : figures) {
    if (f.role == Meaning::current) continue;
    if (kind == Meaning::none) kind = Meaning::used;
    if (f.role != Meaning::peak) continue;
    for (const Meaning role : read_label(f.label).roles)
      if (role == Meaning::allocated || role == Meaning::reserved) kind = role;
  }
  for (MemoryFigure& f : figures) {
    if (f.role != Meaning::current) continue;
    const Label label = read_label(f.label);
    f.role = kind == Meaning::none && (label.memory || label.vram) ? Meaning::used : kind;
  }
  std::erase_if(figures, [](const MemoryFigure& f) { return f.role == Meaning::none; });
}

}  // namespace

void find_figures(std::string_view line, LineFigures& out, Grouping open) {
  out.figures.clear();
  out.unclear.clear();
  out.counts.clear();
  out.gpu = -1;
  out.gpu_word = {};
  line = line.substr(0, kLongestLine);
  out.stamp = without_memory_word(find_stamp(line));
  out.prefix = line_prefix(line);
  // Seconds since 1970 are a time only where the message begins: elsewhere they may be any number.
  if (out.stamp.empty()) out.stamp = without_memory_word(find_stamp(behind_header(message_of(line, out.prefix))));
  out.minute = out.stamp.empty() ? leading_minute(line, out.prefix) : std::string_view{};
  const std::string_view time = out.stamp.empty() ? out.minute : out.stamp;
  thread_local std::vector<Token> tokens;
  cut_numbers(line, time, open, tokens);
  if (tokens.empty()) return;

  const auto before_of = [&](std::size_t i) {
    std::size_t from = i == 0 ? 0 : tokens[i - 1].end;
    // The text before the stamp is the prefix, not a label.
    if (!time.empty()) {
      const auto stamp_end = static_cast<std::size_t>(time.data() + time.size() - line.data());
      if (stamp_end <= tokens[i].begin) from = std::max(from, stamp_end);
    }
    return line.substr(from, tokens[i].begin - from);
  };
  const auto after_of = [&](std::size_t i) {
    const std::size_t to = i + 1 < tokens.size() ? tokens[i + 1].begin : line.size();
    return line.substr(tokens[i].end, to - tokens[i].end);
  };

  // Labels come before their figures or after them: the first figure shows which.
  bool labels_follow = false;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!tokens[i].is_amount() || tokens[i].rate) continue;
    const bool before = !read_label(label_before(before_of(i))).roles.empty();
    labels_follow = !before && !read_label(label_after(after_of(i))).roles.empty();
    if (before || labels_follow) break;  // "45%|" of a progress bar shows neither
  }

  bool of_gpu = false;  // the line has mentioned the memory of a GPU so far
  bool names_gpu = false;
  std::size_t index_at = tokens.size();  // the last token that names a GPU
  int gpu = -1;
  std::string_view context;
  bool has_pair_of_gpu = false;
  std::vector<std::pair<std::size_t, std::size_t>> other_pairs;  // first figure of each, and the end of its figures
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const Token& t = tokens[i];
    const std::string_view before = before_of(i);
    const std::string_view near = t.is_amount() ? std::string_view{} : word_right_before(before);
    const Meaning named = near.empty() ? Meaning::none : meaning_of(near);
    const bool plain = t.whole && !t.is_amount() && t.number < 1e15;
    // A number with a unit is not an index: "GPU 0 MiB" has no index, "gpu0" has one.
    if (plain && (named == Meaning::gpu || named == Meaning::rank) && t.number < 1024) {
      if (out.gpu < 0) {
        out.gpu_begin = t.begin;
        out.gpu_end = t.digits_end;
        out.gpu_word = near;
      }
      if (named == Meaning::gpu || gpu < 0) gpu = out.gpu = static_cast<int>(t.number);
      names_gpu |= named == Meaning::gpu;
      if (named == Meaning::gpu) index_at = i;
      const Label words = read_label(before);
      if (words.is_of_gpu()) of_gpu = true;
      continue;
    }
    if (plain && is_count(named)) {
      out.counts.push_back({named, static_cast<std::uint64_t>(t.number), t.begin, t.digits_end, near});
      continue;
    }
    // "第 5 步", and "| 45/100 [" of tqdm.
    if (plain && before.ends_with("第") | before.ends_with("第 ")) {
      std::vector<Word> words;
      cut_words(logtext::trim(after_of(i)), words);
      if (!words.empty() && is_count(words.front().meaning))
        out.counts.push_back({words.front().meaning, static_cast<std::uint64_t>(t.number), t.begin, t.digits_end, {}});
      continue;
    }
    if (plain && logtext::trim(before).ends_with('|') && after_of(i).starts_with("/") && i + 1 < tokens.size() &&
        logtext::trim(line.substr(tokens[i + 1].digits_end)).starts_with("[")) {
      out.counts.push_back({Meaning::iteration, static_cast<std::uint64_t>(t.number), t.begin, t.digits_end, {}});
      continue;
    }
    if (t.rate) continue;

    const bool pair = i + 1 < tokens.size() && joins_pair(after_of(i)) && tokens[i + 1].unit_bytes != 0 &&
                      !tokens[i + 1].rate && !t.percent;
    const bool is_bare = pair && t.binary && tokens[i + 1].binary;  // "7998MiB / 12053MiB" without any words
    std::string_view label_text = label_before(before);
    Label label = read_label(label_text);
    const std::string_view after = label_after(after_of(pair ? i + 1 : i));
    const bool ends = after.size() < after_of(pair ? i + 1 : i).size() || (pair ? i + 2 : i + 1) >= tokens.size();
    if ((labels_follow || (label.roles.empty() && ends)) && t.is_amount()) {
      const Label follows = read_label(after);
      if (!follows.roles.empty() || (follows.other && labels_follow)) {
        const bool was_gpu = label.gpu, was_memory = label.memory, was_vram = label.vram;
        const std::string_view subject = label.subject;
        label = follows;
        label_text = after;
        label.gpu |= was_gpu && !labels_follow;
        label.memory |= was_memory && !labels_follow;
        label.vram |= was_vram && !labels_follow;
        if (label.subject.empty()) label.subject = subject;
      }
    }
    if (label.is_of_gpu()) {
      of_gpu = true;
      context = label.subject;
    }
    if (label.other && !label.is_of_gpu()) {
      if (pair) ++i;
      continue;
    }
    const auto [role, role_word] = label.role();
    const std::uint64_t unit = t.unit_bytes != 0 ? t.unit_bytes : pair ? tokens[i + 1].unit_bytes : label.unit_bytes;
    const bool is_memory = label.memory || label.vram;
    // "cuda:0 4000 MiB cuda:1 9000 MiB"
    const bool follows_index =
        i > 0 && i == index_at + 1 && before.find_first_not_of(" :=-]") == std::string_view::npos;
    bool take = false;
    if (t.percent)
      take = is_memory && role != Meaning::free && role != Meaning::total;
    else if (label.rate)
      take = false;
    else if (unit != 0)
      take = role != Meaning::none || is_memory || label.nearest_is_gpu || follows_index ||
             (pair && (of_gpu || names_gpu || is_bare));
    else
      take = label.is_of_gpu() || (of_gpu && (is_memory || (role != Meaning::none && role != Meaning::current))) ||
             (role != Meaning::none && label.gpu);
    // "12:00:00 used=329.6": the only number of a line with a time.
    const bool is_bare_use = tokens.size() == 1 && !time.empty() &&
                             (role == Meaning::used || role == Meaning::allocated || role == Meaning::reserved);
    const bool is_unclear = !take && unit == 0 && (is_memory || is_bare_use) && !pair && !t.percent && !label.rate &&
                            !label.other && role != Meaning::free && role != Meaning::total;
    if (!take && !is_unclear) continue;

    MemoryFigure f;
    f.role = role == Meaning::none ? Meaning::used : role;
    f.is_said = role != Meaning::none;
    f.number = t.number;
    f.unit_bytes = unit;
    f.percent = t.percent;
    f.is_open = t.open;
    f.gpu = gpu;
    f.begin = t.begin;
    f.digits_end = t.digits_end;
    f.end = t.end;
    f.word = role != Meaning::none ? role_word : !label.subject.empty() ? label.subject : context;
    f.label = without_digits(label_text);
    if (!pair) {
      (take ? out.figures : out.unclear).push_back(std::move(f));
      continue;
    }
    const Token& second = tokens[++i];
    MemoryFigure total = f;
    total.role = Meaning::total;
    total.is_said = true;
    total.number = second.number;
    total.unit_bytes = second.unit_bytes;
    total.is_open = second.open;
    total.begin = second.begin;
    total.digits_end = second.digits_end;
    total.end = second.end;
    total.word = {};
    if (const auto roles = roles_of_pair(label_text)) {
      std::tie(f.role, total.role) = *roles;
    } else if (f.role == Meaning::total) {
      f.role = Meaning::used;  // "total: 5 / 24 GB"
    }
    if (total.role == Meaning::total && f.bytes(1) > total.bytes(1)) continue;
    const std::size_t first = out.figures.size();
    out.figures.push_back(std::move(f));
    if (total.role != Meaning::peak) out.figures.push_back(std::move(total));  // of two peaks, the first is meant
    if (label.gpu || label.vram || gpu >= 0)
      has_pair_of_gpu = true;
    else
      other_pairs.emplace_back(first, out.figures.size());
  }
  // "memory 10/64 GB, GPU memory 8/24 GB": the other pair is the host's.
  for (std::size_t i = other_pairs.size(); has_pair_of_gpu && i-- > 0;)
    out.figures.erase(out.figures.begin() + static_cast<std::ptrdiff_t>(other_pairs[i].first),
                      out.figures.begin() + static_cast<std::ptrdiff_t>(other_pairs[i].second));
  settle_current(out.figures);
  settle_current(out.unclear);
}

}  // namespace vramtrack
