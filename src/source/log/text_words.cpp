// Reads lines of free text by the words and units next to their figures: make_word_lines(). Which figures to read is
// decided once from the head; then those are read from each line.
#include <fmt/format.h>

#include <algorithm>

#include "core/option.hpp"
#include "core/units.hpp"
#include "source/log/line_fields.hpp"
#include "source/log/table_rows.hpp"
#include "source/log/text_plan.hpp"

namespace vramtrack {
namespace {

using logtext::excerpt;
using logtext::trim;

class WordLines final : public TextLines {
 public:
  WordLines(WordPlan plan, StampReader stamp, std::vector<std::string> assumptions)
      : TextLines(std::move(stamp), std::move(assumptions)), plan_(std::move(plan)) {}

  [[nodiscard]] bool processes_only() const override { return plan_.pid_is_process; }

  void finish(LogRows& rows) override {
    TextLines::finish(rows);
    rows.warn(
        fmt::format("{}; {} other line{} skipped{}", plan_.read_as, skipped_, skipped_ == 1 ? "" : "s", pattern_));
    if (doubled_ > 0)
      rows.warn(fmt::format("{} figure{} of a kind that {} line already gave {} not read, first on line {}", doubled_,
                            doubled_ == 1 ? "" : "s", doubled_ == 1 ? "its" : "their", doubled_ == 1 ? "was" : "were",
                            first_doubled_));
    if (otherwise_ >= kGoesOnOtherwise)
      rows.warn(
          fmt::format("no reading is behind line {}, although {} lines there give memory in use in other words, first "
                      "line {}: '{}'; "
                      "they are not read: analyze them by themselves, or describe them with {}",
                      last_read_, otherwise_, first_otherwise_, first_otherwise_text_, name_of(Option::line_pattern)));
  }
  void set_pattern(std::string text) { pattern_ = std::move(text); }

 private:
  static std::optional<std::uint64_t>& figure_of(TextFigures& out, Meaning role) {
    switch (role) {
      case Meaning::total:
        return out.total;
      case Meaning::free:
        return out.free;
      case Meaning::allocated:
        return out.allocated;
      case Meaning::reserved:
        return out.reserved;
      default:
        return out.used;
    }
  }

  void read_line(std::string_view raw, std::uint64_t number, bool whole, LogRows& rows) override {
    if (!whole) return;
    const std::string_view line = table_.line(raw);
    find_figures(line, found_, plan_.grouping);
    if (plan_.unclear) found_.figures.swap(found_.unclear);
    plan_.use_peaks(found_);
    plan_.convert_ratios(found_);
    if (!plan_.tag.empty()) found_.tag = field_of(line, plan_.tag);
    read_clock(rows);
    for (const MemoryFigure& f : found_.capacities) set_total(f.gpu, f.bytes(1));
    const bool has_figures = std::any_of(found_.figures.begin(), found_.figures.end(),
                                         [&](const MemoryFigure& f) { return plan_.takes(f); });
    if (!has_figures) {
      if (plan_.heads_name_gpu && found_.gpu >= 0) head_gpu_ = found_.gpu;
      if (!trim(line).empty()) ++skipped_;
      if (is_used_otherwise() && otherwise_++ == 0) {
        first_otherwise_ = number;
        first_otherwise_text_ = excerpt(trim(line), kQuoted);
      }
      return;
    }
    last_read_ = number;
    otherwise_ = 0;
    if (!plan_.tag.empty() && found_.tag.empty())
      return rows.skip(number, "no name of the kind that says whose the figures of the other lines are");
    // Figures of one GPU make one reading; each GPU of the line has its own.
    std::vector<int> gpus;
    for (const MemoryFigure& f : found_.figures)
      if (plan_.takes(f) && std::find(gpus.begin(), gpus.end(), f.gpu) == gpus.end()) gpus.push_back(f.gpu);
    for (const int gpu : gpus) {
      TextFigures out;
      out.line = number;
      name(out, gpu);
      for (const MemoryFigure& f : found_.figures) {
        if (f.gpu != gpu || !plan_.takes(f)) continue;
        if (f.percent) {
          out.percent = plan_.free_percents ? 100 - f.number : f.number;
          continue;
        }
        std::optional<std::uint64_t>& into = figure_of(out, f.role);
        if (into) {
          ++doubled_;  // the first one is read, as the warning about the others says
          if (doubled_ == 1) first_doubled_ = number;
          continue;
        }
        into = plan_.bytes(f);
      }
      take(std::move(out), rows);
    }
  }

  /// The line gives memory in use, in other words than the head.
  [[nodiscard]] bool is_used_otherwise() const {
    return std::any_of(found_.figures.begin(), found_.figures.end(),
                       [](const MemoryFigure& f) { return f.role == Meaning::used && !f.percent; });
  }

  /// As a plain number: "1,200" is written differently.
  std::string count_of_line() {
    if (plan_.count_in_epochs) epoch_ = count_of(found_, Meaning::epoch).value_or(epoch_);
    const auto count = count_of(found_, *plan_.counted);
    return count ? std::to_string(counter_.next(*count, epoch_)) : std::string();
  }

  void read_clock(LogRows& rows) {
    if (plan_.counted)
      read_time(count_of_line(), rows);
    else if (plan_.elapsed)
      read_time(stamp_of(found_.elapsed), rows);
    else if (!plan_.no_stamps)
      read_time(found_.stamp.empty() && plan_.minutes ? found_.minute : found_.stamp, rows);
  }

  void name(TextFigures& out, int gpu) const {
    if (plan_.pid_is_process) out.pid = found_.pid;
    out.is_named = true;
    if (const std::string_view origin = plan_.origin(found_); !origin.empty()) {
      const auto index = logtext::whole_number<int>(origin);
      if (index) {
        out.gpu.index = *index;
      } else {
        out.gpu.text = origin;
        if (gpu >= 0) out.gpu.text += '/' + std::to_string(gpu);
      }
    } else if (gpu >= 0) {
      out.gpu.index = gpu;
    } else if (plan_.heads_name_gpu && head_gpu_ >= 0) {
      out.gpu.index = head_gpu_;
    } else {
      out.is_named = false;
    }
  }

  WordPlan plan_;
  std::string pattern_;
  TableRows table_;
  LineFigures found_;
  int head_gpu_ = -1;
  EpochCounter counter_;
  std::uint64_t epoch_ = 0;  ///< as last given
  std::uint64_t skipped_ = 0;
  /// Lines after the last reading that give memory in use in other words: from this many on, the form has changed.
  static constexpr std::uint64_t kGoesOnOtherwise = 20;
  static constexpr std::size_t kQuoted = 60;
  std::uint64_t last_read_ = 0, otherwise_ = 0, first_otherwise_ = 0;
  std::string first_otherwise_text_;
  std::uint64_t doubled_ = 0, first_doubled_ = 0;  ///< figures of one kind next to another in their line
};

}  // namespace

Result<std::unique_ptr<LogParser>> make_word_lines(const LogHead& head) {
  Head all = survey(head.text, false);
  // A line of code or a heading that names a unit matters less than many lines that do not.
  constexpr std::size_t kManyMore = 10;
  constexpr std::size_t kFew = 100;
  bool unclear = all.lines.empty();
  if (all.lines.size() <= kFew)
    if (Head other = survey(head.text, true); unclear || other.lines.size() > kManyMore * all.lines.size()) {
      unclear = true;
      all = std::move(other);
    }
  if (all.lines.empty())
    return fail(fmt::format(
        "no line has a figure of GPU memory: a number with a unit (MiB, GB, %) or beside words such as 'memory used', "
        "'allocated', 'VRAM' (also in Chinese, Japanese, Korean and German); the first line is '{}'; {}",
        excerpt(all.first, 100), pattern_hint()));
  std::vector<std::string> assumptions;
  auto planned = plan_text(head, all, unclear, assumptions);
  if (!planned) return fail(std::move(planned.error()));
  WordPlan& plan = planned->plan;
  plan.read_as = read_as(all, plan);
  const std::string pattern = planned->share_epochs ? std::string() : equal_pattern(head.text, all, plan);
  const bool unknown = plan.unit_unknown;
  const std::uint64_t unit = plan.open_unit_bytes != 0 ? plan.open_unit_bytes : plan.unit_bytes;
  const bool in_blocks = plan.in_blocks;
  const std::uint64_t most_free = plan.free_only ? most_free_bytes(all, plan) : 0;
  auto parser = std::make_unique<WordLines>(std::move(plan), std::move(planned->stamp), std::move(assumptions));
  parser->expect_unnamed_gpus(planned->unnamed_gpus);
  parser->set_percent_bytes(head.options->capacity_bytes ? static_cast<double>(*head.options->capacity_bytes) / 100
                                                         : static_cast<double>(kBytesPerGiB));
  if (head.options->capacity_bytes) parser->set_capacity(*head.options->capacity_bytes);
  if (most_free > 0) parser->set_capacity(most_free);
  if (in_blocks) parser->expect_blocks();
  if (unknown) parser->set_unit_unknown(unit);
  if (!pattern.empty())
    parser->set_pattern(fmt::format("; to correct it: {} '{}'", name_of(Option::line_pattern), pattern));
  else
    parser->set_pattern(
        fmt::format("; no single {0} reads all of this; to read something else, describe a line with {0}",
                    name_of(Option::line_pattern)));
  return parser;
}

namespace {

Result<std::unique_ptr<LogParser>> make(const LogHead& head) {
  return head.options->line_pattern.empty() ? make_word_lines(head) : make_pattern_lines(head);
}

/// Whether a third of the first lines are figures with words: the rows of a table have none, even if some other line
/// looks like the header of a table.
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

/// Requires a few lines that have figures with words: a single one may be a coincidence and is only a weak match, so
/// that the user is shown what the text lacks. Ranks above tables without titles, whose columns are guessed, and below
/// those with titles, unless most lines have such figures. The bars of a Markdown table make it look like others.
int recognise_above(std::string_view head, int to_beat) {
  constexpr int kMostly = 54;
  constexpr int kSome = 32;
  if (to_beat >= kMostly) return 0;
  if (is_table_of_figures(head) || are_mostly_figures(head)) return kMostly;
  if (to_beat >= kSome) return 0;  // the following reads the whole head if no line has a figure
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
