// The format `text`: output of people's own programs. Lines as --line-pattern describes them, else figures identified
// by the words next to them.
#include <algorithm>

#include "source/log/text_lines.hpp"

namespace vramtrack {
namespace {

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  return head.options->line_pattern.empty() ? make_word_lines(head) : make_pattern_lines(head);
}

/// Whether a third of the first lines are figures with words: the rows of a table do not have those, even if some
/// other line looks like the header of a table.
bool are_mostly_figures(std::string_view head) {
  constexpr std::size_t kFirst = 300;
  LineFigures found;
  std::size_t lines = 0;
  std::size_t figures = 0;
  for (std::size_t i = 0; i < kFirst && !head.empty(); ++i) {
    const std::string_view line = logtext::take_line(head);
    if (logtext::trim(line).empty()) continue;
    ++lines;
    find_figures(line, found);
    figures += std::any_of(found.figures.begin(), found.figures.end(), [](const MemoryFigure& f) { return !f.percent; })
                   ? 1U
                   : 0U;
  }
  return figures >= 3 && figures * 3 >= lines;
}

/// Requires a few lines that have figures with words: a single one may be a coincidence, and is a weak match, so that
/// its user is told what the text lacks. Ranks above tables without titles, whose columns are guessed, and below those
/// with titles, unless most lines have such figures. The bars of a Markdown table make it look like other tables.
int recognise_above(std::string_view head, int to_beat) {
  constexpr int kMostly = 54;
  constexpr int kSome = 32;
  if (to_beat >= kMostly) return 0;
  if (is_table_of_figures(head) || are_mostly_figures(head)) return kMostly;
  if (to_beat >= kSome) return 0;  // what follows reads the whole head where no line has a figure
  constexpr std::size_t kEnough = 2;
  const std::size_t lines = count_word_lines(head, kEnough);
  if (lines > 0) return lines == kEnough ? kSome : 4;
  return has_unclear_lines(head) ? 3 : 0;
}

int recognise(std::string_view head) {
  return recognise_above(head, 0);
}

}  // namespace

extern const LogFormatInfo text_log_format;
const LogFormatInfo text_log_format{
    "text",
    "what programs print: memory figures with words and units, or as a line pattern describes",
    recognise,
    make,
    each_line_is_a_record,
    true,
    recognise_above};

}  // namespace vramtrack
