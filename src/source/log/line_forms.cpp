#include "source/log/line_forms.hpp"

#include <algorithm>
#include <array>

#include "source/log/text.hpp"

namespace vramtrack {
namespace {

using logtext::is_digit;

/// Longer lines are rarely alike.
constexpr std::size_t kLongestLine = 512;
/// In total; a log has some ten forms, each with a few lengths of numbers.
constexpr std::size_t kMostKnown = 1024;
/// From this length on, the digits matter more than the form: such numbers are no longer counts.
constexpr std::size_t kMostDigits = 15;

/// The digits of a number without an exponent and without a product after it: "12345", "0.25".
bool is_plain(std::string_view digits) {
  std::size_t dots = 0;
  for (const char c : digits) {
    if (c == '.')
      ++dots;
    else if (!is_digit(c))
      return false;
  }
  return dots <= 1 && !digits.empty() && is_digit(digits.front()) && is_digit(digits.back());
}

/// The value of plain digits, as read_number() returns it.
double value_of(std::string_view digits) {
  logtext::Decimal out;
  return logtext::read_decimal(digits, out) && out.length == digits.size() ? out.value() : -1;
}

/// The digits at `i`, with the following characters up to the next separator.
std::string_view number_at(std::string_view line, std::size_t i) {
  std::size_t end = i;
  while (end < line.size() && (is_digit(line[end]) || line[end] == '.')) ++end;
  return line.substr(i, end - i);
}

/// Whether it is 10^3, 2^10 and so on, so that "/ 1024" gives the unit of an amount.
bool is_divisor(std::string_view digits) {
  constexpr std::array<std::string_view, 6> kUnits = {"1000", "1024", "1000000", "1048576", "1000000000", "1073741824"};
  digits = digits.substr(0, digits.find('.'));
  return std::find(kUnits.begin(), kUnits.end(), digits) != kUnits.end();
}

/// Turns views into `from` into views into `to`, which has the same length.
void move_views(LineFigures& found, std::string_view from, std::string_view to) {
  const auto move = [&](std::string_view& view) {
    view =
        view.empty() ? std::string_view{} : to.substr(static_cast<std::size_t>(view.data() - from.data()), view.size());
  };
  for (std::string_view* view :
       {&found.stamp, &found.minute, &found.elapsed.text, &found.gpu_word, &found.pid_word, &found.prefix, &found.uuid})
    move(*view);
  for (auto* const figures : {&found.figures, &found.unclear, &found.capacities})
    for (MemoryFigure& f : *figures) move(f.word);
  for (LineCount& count : found.counts) move(count.word);
}

}  // namespace

LineForms::StartParts LineForms::parts_of(const LineStart& start, std::string_view line) {
  const auto part = [&](std::string_view text) {
    return text.empty() ? Part{} : Part{static_cast<std::size_t>(text.data() - line.data()), text.size()};
  };
  return {part(start.prefix), part(start.stamp), part(start.minute), part(start.elapsed.text)};
}

bool LineForms::recall(std::string_view line, LineFigures& out) {
  has_form_ = line.size() <= kLongestLine;
  if (!has_form_) return false;
  form_.assign(line);
  for (std::size_t i = 0; i < line.size();) {
    if (!is_digit(line[i])) {
      ++i;
      continue;
    }
    // '2' for the first digit unless it is 0 or 1, '3' for the others; '4' in a small number with four digits.
    std::size_t end = i + 1;
    for (; end < line.size() && is_digit(line[end]); ++end) form_[end] = '3';
    if (line[i] > '1') form_[i] = '2';
    constexpr std::string_view kMostGpus = "1024";
    if (end - i == kMostGpus.size() && line.substr(i, end - i) < kMostGpus) form_[i + 1] = '4';
    i = end;
  }
  const auto found = known_.find(form_);
  if (found == known_.end()) return false;
  for (const Known& known : found->second) {
    if (!reads_as(known, line)) continue;
    fill(known, line, out);
    if (!known.begins_anew) return true;
    const LineStart start = read_line_start(line);
    if (parts_of(start, line) != known.start) continue;
    out.elapsed = start.elapsed;
    return true;
  }
  return false;
}

bool LineForms::reads_as(const Known& known, std::string_view line) {
  for (const Part& part : known.same)
    if (part.of(line) != part.of(known.line)) return false;
  for (const Part& part : known.no_divisors)
    if (is_divisor(part.of(line))) return false;
  for (const CutLine::Pair& pair : known.pairs) {
    MemoryFigure used = pair.used;
    MemoryFigure total = pair.total;
    used.number = value_of(line.substr(used.begin, used.digits_end - used.begin));
    total.number = value_of(line.substr(total.begin, total.digits_end - total.begin));
    if (used.bytes(1) > total.bytes(1)) return false;
  }
  return true;
}

void LineForms::fill(const Known& known, std::string_view line, LineFigures& out) {
  out = known.found;
  move_views(out, known.line, line);
  const auto number = [&](std::size_t from, std::size_t to) { return value_of(line.substr(from, to - from)); };
  for (auto* const figures : {&out.figures, &out.unclear, &out.capacities})
    for (MemoryFigure& f : *figures) f.number = number(f.begin, f.digits_end);
  for (LineCount& count : out.counts) count.value = static_cast<std::uint64_t>(number(count.begin, count.end));
  if (out.pid) out.pid = static_cast<std::uint32_t>(number(out.pid_begin, out.pid_end));
}

void LineForms::remember(const CutLine& cut, const LineStart& start, const LineFigures& found) {
  const std::string_view line = cut.line;
  if (!has_form_ || cut.by_value) return;
  const auto is_figure = [&](const LineNumber& n) {
    const auto is_it = [&](const MemoryFigure& f) { return f.begin == n.begin; };
    return std::any_of(found.figures.begin(), found.figures.end(), is_it) ||
           std::any_of(found.unclear.begin(), found.unclear.end(), is_it) ||
           std::any_of(found.capacities.begin(), found.capacities.end(), is_it);
  };
  Known known;
  for (const LineNumber& n : cut.numbers) {
    const std::string_view digits = line.substr(n.begin, n.digits_end - n.begin);
    if (!is_plain(digits)) {
      // "1,200" is read differently, and so is "1.2.3". The exponent in "1.2e-05" shows that it is not an amount.
      if (n.is_amount() || n.whole || is_figure(n)) return;
      const std::size_t rest = std::min(digits.find_first_not_of("0123456789."), digits.size());
      known.same.push_back({n.begin + rest, digits.size() - rest});
      continue;
    }
    if (digits.size() > kMostDigits) return;
    if (n.whole && digits.front() == '0' && digits.size() > 4) return;  // "00012" is small by its value
    if (n.is_index()) known.same.push_back({n.begin, digits.size()});
  }
  for (std::size_t slash = line.find('/'); slash != std::string_view::npos; slash = line.find('/', slash + 1)) {
    const std::size_t at = line.find_first_not_of(" (", slash + 1);
    if (at == std::string_view::npos || !is_digit(line[at])) continue;
    const std::string_view digits = number_at(line, at);
    const std::size_t next = line.find_first_not_of(" )", at + digits.size());
    // "/ 1024**3", "/1024/1024", "/ 1e9", "/ (1 << 30)"
    if (is_divisor(digits) ||
        (next != std::string_view::npos && std::string_view("*^<eE/").find(line[next]) != std::string_view::npos))
      return;
    known.no_divisors.push_back({at, digits.size()});
  }
  known.line = line;
  known.pairs = cut.pairs;
  known.start = parts_of(start, line);
  known.begins_anew = start.by_value || !start.elapsed.text.empty();
  if (size_ >= kMostKnown) {
    known_.clear();
    size_ = 0;
  }
  ++size_;
  Known& kept = known_[form_].emplace_back(std::move(known));
  kept.found = found;
  move_views(kept.found, line, kept.line);
}

}  // namespace vramtrack
