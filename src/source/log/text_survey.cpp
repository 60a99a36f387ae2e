// Surveys the head of a free-text log: which lines have memory figures, and how many.
#include <fmt/format.h>

#include <algorithm>

#include "core/option.hpp"
#include "source/log/labels.hpp"
#include "source/log/text_plan.hpp"
#include "source/log/text_refusal.hpp"

namespace vramtrack {

namespace {

using logtext::trim;

constexpr std::size_t kMostLines = 4000;

}  // namespace

std::string pattern_hint() {
  return fmt::format("describe a line with {0}, for example {0} 'memory used: (?<used>[0-9.]+ *GB)'",
                     name_of(Option::line_pattern));
}

std::string pattern_hint(const HeadLine& line) {
  for (const MemoryFigure& f : line.found.figures) {
    if (f.percent || f.role == Meaning::total || f.role == Meaning::free) continue;
    const std::string pattern = example_pattern(line.text, f.begin, f.end);
    if (!pattern.empty())
      return fmt::format("say which with {0}, for example {0} '{1}'", name_of(Option::line_pattern), pattern);
  }
  return pattern_hint();
}

std::string pattern_hint(const HeadLine& line, const std::vector<const HeadLine*>& others) {
  std::vector<Word> words;
  cut_words(std::string_view(line.text).substr(0, line.found.figures.empty() ? 0 : line.found.figures.front().begin),
            words);
  for (const Word& word : words) {
    if (word.text.size() < 3 || !is_letter(word.text.front()) || is_log_level(word.text)) continue;
    if (std::any_of(others.begin(), others.end(),
                    [&](const HeadLine* other) { return other->text.find(word.text) != std::string::npos; }))
      continue;
    for (const MemoryFigure& f : line.found.figures) {
      const std::string pattern = f.percent ? std::string() : example_pattern(line.text, f.begin, f.end);
      if (!pattern.empty())
        return fmt::format("say which with {0}, for example {0} '{1}.*?{2}'", name_of(Option::line_pattern), word.text,
                           pattern);
    }
  }
  return pattern_hint(line);
}

std::optional<std::uint64_t> count_of(const LineFigures& line, Meaning meaning) {
  for (const LineCount& count : line.counts)
    if (count.meaning == meaning) return count.value;
  return std::nullopt;
}

Head survey(std::string_view text, LineCutter cutter, bool unclear, Grouping grouping) {
  Head out;
  std::map<Meaning, std::uint64_t> counts;
  std::string stamp;
  std::string minute;
  std::uint64_t minute_line = 0;
  int head_gpu = -1;
  for (std::uint64_t number = 1; !text.empty() && out.lines.size() < kMostLines; ++number) {
    const std::string_view raw = logtext::take_line(text);
    HeadLine& line = out.lines.emplace_back();
    line.text = cutter.line(raw);
    line.is_row = cutter.in_table();
    line.number = number;
    if (out.first.empty()) out.first = trim(raw);
    if (reports_out_of_memory(raw)) {  // not read as a line of figures
      out.lines.pop_back();
      continue;
    }
    cutter.cut(line.text, grouping, line.found);
    out.has_match |= cutter.matches();
    if (unclear) line.found.figures.swap(line.found.unclear);
    if (!line.found.stamp.empty()) stamp = line.found.stamp;
    if (!line.found.minute.empty()) {
      minute = line.found.minute;
      minute_line = number;
    }
    for (const LineCount& count : line.found.counts) counts[count.meaning] = count.value;
    if (line.found.figures.empty()) {
      out.heads += line.found.gpu >= 0 ? 1 : 0;
      if (line.found.gpu >= 0) head_gpu = line.found.gpu;
      out.lines.pop_back();
      continue;
    }
    line.counts = counts;
    line.head_gpu = head_gpu;
    line.heads = out.heads;
    line.stamp = stamp;
    line.minute = minute;
    line.minute_line = minute_line;
    out.stamped += stamp.empty() ? 0U : 1U;
  }
  return out;
}

}  // namespace vramtrack
