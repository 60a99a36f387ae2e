#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>

#include "core/units.hpp"
#include "source/log/labels.hpp"
#include "source/log/line_numbers.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtext::is_digit;

constexpr double kMostGpus = 1024;
constexpr std::string_view kSigns = " :='\"{}()[]-";

bool is_count(Meaning meaning) {
  return meaning >= Meaning::step && meaning <= Meaning::request;
}

/// "tokens_per_second_per_gpu:100", "samples/GPU: 12": not an index.
bool is_rate_per(std::string_view text, std::string_view word) {
  text = text.substr(0, static_cast<std::size_t>(word.data() - text.data()));
  return text.ends_with("per_") || text.ends_with("per ") || text.ends_with("/");
}

/// "temperature_gpu: 30", "\"power_gpu\": 71": another quantity of a GPU, not an index. "used_gpu0" is an index.
bool is_quantity_of(std::string_view text, std::string_view word) {
  const auto begin = static_cast<std::size_t>(word.data() - text.data());
  if (begin + word.size() == text.size() || begin == 0 || text[begin - 1] != '_') return false;
  const Meaning of = meaning_of(word_right_before(text.substr(0, begin)));
  return of == Meaning::other || of == Meaning::rate || of == Meaning::measured;
}

/// "num_gpus: 1", "GPUs: 8": the number of GPUs. "gpus[0]" and "gpus.0" are indices.
bool is_number_of(std::string_view text, std::string_view word) {
  return logtext::lower(word.back()) == 's' && std::string_view("[(./#").find(text.back()) == std::string_view::npos;
}

/// The divisor of a label: "/ 1024**3", "/1024/1024", "/1e9", "/ (1 << 30)".
struct Divisor {
  std::size_t begin = 0, end = 0;  ///< in the line
  double value = 1;
};

/// The number at `at`, with its exponent: "1024", "1e9", "2**30", "1024^3", "1<<20". Moves `at` past it.
std::optional<double> read_power(std::string_view text, std::size_t& at) {
  const auto skip = [&] {
    while (at < text.size() && text[at] == ' ') ++at;
  };
  const auto whole = [&]() -> std::optional<double> {
    skip();
    const std::size_t from = at;
    double value = 0;
    for (; at < text.size() && is_digit(text[at]); ++at) value = value * 10 + (text[at] - '0');
    if (at == from || at - from > 12) return std::nullopt;
    if (at + 1 < text.size() && text[at] == '.' && text[at + 1] == '0') at += 2;  // "1024.0"
    return value;
  };
  auto value = whole();
  if (!value) return std::nullopt;
  if (at + 1 < text.size() && (text[at] == 'e' || text[at] == 'E') && is_digit(text[at + 1])) {
    ++at;
    const auto exponent = whole();
    return exponent ? std::optional(*value * std::pow(10, *exponent)) : std::nullopt;
  }
  const std::size_t end = at;
  skip();
  const std::string_view rest = text.substr(at);
  const std::size_t sign = rest.starts_with("**") || rest.starts_with("<<") ? 2 : rest.starts_with("^") ? 1 : 0;
  at += sign;
  const auto exponent = sign > 0 ? whole() : std::nullopt;
  if (!exponent) {
    at = end;
    return value;
  }
  return rest.starts_with("<<") ? *value * std::pow(2, *exponent) : std::pow(*value, *exponent);
}

/// The divisor with its slash at `slash`, including any divisors that follow.
std::optional<Divisor> read_divisor(std::string_view line, std::size_t slash) {
  Divisor out;
  out.begin = slash;
  std::size_t at = slash;
  while (at < line.size() && line[at] == '/') {
    ++at;
    while (at < line.size() && (line[at] == ' ' || line[at] == '(')) ++at;
    const auto value = read_power(line, at);
    if (!value) break;
    out.value *= *value;
    while (at < line.size() && line[at] == ')') ++at;
    out.end = at;
    while (at < line.size() && line[at] == ' ') ++at;
  }
  constexpr double kUnits[] = {1e3, 1024, 1e6, 0x1p20, 1e9, 0x1p30};
  if (out.end == 0 || std::find(std::begin(kUnits), std::end(kUnits), out.value) == std::end(kUnits))
    return std::nullopt;
  return out;
}

/// The word that says what a number after `text` indexes: for "gpu_id=", "GPU index " and "dev", it is "gpu", for
/// "process id" it is "process".
std::string_view index_word(std::string_view text) {
  const std::string_view near = word_right_before(text);
  constexpr std::string_view kIndexWords[] = {"id", "idx", "index", "no", "nr", "num", "number", "ordinal"};
  const bool is_index = std::any_of(std::begin(kIndexWords), std::end(kIndexWords),
                                    [&](std::string_view w) { return logtext::same_letters(near, w); });
  if (!is_index) return near;
  const std::string_view of = word_right_before(text.substr(0, static_cast<std::size_t>(near.data() - text.data())));
  const Meaning meaning = of.empty() ? Meaning::none : meaning_of(of);
  const bool is_named = meaning == Meaning::gpu || meaning == Meaning::rank || meaning == Meaning::process;
  return is_named ? of : near;
}

/// Whether `near` is what index_word() finds in "process id", not the last word of `text`.
bool is_id_of_process(std::string_view text, std::string_view near) {
  return meaning_of(near) == Meaning::process && word_right_before(text).data() != near.data();
}

class NumberNamer {
 public:
  NumberNamer(CutLine& cut, LineFigures& out) : cut_(cut), numbers_(cut.numbers), out_(out) {}

  void name() {
    take_divisors();
    drop_names();
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      LineNumber& n = numbers_[i];
      if (is_argument(i))
        name_gpu(i, NumberUse::argument, word_right_before(cut_.before(i)));
      else if (n.whole && !n.is_amount())
        name_by_word(i);
    }
    name_keys();
    share_units();
  }

 private:
  /// "memory_allocated() / 1024**3 = 5.8": the divisor gives the figure's unit and is not a figure.
  void take_divisors() {
    const std::string_view line = cut_.line;
    for (std::size_t slash = line.find('/'); slash != std::string_view::npos; slash = line.find('/', slash + 1)) {
      const auto divisor = read_divisor(line, slash);
      if (!divisor) continue;
      const auto first =
          std::find_if(numbers_.begin(), numbers_.end(), [&](const LineNumber& n) { return n.begin > divisor->begin; });
      if (first == numbers_.end()) return;
      // "5986/1024 MB" is a part of a whole. A divisor has a label before it, and its figure follows.
      const auto behind =
          std::find_if(first, numbers_.end(), [&](const LineNumber& n) { return n.begin >= divisor->end; });
      const std::string_view before = cut_.before(static_cast<std::size_t>(first - numbers_.begin()));
      const std::size_t label_end = before.find_last_not_of(" /(");
      if (behind == numbers_.end() || label_end == std::string_view::npos || std::prev(behind)->unit_bytes != 0 ||
          line.substr(divisor->end, behind->begin - divisor->end).find_first_not_of(kSigns) != std::string_view::npos)
        continue;
      if (!behind->is_amount() && !behind->rate) behind->unit_bytes = static_cast<std::uint64_t>(divisor->value);
      numbers_.erase(first, behind);
      slash = divisor->end - 1;
    }
  }

  /// "HBM3: 40 GB", "loop#3": part of the word. "RTX 5080", "A100 80GB PCIe": part of the card's name, not a label.
  void drop_names() {
    constexpr std::string_view kWord = "hbm";
    std::vector<Word> words;
    cut_words(cut_.line, words);
    std::size_t end = 0;
    for (const Word& word : words) {
      const auto begin = static_cast<std::size_t>(word.text.data() - cut_.line.data());
      if (begin < end || !is_of_card(word.text)) continue;
      end = end_of_card(begin);
      if (end == 0) continue;
      cut_.names.push_back({begin, end});
      std::erase_if(numbers_, [&](const LineNumber& n) { return n.begin >= begin && n.begin < end; });
    }
    std::erase_if(numbers_, [&](const LineNumber& n) {
      const std::string_view before = cut_.line.substr(0, n.begin);
      if (before.size() >= kWord.size() && logtext::same_letters(before.substr(before.size() - kWord.size()), kWord))
        return true;
      const std::string_view word = word_right_before(before);
      // "np.float64(50.96)"
      if (n.digits_end < cut_.line.size() && cut_.line[n.digits_end] == '(' && !word.empty() &&
          word.data() + word.size() == before.data() + before.size() && meaning_of(word) == Meaning::none)
        return true;
      return before.ends_with('#') && !word.empty() && word.data() + word.size() + 1 == before.data() + before.size() &&
             meaning_of(word) == Meaning::none;
    });
  }

  static bool is_of_card(std::string_view word) {
    constexpr std::array<std::string_view, 11> kWords = {"nvidia", "amd",    "geforce", "rtx",   "gtx", "rx",
                                                         "radeon", "quadro", "tesla",   "intel", "arc"};
    return std::any_of(kWords.begin(), kWords.end(),
                       [&](std::string_view w) { return logtext::same_letters(word, w); });
  }

  /// The end of the card's name that begins at `at`: after its model, a size written together with its unit, and the
  /// words up to the next punctuation; 0 if there is no model, so that it is not a name.
  [[nodiscard]] std::size_t end_of_card(std::size_t at) const {
    const std::string_view line = cut_.line;
    std::size_t model_end = 0;
    bool is_behind_brand = false;
    for (bool goes_on = true; goes_on;) {
      std::size_t stop = at;
      while (stop < line.size() && (is_letter(line[stop]) || is_digit(line[stop]))) ++stop;
      const std::string_view word = line.substr(at, stop - at);
      const std::size_t letters = word.find_first_not_of("0123456789");
      const std::uint64_t unit = letters == std::string_view::npos ? 0 : written_unit(word.substr(letters));
      const Meaning of = meaning_of(word);
      if (word.empty() || (of >= Meaning::used && of <= Meaning::vram) ||
          (of >= Meaning::rank && of <= Meaning::request))
        return model_end;
      if (is_digit(word.front())) {
        const bool is_size =
            model_end > 0 && unit == kBytesPerGiB && !logtext::trim(line.substr(stop)).starts_with('/');
        if (!is_size && (letters != std::string_view::npos || !is_behind_brand)) return model_end;
      }
      if (std::any_of(word.begin(), word.end(), is_digit)) model_end = stop;
      is_behind_brand = is_of_card(word);
      at = stop;
      goes_on = at < line.size() && (line[at] == ' ' || line[at] == '-');
      if (goes_on) ++at;
    }
    const bool ends = at == line.size() || std::string_view(",;|)]").find(line[at]) != std::string_view::npos ||
                      (line[at] == ':' && (at + 1 == line.size() || !is_digit(line[at + 1])));
    return ends && model_end > 0 ? at : model_end;
  }

  /// The letters, underscores, hyphens and dots directly before the number: "torch.cuda.memory_allocated(", "used_".
  [[nodiscard]] std::string_view name_before(std::size_t i) const {
    const std::string_view text = cut_.before(i);
    std::size_t from = text.size();
    while (from > 0 && (is_letter(text[from - 1]) || std::string_view("_.([#").find(text[from - 1]) != text.npos))
      --from;
    return text.substr(from);
  }

  /// Whether only punctuation and the figure's unit separate number `i` from the next one.
  [[nodiscard]] bool precedes_figure(std::size_t i) const {
    if (i + 1 >= numbers_.size()) return false;
    const std::string_view gap = cut_.after(i);
    const std::size_t from = gap.find_first_not_of(kSigns);
    return from == std::string_view::npos ||
           written_unit(gap.substr(from, gap.find_last_not_of(kSigns) + 1 - from)) != 0;
  }

  /// Whether number `i` could be the index of a GPU by itself.
  [[nodiscard]] bool is_small(std::size_t i) const {
    const LineNumber& n = numbers_[i];
    return n.whole && n.unit_bytes == 0 && !n.percent && n.number < kMostGpus;
  }

  /// "memory_allocated(0) = ", "memory_used[1]=", "used_0=", "VRAM1 9000 MB": the index of the queried GPU.
  [[nodiscard]] bool is_argument(std::size_t i) const {
    const std::string_view line = cut_.line;
    const LineNumber& n = numbers_[i];
    if (!is_small(i) || n.begin < 2 || i + 1 >= numbers_.size()) return false;
    const std::string_view name = name_before(i);
    if (name.empty() || !(is_letter(name.front()) || name.front() == '_')) return false;
    const Label label = read_label(name);
    const char open = name.back();
    if (open == '(' || open == '[') {
      if (n.digits_end >= line.size() || !is_letter(line[n.begin - 2])) return false;
      const bool is_closed = line[n.digits_end] == (open == '(' ? ')' : ']');
      return is_closed && read_label(label_before(cut_.before(i))).has_meaning();
    }
    const std::string_view word = word_right_before(name);
    if (is_count(meaning_of(word)) || meaning_of(word) == Meaning::gpu || meaning_of(word) == Meaning::rank)
      return false;
    const bool is_of_memory = label.memory || label.vram || (label.gpu && !label.roles.empty());
    const bool has_role = !label.roles.empty() && numbers_[i + 1].unit_bytes != 0;
    return (is_of_memory || has_role) && precedes_figure(i);
  }

  void name_gpu(std::size_t i, NumberUse use, std::string_view word) {
    LineNumber& n = numbers_[i];
    n.use = use;
    if (out_.gpu < 0) {
      out_.gpu_begin = n.begin;
      out_.gpu_end = n.digits_end;
      out_.gpu_word = word;
    }
    if (use != NumberUse::rank || out_.gpu < 0) out_.gpu = static_cast<int>(n.number);
  }

  /// "GPU 0", "rank 3", "pid 4242", "step 5". A number with a unit is not an index: "GPU 0 MiB" contains none.
  void name_by_word(std::size_t i) {
    LineNumber& n = numbers_[i];
    const std::string_view text = cut_.before(i);
    const std::string_view near = index_word(text);
    const Meaning named = near.empty()                         ? Meaning::none
                          : logtext::same_letters(near, "dev") ? Meaning::gpu
                          : is_id_of_process(text, near)       ? Meaning::pid
                                                               : meaning_of(near);
    if (named == Meaning::pid && n.number < 1e9) {
      n.use = NumberUse::pid;
      out_.pid = static_cast<std::uint32_t>(n.number);
      out_.pid_begin = n.begin;
      out_.pid_end = n.digits_end;
      out_.pid_word = near;
    } else if (named == Meaning::gpu || named == Meaning::rank) {
      // "gpu01" is a host.
      const bool is_host =
          n.digits_end - n.begin > 1 && cut_.line[n.begin] == '0' && n.begin > 0 && is_letter(cut_.line[n.begin - 1]);
      // "gpu 180epochs"
      const bool is_of_word = n.begin > 0 && cut_.line[n.begin - 1] == ' ' && n.digits_end < cut_.line.size() &&
                              logtext::is_ascii_letter(cut_.line[n.digits_end]);
      if (n.number < kMostGpus && !is_of_word && !is_rate_per(text, near) && !is_quantity_of(text, near) && !is_host &&
          !is_number_of(text, near))
        name_gpu(i, named == Meaning::gpu ? NumberUse::gpu : NumberUse::rank, near);
    } else {
      name_count(i, text, near);
    }
  }

  /// "step 5", "第 5 步", and tqdm's "| 45/100 [".
  void name_count(std::size_t i, std::string_view text, std::string_view near) {
    LineNumber& n = numbers_[i];
    if (n.number >= 1e15) return;
    constexpr double kBytesFrom = 4e6;  // "memory after step: 12480000000"
    if (n.number >= kBytesFrom && read_label(label_before(text)).memory) return;
    const auto count = [&](Meaning meaning, std::string_view word) {
      n.use = NumberUse::count;
      out_.counts.push_back({meaning, static_cast<std::uint64_t>(n.number), n.begin, n.digits_end, word});
    };
    if (!near.empty() && is_count(meaning_of(near))) return count(meaning_of(near), near);
    const std::string_view behind = cut_.after(i);
    if (text.ends_with("第") || text.ends_with("第 ")) {
      std::vector<Word> words;
      cut_words(logtext::trim(behind), words);
      if (!words.empty() && is_count(words.front().meaning)) return count(words.front().meaning, {});
    }
    // "Epoch: [0][  10/500]", "Epoch: [0]  [ 10/500]"
    const bool is_first_of_two = behind.starts_with("/");
    const std::string_view opened = logtext::trim(text);
    const bool is_behind_brackets =
        opened.ends_with('[') && logtext::trim(opened.substr(0, opened.size() - 1)).ends_with(']');
    if (is_first_of_two && is_behind_brackets && !out_.counts.empty() && out_.counts.back().meaning == Meaning::epoch)
      return count(Meaning::batch, {});
    if (is_first_of_two && logtext::trim(text).ends_with('|') && i + 1 < numbers_.size() &&
        logtext::trim(cut_.line.substr(numbers_[i + 1].digits_end)).starts_with("["))
      count(Meaning::iteration, {});
  }

  /// "{0: '5.85GB', 1: '4.88GB'}", "0: 5.85GB 1: 4.88GB": the keys differ, and each has a figure. Without braces, the
  /// figures must have units.
  void name_keys() {
    const std::string_view line = cut_.line;
    std::vector<std::size_t> keys;
    bool in_braces = true;
    for (std::size_t i = 0; i + 1 < numbers_.size(); ++i) {
      const LineNumber& n = numbers_[i];
      if ((n.use != NumberUse::amount && n.use != NumberUse::gpu) || !is_small(i) || n.rate) continue;
      std::size_t behind = n.digits_end;
      if (behind < line.size() && (line[behind] == '\'' || line[behind] == '"')) ++behind;
      if (behind >= line.size() || line[behind] != ':' || numbers_[i + 1].use != NumberUse::amount ||
          cut_.after(i).find_first_not_of(" :'\"{[(") != std::string_view::npos)
        continue;
      cut_.by_value |= !keys.empty();
      const bool is_again =
          std::any_of(keys.begin(), keys.end(), [&](std::size_t k) { return numbers_[k].number == n.number; });
      if (is_again || (!keys.empty() && keys.back() + 2 != i)) return;
      const std::string_view text = line.substr(0, n.begin);
      in_braces &= text.rfind('{') != text.npos && (text.rfind('}') == text.npos || text.rfind('}') < text.rfind('{'));
      if (!in_braces && numbers_[i + 1].unit_bytes == 0) return;
      keys.push_back(i);
    }
    if (keys.size() < 2) return;
    for (const std::size_t i : keys) name_gpu(i, NumberUse::key, {});
  }

  /// "[9000, 4000] MB", "{0: 9000, 1: 4000} MB": the unit applies to each.
  void share_units() {
    for (std::size_t i = numbers_.size(); i-- > 1;) {
      const std::string_view closing = cut_.line.substr(numbers_[i].digits_end, 1);
      if (numbers_[i].unit_bytes == 0 || (closing != "]" && closing != "}")) continue;
      for (std::size_t k = i; k-- > 0;) {
        if (numbers_[k].use == NumberUse::key) continue;
        const bool is_element = numbers_[k + 1].use == NumberUse::key || separates_elements(cut_.after(k));
        if (!is_element || numbers_[k].is_amount()) break;
        numbers_[k].unit_bytes = numbers_[i].unit_bytes;
      }
    }
  }

  CutLine& cut_;
  std::vector<LineNumber>& numbers_;
  LineFigures& out_;
};

}  // namespace

void name_numbers(CutLine& cut, LineFigures& out) {
  NumberNamer(cut, out).name();
}

}  // namespace vramtrack
