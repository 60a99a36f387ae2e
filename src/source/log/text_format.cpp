// The format `text`: output of people's own programs. Lines as --line-pattern describes them; else lines with a pair
// of used and total memory ("GPU Memory: 8123 / 24576 MB"); else figures identified by the words next to them.
#include <fmt/format.h>

#include <algorithm>

#include "source/log/memory_pair.hpp"
#include "source/log/stamp_search.hpp"
#include "source/log/text_lines.hpp"

namespace vramtrack {
namespace {

using logtext::excerpt;

/// Whether two pairs belong to one GPU, and nothing says which of them is meant.
bool is_ambiguous(const std::vector<MemoryPair>& pairs) {
  for (std::size_t i = 1; i < pairs.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (pairs[i].gpu == pairs[j].gpu) return true;
  return false;
}

class PairLines final : public TextLines {
 public:
  using TextLines::TextLines;

 private:
  void read_line(std::string_view line, std::uint64_t number, bool whole, LogRows& rows) override {
    if (!whole) return;
    read_time(find_stamp(line), rows);
    find_memory_pairs(line, pairs_);
    if (is_ambiguous(pairs_))
      return rows.skip(number, fmt::format("several pairs of used and total memory in '{}'", excerpt(line)));
    for (const MemoryPair& pair : pairs_) {
      TextFigures f;
      f.line = number;
      f.is_named = pair.gpu >= 0;
      if (f.is_named) f.gpu.index = pair.gpu;
      f.used = pair.used_bytes;
      f.total = pair.total_bytes;
      take(std::move(f), rows);
    }
  }

  std::vector<MemoryPair> pairs_;
};

Result<std::unique_ptr<LogParser>> make_pairs(const LogHead& head) {
  std::vector<std::string> assumptions;
  std::vector<MemoryPair> pairs;
  std::vector<UnnamedReading> unnamed;
  std::string_view stamp_text;
  std::string_view rest = head.text;
  bool found = false;
  bool bare = false;
  while (!rest.empty()) {
    const std::string_view line = logtext::take_line(rest);
    if (const std::string_view stamp = find_stamp(line); !stamp.empty()) stamp_text = stamp;
    find_memory_pairs(line, pairs);
    if (pairs.empty()) continue;
    if (!found && is_ambiguous(pairs))
      return fail("a line has several pairs of used and total memory; pass --line-pattern to say which is meant");
    found = true;
    bare |= pairs.front().bare;
    if (pairs.front().gpu < 0) unnamed.push_back({stamp_text, static_cast<double>(pairs.front().used_bytes)});
  }
  if (bare)
    assumptions.emplace_back(
        "pairs such as '841MiB / 8192MiB' are read as used and total GPU memory; pass --line-pattern if they are not");
  auto stamp = settle_text_clock(head, find_stamp, {}, assumptions);
  if (!stamp) return fail(std::move(stamp.error()));
  const auto places = count_places(unnamed, false, assumptions);
  if (!places) return fail(places.error());
  auto parser = std::make_unique<PairLines>(std::move(*stamp), std::move(assumptions));
  parser->expect_places(*places);
  return parser;
}

constexpr std::size_t kLooked = 2000;

/// How many of the first lines have pairs; stops at two.
std::size_t count_pair_lines(std::string_view head) {
  std::vector<MemoryPair> pairs;
  std::size_t lines = 0;
  for (std::size_t i = 0; i < kLooked && !head.empty() && lines < 2; ++i) {
    find_memory_pairs(logtext::take_line(head), pairs);
    if (!pairs.empty()) ++lines;
  }
  return lines;
}

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  if (!head.options->line_pattern.empty()) return make_pattern_lines(head);
  if (count_pair_lines(head.text) > 0 && !counts_for_time(head.text)) return make_pairs(head);
  return make_word_lines(head);
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

/// Requires a few lines that have figures with words: a single one may be a coincidence. Ranks above tables without
/// titles, whose columns are guessed, and below those with titles, unless most lines have such figures.
int recognise(std::string_view head) {
  if (are_mostly_figures(head)) return 54;
  const std::size_t pairs = count_pair_lines(head);
  if (pairs >= 2) return 34;
  constexpr std::size_t kEnough = 2;
  if (count_word_lines(head, kEnough) >= kEnough) return 32;
  return pairs == 1 ? 4 : 0;
}

}  // namespace

extern const LogFormatInfo text_log_format;
const LogFormatInfo text_log_format{
    "text", "what programs print: memory figures with words and units, or as --line-pattern describes", recognise, make,
    each_line_is_a_record};

}  // namespace vramtrack
