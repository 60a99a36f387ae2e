#include "source/log/format_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "core/option.hpp"
#include "source/log/csv_rows.hpp"
#include "source/log/recognise.hpp"
#include "source/log/recording.hpp"
#include "source/log/text.hpp"
#include "source/log/text_plan.hpp"

namespace vramtrack {

Trial::Trial(const LogFormatInfo& its_format, const LogHead& head, std::size_t& reads)
    : format(its_format),
      text_(head.text),
      reads_(reads),
      rows_(catalog_, devices, head.file, head.options->capacity_bytes) {
  rows_.leave_out_notes();
  auto made = format.make(head);
  if (made)
    parser = std::move(*made);
  else
    why = fmt::format("as a {} log: {}", format.name, made.error().message);
}

bool Trial::has_complete_reading() {
  if (std::exchange(is_read_, true)) return has_complete_reading_;
  ++reads_;
  parser->parse(text_, 1, true, rows_);
  return has_complete_reading_ = !rows_.samples.empty();
}

const LogRows& Trial::rows(bool or_without) {
  const bool is_enough = has_complete_reading() && or_without;
  if (!is_enough && !std::exchange(is_finished_, true)) parser->finish(rows_);
  return rows_;
}

std::size_t Trial::readings() {
  std::set<Timestamp> times;
  for (const Sample& sample : rows().samples) times.insert(sample.time);
  return times.size();
}

namespace {

std::string format_names() {
  std::string names;
  for (const LogFormatInfo* format : log_formats()) names += (names.empty() ? "" : ", ") + std::string(format->name);
  return names;
}

/// The format names, each with the command that records it.
std::string formats_in_words() {
  std::string out;
  for (const LogFormatInfo* format : log_formats())
    out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", format->name, format->help);
  return out;
}

/// The format for text of any kind.
const LogFormatInfo& prose_format() {
  const auto formats = log_formats();
  return **std::find_if(formats.begin(), formats.end(), [](const LogFormatInfo* format) { return format->is_prose; });
}

/// A format that a head may have.
struct Candidate {
  const LogFormatInfo* format = nullptr;
  Evidence evidence = Evidence::none;
};

/// The candidates, those with the strongest evidence first.
std::vector<Candidate> find_candidates(std::string_view head) {
  std::vector<Candidate> out;
  Evidence best = Evidence::none;
  for (const LogFormatInfo* format : log_formats()) {
    const Evidence evidence = format->recognise_from != nullptr
                                  ? format->recognise_from(head, std::max(best, Evidence::syntax))
                                  : format->recognise(head);
    if (evidence == Evidence::none) continue;
    out.push_back({format, evidence});
    best = std::max(best, evidence);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Candidate& a, const Candidate& b) { return a.evidence > b.evidence; });
  return out;
}

/// Moves the candidate that reads most of the head to the front of those with the same evidence.
void put_first_what_reads_most(std::vector<Candidate>& candidates, Trials& trials) {
  const auto equal = std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& other) {
    return other.evidence != candidates.front().evidence;
  });
  if (equal - candidates.begin() < 2) return;
  auto most = candidates.begin();
  std::size_t readings = 0;
  for (auto it = candidates.begin(); it != equal; ++it)
    if (const std::size_t its = trials.readings_of(*it->format); its > readings) {
      readings = its;
      most = it;
    }
  std::rotate(candidates.begin(), most, most + 1);
}

/// The strongest other candidate that is a table or a document; nullptr if there is none. If there are screens, a table
/// of columns without titles does not count.
const LogFormatInfo* other_rows(std::span<const Candidate> candidates) {
  const Evidence least = candidates.front().format->is_screen ? Evidence::titles : Evidence::values;
  for (const Candidate& other : candidates.subspan(1))
    if (other.evidence >= least && !other.format->is_screen && !other.format->is_prose) return other.format;
  return nullptr;
}

/// A log may have several formats: a few screens before the output of another program, or rows among text. The one with
/// more readings is used: a tool's, which show everything on the GPU, if they suffice for a verdict, and a table's if
/// there are many more of them. `rows`: see other_rows().
const LogFormatInfo* with_more_readings(Trials& trials, const LogFormatInfo* found, const LogFormatInfo* rows) {
  constexpr std::size_t kEnough = 20;
  constexpr std::size_t kManyMore = 10;
  const bool are_screens = found->is_screen;
  if (!are_screens && !found->is_prose) return found;
  Trial& first = trials.of(*found);
  if (are_screens && first.readings() >= kEnough) return found;
  const std::size_t of_rows = rows == nullptr ? 0 : trials.readings_of(*rows);
  if (of_rows == 0 && !are_screens) return found;
  std::size_t most = first.readings();
  const LogFormatInfo* best = found;
  Trial* const text = are_screens ? as_prose(trials, *found) : nullptr;
  // Text with as many figures repeats those of the screens, with GPUs that the words of a line cannot distinguish.
  if (text != nullptr && text->readings() > most && text->rows().samples.size() > first.rows().samples.size()) {
    best = &text->format;
    most = text->readings();
  }
  return of_rows > kManyMore * most ? rows : best;
}

/// Why a head without a recognised format is refused.
Error not_recognised(const LogHead& head) {
  if (std::string why = why_no_text(head.text); !why.empty()) return Error{std::move(why)};
  std::string_view rest = head.text;
  std::string_view line;
  while (!rest.empty() && logtext::trim(line).empty()) line = logtext::take_line(rest);
  return Error{fmt::format(
      "the log format of '{}' is not recognised ({}); docs/formats/logs.md shows how to record each "
      "format, {} names one, and {} reads lines of any text",
      logtext::excerpt(line), format_names(), name_of(Option::input_format), name_of(Option::line_pattern))};
}

/// Text in place of the format that `chosen` recognised but cannot read, because of `why`; or why the head is refused.
Result<const LogFormatInfo*> instead_of(const Candidate& chosen, Trials& trials, std::string why) {
  const LogFormatInfo& format = *chosen.format;
  const std::string_view text = trials.head().text;
  if (format.may_be_text) {
    if (const Trial* const prose = as_prose(trials, format)) return &prose->format;
    // For a table, an error about its titles or rows is more helpful than one from the text reader. If most lines are
    // text or none is a row, the text reader's error is more helpful.
    const bool has_rows = find_header(text) || has_column_of_amounts(text);
    if (!has_titles(text) && !format.is_prose) {
      const Evidence least = has_rows ? Evidence::prose : Evidence::syntax;
      if (prose_format().recognise_from(text, least) >= least) return fail(trials.of(prose_format()).why);
      // Without a header, any line with commas or numbers may look like a row.
      if (!has_rows && format.begins_record == each_line_is_a_record)
        if (std::string reason = why_no_text(text); !reason.empty()) return fail(std::move(reason));
    }
  }
  if (chosen.evidence < Evidence::titles && !format.is_prose)
    why += fmt::format("; {} names another format, and {} describes lines of other text", name_of(Option::input_format),
                       name_of(Option::line_pattern));
  return fail(std::move(why));
}

Result<const LogFormatInfo*> named_format(Trials& trials) {
  const LogOptions& options = *trials.head().options;
  // A line pattern always describes text.
  const LogFormatInfo* const format = options.line_pattern.empty() ? find_log_format(options.format) : &prose_format();
  if (format == nullptr)
    return fail(fmt::format("log format '{}' is not known; the formats, with what records each, are {}", options.format,
                            formats_in_words()));
  if (const Trial& trial = trials.of(*format); !trial.parser) return fail(trial.why);
  return format;
}

}  // namespace

bool is_format_open(const LogOptions& options) {
  return options.format.empty() && options.line_pattern.empty();
}

const LogFormatInfo* screen_in(std::string_view head) {
  for (const LogFormatInfo* const format : log_formats())
    if (format->is_screen && format->recognise(head) != Evidence::none) return format;
  return nullptr;
}

Trial* as_prose(Trials& trials, const LogFormatInfo& tried) {
  const LogFormatInfo& prose = prose_format();
  if (tried.is_prose || prose.recognise(trials.head().text) == Evidence::none) return nullptr;
  Trial& trial = trials.of(prose);
  return trial.parser ? &trial : nullptr;
}

Result<const LogFormatInfo*> choose_format(Trials& trials) {
  const LogHead& head = trials.head();
  if (!is_format_open(*head.options)) return named_format(trials);
  std::vector<Candidate> candidates = find_candidates(head.text);
  if (candidates.empty()) return fail(not_recognised(head));
  put_first_what_reads_most(candidates, trials);
  const LogFormatInfo* const rows = other_rows(candidates);
  const Trial* chosen = &trials.of(*candidates.front().format);
  // Words in the cells of a table may look like prose.
  if (!chosen->parser && chosen->format.is_prose && rows != nullptr && has_titles(head.text))
    chosen = &trials.of(*rows);
  if (!chosen->parser) return instead_of(candidates.front(), trials, chosen->why);
  return with_more_readings(trials, &chosen->format, rows);
}

Result<const LogFormatInfo*> choose_format(const LogHead& head) {
  std::size_t reads = 0;
  Trials trials(head, reads);
  return choose_format(trials);
}

}  // namespace vramtrack
