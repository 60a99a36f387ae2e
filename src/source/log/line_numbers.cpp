#include "source/log/line_numbers.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/units.hpp"
#include "source/log/labels.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtext::is_ascii_letter;
using logtext::is_digit;

/// The spaces and apostrophes that may be between thousands.
constexpr std::array<std::string_view, 7> kGroupSigns = {" ", "'", "_", "\u00a0", "\u202f", "\u2009", "\u2019"};

std::size_t group_sign(std::string_view text) {
  for (const std::string_view sign : kGroupSigns)
    if (text.starts_with(sign)) return sign.size();
  return 0;
}

bool is_digit_at(std::string_view line, std::size_t i) {
  return i < line.size() && is_digit(line[i]);
}

bool is_hex_letter(char c) {
  return (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/// The length of the UUID at `i`, in which digits are not numbers; 0 if there is none.
std::size_t uuid_length(std::string_view line, std::size_t i) {
  constexpr std::string_view kForm = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  if (line.size() - i < kForm.size() || line[i + 8] != '-' || line[i + 13] != '-') return 0;
  for (std::size_t k = 0; k < kForm.size(); ++k)
    if (kForm[k] == '-' ? line[i + k] != '-' : !is_digit(line[i + k]) && !is_hex_letter(line[i + k])) return 0;
  return kForm.size();
}

/// The unit after a number, in `[i, end)`; spaces may precede it.
std::string_view unit_at(std::string_view line, std::size_t i) {
  while (i < line.size() && line[i] == ' ') ++i;
  std::size_t end = i;
  while (end < line.size() && is_ascii_letter(line[end])) ++end;
  return line.substr(i, end - i);
}

/// Whether the words before a number refer to memory: "used 4 012 MB", but not "GPU 4 512 MB".
bool is_behind_memory_word(std::string_view before) {
  std::vector<Word> words;
  cut_words(before.substr(before.size() > 40 ? before.size() - 40 : 0), words);
  if (words.empty()) return false;
  const Word& last = words.back();
  const auto end = static_cast<std::size_t>(last.text.data() + last.text.size() - before.data());
  if (std::any_of(before.begin() + static_cast<std::ptrdiff_t>(end), before.end(), is_digit)) return false;
  return last.meaning >= Meaning::used && last.meaning <= Meaning::vram;
}

/// The end of a number with spaces or apostrophes between its thousands; `begin` if the number at `begin` has none.
std::size_t grouped_end(std::string_view line, std::size_t begin) {
  std::size_t i = begin;
  while (is_digit_at(line, i)) ++i;
  if (i - begin > 3 || line[begin] == '0') return begin;
  bool by_space = false;
  std::size_t groups = 0;
  for (;;) {
    const std::size_t sign = i < line.size() ? group_sign(line.substr(i)) : 0;
    const std::size_t next = i + sign;
    if (sign == 0 || !is_digit_at(line, next) || !is_digit_at(line, next + 1) || !is_digit_at(line, next + 2) ||
        is_digit_at(line, next + 3))
      break;
    by_space |= line[i] == ' ';
    i = next + 3;
    ++groups;
  }
  if (groups == 0) return begin;
  // A space may also separate other things.
  if (by_space && (written_unit(unit_at(line, i)) == 0 || !is_behind_memory_word(line.substr(0, begin)))) return begin;
  return i;
}

/// Whether the comma at `i` separates the elements of a list: no number has more than three digits before a group, or
/// after another group ("4,194,304,000").
bool separates_list(std::string_view line, std::size_t begin, std::size_t i) {
  constexpr std::size_t kLongestGroup = 3;
  const std::size_t last = line.substr(begin, i - begin).rfind(',');
  if (last != std::string_view::npos) begin += last + 1;
  if (line[i] != ',' || i - begin <= kLongestGroup) return false;
  std::size_t next = i + 1;
  while (is_digit_at(line, next)) ++next;
  return next - i > kLongestGroup && written_unit(unit_at(line, next)) == 0;
}

/// The end of the unit or word at `i`: letters, ASCII or Cyrillic.
std::size_t word_end(std::string_view line, std::size_t i) {
  const auto is_cyrillic = [&](std::size_t at) {
    const auto lead = static_cast<unsigned char>(line[at]);
    return at + 1 < line.size() && (lead == 0xd0 || lead == 0xd1);
  };
  while (i < line.size() && (is_ascii_letter(line[i]) || is_cyrillic(i))) i += is_ascii_letter(line[i]) ? 1U : 2U;
  return i;
}

/// The unit in "(MiB)" at `i`; empty if there is none. "GPU 6683 (MiB)" has one; in "GPU 0 (MiB): 6683", 0 is an index.
std::string_view unit_in_brackets(std::string_view line, std::size_t i) {
  if (i >= line.size() || line[i] != '(') return {};
  const std::size_t end = word_end(line, i + 1);
  const std::string_view unit = line.substr(i + 1, end - i - 1);
  const std::string_view behind = line.substr(std::min(end, line.size()));
  const bool ends = behind == ")" ||
                    (behind.size() > 1 && behind[0] == ')' && std::string_view(",;|].").find(behind[1]) != behind.npos);
  return ends && unit.size() > 1 && written_unit(unit) != 0 ? unit : std::string_view{};
}

/// The exponent at `i`, after a fraction: "e+09" in "6.19e+09". `length` is 0 if there is none.
struct Exponent {
  std::size_t length = 0;
  int value = 0;
};

Exponent exponent_at(std::string_view line, std::size_t i) {
  if (i + 1 >= line.size() || (line[i] != 'e' && line[i] != 'E')) return {};
  const bool has_sign = line[i + 1] == '+' || line[i + 1] == '-';
  std::size_t end = i + (has_sign ? 2 : 1);
  int value = 0;
  const std::size_t digits = end;
  while (is_digit_at(line, end) && end - digits < 2) value = value * 10 + (line[end++] - '0');
  if (end == digits || is_digit_at(line, end) || (end < line.size() && is_ascii_letter(line[end]))) return {};
  return {end - i, line[i + 1] == '-' ? -value : value};
}

}  // namespace

std::string plain_digits(std::string_view digits) {
  if (digits.find_first_not_of("0123456789.,") == std::string_view::npos) return std::string(digits);
  std::string out;
  for (std::size_t i = 0; i < digits.size();) {
    const std::size_t sign = group_sign(digits.substr(i));
    if (sign == 0) out += digits[i];
    i += std::max<std::size_t>(sign, 1);
  }
  return out;
}

std::string_view CutLine::before(std::size_t i) const {
  std::size_t from = i == 0 ? 0 : numbers[i - 1].end;
  if (!time.empty()) {
    const auto time_end = static_cast<std::size_t>(time.data() + time.size() - line.data());
    if (time_end <= numbers[i].begin) from = std::max(from, time_end);
  }
  for (const Name& name : names)
    if (name.begin >= from && name.end <= numbers[i].begin &&
        !read_label(line.substr(from, name.begin - from)).has_meaning())
      from = name.end;
  return line.substr(from, numbers[i].begin - from);
}

std::string_view CutLine::after(std::size_t i) const {
  const std::size_t to = i + 1 < numbers.size() ? numbers[i + 1].begin : line.size();
  return line.substr(numbers[i].end, to - numbers[i].end);
}

void cut_numbers(CutLine& out, Grouping open) {
  const std::string_view line = out.line;
  const std::string_view time = out.time;
  std::vector<LineNumber>& numbers = out.numbers;
  numbers.clear();
  out.names.clear();
  out.pairs.clear();
  out.by_value = false;
  out.uuid = {};
  bool several = false;  // several UUIDs of GPUs
  const std::size_t time_begin = time.empty() ? line.size() : static_cast<std::size_t>(time.data() - line.data());
  std::size_t list_end = 0;  // position after the comma that follows the last element of a list
  for (std::size_t i = 0; i < line.size();) {
    if (i == time_begin) {
      i += time.size();
      continue;
    }
    if (const std::size_t uuid = uuid_length(line, i); uuid > 0) {
      constexpr std::size_t kKind = 4;  // "GPU-", "MIG-"
      const std::string_view kind = line.substr(i - std::min(i, kKind), std::min(i, kKind));
      if (kind == "GPU-" || kind == "MIG-") {
        const std::string_view its = line.substr(i - kKind, kKind + uuid);
        several |= !out.uuid.empty() && out.uuid != its;
        out.uuid = its;
      }
      i += uuid;
      continue;
    }
    if (!is_digit(line[i])) {
      ++i;
      continue;
    }
    LineNumber t;
    t.begin = i;
    i = grouped_end(line, i);
    const bool in_list = list_end != 0 && list_end == t.begin;
    while (is_digit_at(line, i) ||
           (i < line.size() && (line[i] == '.' || line[i] == ',') && is_digit_at(line, i + 1))) {
      if (line[i] == ',' && (in_list || separates_list(line, t.begin, i))) {
        list_end = i + 1;
        break;
      }
      t.whole &= is_digit(line[i]) || line[i] == ',';
      ++i;
    }
    t.digits_end = t.end = i;
    const Exponent exponent = t.whole ? Exponent{} : exponent_at(line, i);
    i += exponent.length;
    t.digits_end = t.end = i;
    // "A100", "v1.2", "-3" are not figures. "gpu0" is treated as a name.
    const char before = t.begin > 0 ? line[t.begin - 1] : ' ';
    const bool negative = before == '-' && (t.begin < 2 || line[t.begin - 2] == ' ' || line[t.begin - 2] == '=');
    const bool is_change = before == '+' && (t.begin < 2 || !is_digit(line[t.begin - 2]));
    std::size_t word = i;
    if (word < line.size() && line[word] == ']') ++word;  // "[9000, 4000] MB"
    while (word < line.size() && line[word] == ' ') ++word;
    // "GPU 6683 (MiB)"; in "GPU 0 (MiB): 6683", 0 is an index.
    const std::size_t end = word_end(line, word);
    const std::string_view in_brackets = unit_in_brackets(line, word);
    const std::string_view unit = in_brackets.empty() ? line.substr(word, end - word) : in_brackets;
    const bool is_name = end < line.size() && line[end] == '_';  // "cuda:0 bytes_in_use=4194304000"
    t.unit_bytes = !unit.empty() && !is_name ? written_unit(unit) : 0;
    t.binary = unit == "MiB" || unit == "GiB";
    // A single letter is a unit only if it touches the number: "8 M" may mean anything. "32K" is hardly an amount of
    // GPU memory.
    constexpr std::size_t kDigitsOfKilobytes = 5;
    if (unit == "K" && word == i && i - t.begin >= kDigitsOfKilobytes) t.unit_bytes = kBytesPerKiB;
    if (t.unit_bytes != 0 && unit.size() == 1 && word != i) t.unit_bytes = 0;
    if (t.unit_bytes != 0 && in_brackets.empty()) {
      t.end = end;
      t.rate = end + 1 < line.size() && line[end] == '/' && line[end + 1] == 's';
    } else if (word < line.size() && (line[word] == '%' || is_percent_word(unit))) {
      t.percent = true;
      t.end = line[word] == '%' ? word + 1 : end;
    } else if (end > word && word == i) {
      t.rate = true;  // "12x", "3ms", "0b1f"
    }
    const std::string digits = plain_digits(line.substr(t.begin, t.digits_end - exponent.length - t.begin));
    t.number = read_number(digits, t.unit_bytes, open);
    t.open = is_open_number(digits, t.unit_bytes);
    if (exponent.length > 0) {
      constexpr int kOfBytes = 6;
      t.number *= std::pow(10.0, exponent.value);
      t.open = false;
      if (t.unit_bytes == 0 && exponent.value >= kOfBytes) t.unit_bytes = 1;
      t.rate |= t.unit_bytes == 0;  // a loss, a learning rate
    }
    t.whole |= t.open && open == Grouping::by_dot && t.number >= 1000;  // "1.200"
    if (t.number < 0 || negative || is_change) t.rate = true;
    i = std::max(t.end, i);
    // A number right after a letter ("A100", "cuda0") is kept because it may be an index, but it is never an amount.
    if (is_letter(before) && !begins_wide(before) && (static_cast<unsigned char>(before) < 0x80)) {
      t.rate = true;
      t.unit_bytes = 0;
      t.percent = false;
      t.end = i = t.digits_end;
    }
    numbers.push_back(t);
  }
  if (several) out.uuid = {};
}

LineLabels::LineLabels(const CutLine& cut) : cut_(cut) {
  follow_ = in_brackets_ = has_labels_in_brackets();
  if (follow_) return;
  for (std::size_t i = 0; i < cut.numbers.size(); ++i) {
    if (!cut.numbers[i].is_amount() || cut.numbers[i].rate) continue;
    const Label own = read_label(before(i));
    const std::string_view text = logtext::trim(cut.before(i));
    // "weights=13 GB gpu_used=20 GB"
    const bool stands_before =
        !own.roles.empty() || ((own.other || own.host) && (text.ends_with('=') || text.ends_with(':')));
    follow_ = !stands_before && !read_label(behind(i)).roles.empty() && ends_in_label();
    if (stands_before || follow_) break;  // "45%|" of a progress bar shows neither
  }
}

/// "Memory usage: 5 GB (allocated), 6 GB (reserved)": each of several amounts has its own label in brackets after it.
bool LineLabels::has_labels_in_brackets() const {
  std::size_t amounts = 0;
  for (std::size_t i = 0; i < cut_.numbers.size(); ++i) {
    if (!cut_.numbers[i].is_amount() || cut_.numbers[i].rate) continue;
    const std::string_view text = logtext::trim(cut_.after(i));
    if (!text.starts_with('(') || text.find(')') == std::string_view::npos ||
        read_label(label_after(text)).roles.empty())
      return false;
    ++amounts;
  }
  return amounts > 1;
}

/// Whether the last amount has a label after it: "24GB VRAM used 4000 MB" has none there.
bool LineLabels::ends_in_label() const {
  for (std::size_t i = cut_.numbers.size(); i-- > 0;)
    if (cut_.numbers[i].is_amount() && !cut_.numbers[i].rate) return !read_label(behind(i)).roles.empty();
  return false;
}

std::string_view LineLabels::before(std::size_t i) const {
  const std::string_view own = label_before(cut_.before(i));
  const bool is_asked = i > 0 && cut_.numbers[i - 1].is_index() && !read_label(own).has_meaning();
  return is_asked ? label_before(before_index(i - 1)) : own;
}

/// The text before the index `i`. Keys and the names of GPUs may follow one another, with the label before the first:
/// "VRAM: {0: '5 GB', 1: '6 GB'}".
std::string_view LineLabels::before_index(std::size_t i) const {
  const auto& numbers = cut_.numbers;
  std::string_view text = cut_.before(i);
  while (i >= 2 && numbers[i].use != NumberUse::argument && !read_label(text).has_meaning() &&
         numbers[i - 2].use == numbers[i].use && numbers[i - 1].use == NumberUse::amount) {
    i -= 2;
    text = cut_.before(i);
  }
  if (numbers[i].use == NumberUse::argument || numbers[i].use == NumberUse::key) return text;
  // "used(gpu0)", but not "host memory 45 % | GPU0".
  text.remove_prefix(text.find_last_of("|;") + 1);
  const std::string_view name = word_right_before(text);
  if (name.empty()) return text;
  std::string_view label = text.substr(0, static_cast<std::size_t>(name.data() - text.data()));
  label = label.substr(0, label.find_last_not_of(" ([{'\"") + 1);
  return read_label(label).has_meaning() ? label : text;
}

std::string_view LineLabels::behind(std::size_t i) const {
  const auto& numbers = cut_.numbers;
  std::string_view text = cut_.after(i);
  if (i + 1 < numbers.size() && (numbers[i + 1].use == NumberUse::gpu || numbers[i + 1].use == NumberUse::rank))
    if (const std::string_view name = word_right_before(text); !name.empty())
      text = text.substr(0, static_cast<std::size_t>(name.data() - text.data()));
  return label_after(text);
}

}  // namespace vramtrack
