// The format `text`: lines whose figures are found by the words and units next to them, or by --line-pattern. Which
// figures to read is decided once from the head; then those are read from each line.
#include <fmt/format.h>

#include <algorithm>

#include "core/option.hpp"
#include "source/log/json.hpp"
#include "source/log/labels.hpp"
#include "source/log/text_plan.hpp"

namespace vramtrack {
namespace {

using logtext::excerpt;
using logtext::trim;

Result<std::unique_ptr<LogParser>> make_pattern_lines(const LogHead& head) {
  auto pattern = LinePattern::compile(head.options->line_pattern);
  if (!pattern) return fail(std::move(pattern.error()));
  LineCutter cutter(std::move(*pattern));
  Head all = survey(head.text, cutter, false);
  const auto has_use = [](const HeadLine& line) {
    return std::any_of(line.found.figures.begin(), line.found.figures.end(),
                       [](const MemoryFigure& f) { return f.role != Meaning::total; });
  };
  if (std::none_of(all.lines.begin(), all.lines.end(), has_use))
    return fail(fmt::format("no line of the first 256 KiB matches {} '{}'{}; the first line is '{}'",
                            name_of(Option::line_pattern), head.options->line_pattern,
                            all.has_match ? " with an amount of used, allocated, reserved or free memory" : "",
                            excerpt(all.first, 160)));
  std::vector<std::string> assumptions;
  auto planned = plan_pattern(head, all, cutter, assumptions);
  if (!planned) return fail(std::move(planned.error()));
  return make_text_lines(std::move(*planned), std::move(cutter), head.options->capacity_bytes.has_value(),
                         std::move(assumptions));
}

Result<std::unique_ptr<LogParser>> make_word_lines(const LogHead& head) {
  const LineCutter cutter;
  Head all = survey(head.text, cutter, false);
  // A line of code or a heading that names a unit matters less than many lines that do not.
  constexpr std::size_t kManyMore = 10;
  constexpr std::size_t kFew = 100;
  bool unclear = all.lines.empty();
  if (all.lines.size() <= kFew)
    if (Head other = survey(head.text, cutter, true); unclear || other.lines.size() >= kManyMore * all.lines.size()) {
      unclear = true;
      all = std::move(other);
    }
  if (all.lines.empty())
    return fail(fmt::format(
        "no line has a figure of GPU memory: a number with a unit (MiB, GB, %) or beside words such as 'memory used', "
        "'allocated', 'VRAM' (also in Chinese, Japanese, Korean and German); the first line is '{}'; {}",
        excerpt(all.first, 100), pattern_hint()));
  std::vector<std::string> assumptions;
  auto planned = plan_text(head, all, cutter, unclear, assumptions);
  if (!planned) return fail(std::move(planned.error()));
  planned->plan.read_as = read_as(all, planned->plan);
  // The head is kept, since only the last of several parsers of a log is asked.
  planned->correction = [text = std::string(head.text), lines = std::make_shared<const Head>(std::move(all)),
                         plan = planned->plan, share_epochs = planned->share_epochs] {
    const std::string pattern = share_epochs ? std::string() : equal_pattern(text, *lines, plan);
    return pattern.empty()
               ? fmt::format("no single {0} reads all of this; to read something else, describe a line with {0}",
                             name_of(Option::line_pattern))
               : fmt::format("to correct it: {} '{}'", name_of(Option::line_pattern), pattern);
  };
  return make_text_lines(std::move(*planned), cutter, head.options->capacity_bytes.has_value(), std::move(assumptions));
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  return head.options->line_pattern.empty() ? make_word_lines(head) : make_pattern_lines(head);
}

constexpr std::size_t kFirst = 300;
constexpr std::size_t kLooked = 4000;

/// Calls `see` with the figures of each of the first `most` lines of `head`, until it returns false; `rows`: after the
/// rows of tables were rewritten.
template <class See>
void each_line(std::string_view head, std::size_t most, bool rows, See see) {
  LineFigures found;
  TableRows table;
  for (std::size_t i = 0; i < most && !head.empty(); ++i) {
    std::string_view line = logtext::take_line(head);
    if (rows) line = table.line(line);
    if (trim(line).empty()) continue;
    find_figures(line, found);
    if (!see(found, table.in_table())) return;
  }
}

bool has_amount(const LineFigures& found) {
  return std::any_of(found.figures.begin(), found.figures.end(), [](const MemoryFigure& f) { return !f.percent; });
}

/// Whether a third of the first lines are figures with words, or half of them rows of a table with figures. The rows of
/// another table have no words, even if some line looks like its header.
bool are_mostly_figures(std::string_view head) {
  for (const bool rows : {true, false}) {
    std::size_t lines = 0;
    std::size_t figures = 0;
    each_line(head, kFirst, rows, [&](const LineFigures& found, bool in_table) {
      ++lines;
      figures += (in_table || !rows) && has_amount(found) ? 1U : 0U;
      return true;
    });
    if (figures >= 3 && figures * (rows ? 2 : 3) >= lines) return true;
  }
  return false;
}

/// How many of the first lines have figures; stops at `most`. `unclear`: see LineFigures::unclear.
std::size_t count_lines(std::string_view head, bool unclear, std::size_t most) {
  std::size_t lines = 0;
  each_line(head, kLooked, !unclear, [&](const LineFigures& found, bool) {
    lines += (unclear ? found.unclear : found.figures).empty() ? 0U : 1U;
    return lines < most;
  });
  return lines;
}

/// Requires a few lines that have figures with words: a single one may be a coincidence. The lines of a JSON document
/// are no sentences.
Evidence recognise_from(std::string_view head, Evidence least) {
  if (least > Evidence::mostly_prose || is_json_document(head)) return Evidence::none;
  if (are_mostly_figures(head)) return Evidence::mostly_prose;
  if (least > Evidence::prose) return Evidence::none;  // what follows reads the whole head if no line has a figure
  constexpr std::size_t kEnough = 2;
  const std::size_t lines = count_lines(head, false, kEnough);
  if (lines > 0) return lines == kEnough ? Evidence::prose : Evidence::syntax;
  constexpr std::size_t kUnclear = 3;
  return count_lines(head, true, kUnclear) == kUnclear ? Evidence::syntax : Evidence::none;
}

Evidence recognise(std::string_view head) {
  return recognise_from(head, Evidence::syntax);
}

}  // namespace

const LogFormatInfo text_log_format{
    "text",
    "what programs print: memory figures with words and units, or as a line pattern describes",
    recognise,
    make,
    each_line_is_a_record,
    true,
    recognise_from,
    true};

namespace {

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
