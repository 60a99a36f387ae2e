#include "source/log/recognise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/option.hpp"
#include "source/log/csv_rows.hpp"
#include "source/log/text.hpp"
#include "source/log/text_plan.hpp"

namespace vramtrack {
namespace {

/// Recognises logs whose every line is this message; `head` has at least one non-blank line.
Evidence recognise_no_processes(std::string_view head) {
  bool has_message = false;
  while (!head.empty()) {
    const std::string_view line = logtext::trim(logtext::take_line(head));
    if (line.empty()) continue;
    if (line.find("No running") == std::string_view::npos || line.find("processes found") == std::string_view::npos)
      return Evidence::none;
    has_message = true;
  }
  return has_message ? Evidence::own_mark : Evidence::none;
}

Result<std::unique_ptr<LogParser>> make_no_processes(const LogHead& /*head*/) {
  return std::make_unique<RowsWithoutFigures>("no process was visible", true);
}

/// Users cannot choose this format.
const LogFormatInfo no_processes_log_format{"no-processes",
                                            "nvidia-smi --query-compute-apps=... where no process is visible",
                                            recognise_no_processes, make_no_processes, each_line_is_a_record};

bool looks_binary(std::string_view head) {
  const std::string_view start = head.substr(0, 8192);
  // No text begins in the middle of a character; a Python pickle begins with 0x80.
  if (!start.empty() && (static_cast<unsigned char>(start.front()) & 0xc0U) == 0x80) return true;
  const auto controls = std::count_if(start.begin(), start.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && std::string_view("\n\r\t\f\x1b").find(c) == std::string_view::npos;
  });
  return static_cast<std::size_t>(controls) * 25 > start.size();
}

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

/// `head` as a log of `format`, with a parser that has read nothing yet.
Result<RecognisedText> as_format(const LogFormatInfo& format, const LogHead& head) {
  auto parser = format.make(head);
  if (!parser) return fail(std::move(parser.error()));
  return RecognisedText{&format, std::move(*parser)};
}

/// If no tool's own format fits, falls back to the general text reader, if it can read the log.
Result<RecognisedText> recognise_prose(const LogHead& head, const LogFormatInfo& tried) {
  if (&tried == &text_log_format || text_log_format.recognise(head.text) == Evidence::none) return fail("no text");
  return as_format(text_log_format, head);
}

/// The first screen format that recognises `head`; nullptr: none.
const LogFormatInfo* screen_in(std::string_view head) {
  for (const LogFormatInfo* const format : screen_formats())
    if (format->recognise(head) != Evidence::none) return format;
  return nullptr;
}

bool is_screen(const LogFormatInfo& format) {
  const auto screens = screen_formats();
  return std::find(screens.begin(), screens.end(), &format) != screens.end();
}

/// The result of reading the head of a log.
struct FirstLook {
  explicit FirstLook(const std::string& shown) : rows(catalog, roster, shown, std::nullopt) {}
  void look(LogParser& parser, std::string_view head) { parser.parse(head, 1, true, rows); }

  Catalog catalog;
  DeviceRoster roster;
  LogRows rows;
};

/// What `head` contains as a log of a format.
struct Contents {
  std::size_t readings = 0;  ///< times
  std::size_t figures = 0;   ///< of all GPUs and processes
};

Contents contents_as(const LogFormatInfo& format, const LogHead& head) {
  const auto found = as_format(format, head);
  if (!found) return {};
  FirstLook first(head.file);
  first.look(*found->parser, head.text);
  found->parser->finish(first.rows);
  std::vector<Timestamp> times;
  for (const Sample& sample : first.rows.samples) times.push_back(sample.time);
  std::sort(times.begin(), times.end());
  return {static_cast<std::size_t>(std::unique(times.begin(), times.end()) - times.begin()), times.size()};
}

std::size_t count_readings(const LogFormatInfo& format, const LogHead& head) {
  return contents_as(format, head).readings;
}

/// What a head may be.
struct Candidate {
  const LogFormatInfo* format = nullptr;
  Evidence evidence = Evidence::none;
};

/// Those with the strongest evidence first, and of those with equal evidence the one that reads most of the head.
std::vector<Candidate> find_candidates(const LogHead& head) {
  std::vector<Candidate> out;
  Evidence best = Evidence::none;
  for (const LogFormatInfo* format : log_formats()) {
    const Evidence evidence = format->recognise_from != nullptr
                                  ? format->recognise_from(head.text, std::max(best, Evidence::syntax))
                                  : format->recognise(head.text);
    if (evidence == Evidence::none) continue;
    out.push_back({format, evidence});
    best = std::max(best, evidence);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Candidate& a, const Candidate& b) { return a.evidence > b.evidence; });
  const auto equal = std::find_if(out.begin(), out.end(), [best](const Candidate& c) { return c.evidence != best; });
  if (equal - out.begin() < 2) return out;
  auto most = out.begin();
  std::size_t readings = 0;
  for (auto it = out.begin(); it != equal; ++it)
    if (const std::size_t its = count_readings(*it->format, head); its > readings) {
      readings = its;
      most = it;
    }
  std::rotate(out.begin(), most, most + 1);
  return out;
}

/// The strongest of the other candidates that is a table or a document; nullptr: there is none. Screens are enough
/// without a table whose columns have no titles.
const LogFormatInfo* other_rows(std::span<const Candidate> candidates) {
  const Evidence least = is_screen(*candidates.front().format) ? Evidence::titles : Evidence::values;
  for (const Candidate& other : candidates.subspan(1))
    if (other.evidence >= least && !is_screen(*other.format) && other.format != &text_log_format) return other.format;
  return nullptr;
}

/// A log may be of several formats: a few screens before the output of another program, or rows among text. What has
/// more readings is read: a tool's, which show everything on the GPU, if they suffice for a verdict, and a table's if
/// they are many more. `rows`: see other_rows().
Result<RecognisedText> recognise_more(const LogHead& head, const LogFormatInfo& found, const LogFormatInfo* rows) {
  constexpr std::size_t kEnough = 20;
  constexpr std::size_t kManyMore = 10;
  if (!is_screen(found) && &found != &text_log_format) return fail("nothing else to read");
  const std::size_t of_rows = rows == nullptr ? 0 : count_readings(*rows, head);
  if (of_rows == 0 && !is_screen(found)) return fail("no rows");
  const LogFormatInfo* best = &found;
  const Contents of_found = contents_as(found, head);
  std::size_t most = of_found.readings;
  if (is_screen(found) && most >= kEnough) return fail("enough screens");
  if (is_screen(found) && text_log_format.recognise(head.text) != Evidence::none)
    // As many figures are those of the screens again, whose GPUs the words of a line cannot tell apart.
    if (const Contents text = contents_as(text_log_format, head);
        text.readings > most && text.figures > of_found.figures) {
      best = &text_log_format;
      most = text.readings;
    }
  if (of_rows > kManyMore * most) best = rows;
  if (best == &found) return fail("no more readings");
  return as_format(*best, head);
}

/// Why a head of which no format was found is refused.
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

/// `head` as text, or why it is refused: `chosen` was recognised, but cannot be read for the reason `why`.
Result<RecognisedText> recognise_other(const LogHead& head, const Candidate& chosen, std::string why) {
  if (chosen.format->may_be_text) {
    auto prose = recognise_prose(head, *chosen.format);
    if (prose) return prose;
    // For a table, an error about its titles or rows is more helpful than one from the text reader. If most lines are
    // text or none is a row, the text reader's error is more helpful.
    const bool has_rows = find_header(head.text) || has_column_of_amounts(head.text);
    if (!has_titles(head.text) && chosen.format != &text_log_format) {
      const Evidence least = has_rows ? Evidence::prose : Evidence::syntax;
      if (text_log_format.recognise_from(head.text, least) >= least)
        return fail(fmt::format("as a text log: {}", prose.error().message));
      // Without a header, any line with commas or numbers may look like a row.
      if (!has_rows && chosen.format->begins_record == each_line_is_a_record)
        if (std::string reason = why_no_text(head.text); !reason.empty()) return fail(std::move(reason));
    }
  }
  if (chosen.evidence < Evidence::titles && chosen.format != &text_log_format)
    why += fmt::format("; {} names another format, and {} describes lines of other text", name_of(Option::input_format),
                       name_of(Option::line_pattern));
  return fail(std::move(why));
}

/// Beyond this, no screen is searched for: reading this far takes a second or two.
constexpr std::uint64_t kFurthestBytes = 64 * kBytesPerMiB;

/// A job may write a lot before a tool prints its first screen: recognises the first later part of the file that
/// contains one, and keeps it as the head.
Result<RecognisedText> recognise_later(PlannedFile& planned) {
  auto lines = LineInput::open(planned.opened_as());
  if (!lines) return fail(std::move(lines.error()));
  FirstLook unread(planned.shown);
  for (std::uint64_t seen = 0; seen < kFurthestBytes;) {
    const auto stretch = (*lines)->next(unread.rows);
    if (!stretch || stretch->text.empty()) break;
    seen += stretch->text.size();
    const LogFormatInfo* const format = screen_in(stretch->text);
    if (format == nullptr) continue;
    planned.later_head = stretch->text;
    return as_format(*format, {planned.later_head, planned.shown, &planned.options, &planned.zone});
  }
  return fail("no screen further on");
}

/// A stream out of order is copied, because it has to be read more than once.
Status copy(PlannedFile& planned, LineInput& lines) {
  auto spool = Spool::make();
  if (!spool) return fail(std::move(spool.error()));
  if (auto ok = lines.copy_to(*spool); !ok) return ok;
  planned.spool.emplace(std::move(*spool));
  return {};
}

/// A file can be read any number of times; standard input and pipes only once.
bool is_readable_again(const std::string& path) {
  std::error_code ignored;
  return path != "-" && std::filesystem::is_regular_file(path, ignored);
}

}  // namespace

Result<RecognisedText> recognise_text(const LogHead& head) {
  const auto refused = [](const LogFormatInfo& format, const Error& why) {
    return fmt::format("as a {} log: {}", format.name, why.message);
  };
  // A line pattern applies only to the text format.
  const std::string_view named = head.options->line_pattern.empty() ? head.options->format : text_log_format.name;
  if (!named.empty()) {
    const LogFormatInfo* const format = find_log_format(named);
    if (format == nullptr)
      return fail(fmt::format("log format '{}' is not known; the formats, with what records each, are {}",
                              head.options->format, formats_in_words()));
    auto out = as_format(*format, head);
    if (!out) return fail(refused(*format, out.error()));
    return out;
  }
  const std::vector<Candidate> candidates = find_candidates(head);
  if (candidates.empty()) return fail(not_recognised(head));
  const LogFormatInfo& first = *candidates.front().format;
  const LogFormatInfo* const rows = other_rows(candidates);
  auto out = as_format(first, head);
  std::string why = out ? std::string() : refused(first, out.error());
  // Words in the cells of a table may look like prose.
  if (!out && &first == &text_log_format && rows != nullptr && has_titles(head.text)) {
    out = as_format(*rows, head);
    if (!out) why = refused(*rows, out.error());
  }
  if (!out) return recognise_other(head, candidates.front(), std::move(why));
  if (auto more = recognise_more(head, *out->format, rows)) return more;
  return out;
}

namespace {

/// A screen may follow a prefix that a logger put before each of its lines; screens are read by how their lines begin.
/// Sets `prefix` if so. A screen without the prefix between lines with it is left to recognise_text().
Result<RecognisedText> recognise_behind_prefix(const LogHead& head, std::optional<LinePrefix>& prefix) {
  auto found = LinePrefix::find(head.text);
  if (!found) return fail("no prefix");
  std::string text = found->strip_lines(head.text);
  LogHead stripped = head;
  stripped.text = text;
  if (screen_in(text) == nullptr) return fail("no screen behind a prefix");  // which tries five formats instead of all
  auto screens = recognise_text(stripped);
  if (!screens || !is_screen(*screens->format)) return fail("no screen behind a prefix");
  const std::size_t readings = count_readings(*screens->format, stripped);
  if (readings == 0) return fail("no reading behind a prefix");
  if (count_readings(*screens->format, head) >= readings) return fail("the lines are read as they are");
  auto unread = as_format(*screens->format, stripped);
  // A screen without its own time gets that of the prefix, if it is the only time, or is read as lines with it.
  if (unread && found->has_time() && unread->parser->clock_is_relative()) {
    found->keep_times();
    text = found->strip_lines(head.text);
    stripped.text = text;
    unread = as_format(*screens->format, stripped);
    if (unread && unread->parser->clock_is_relative())
      if (auto lines = recognise_prose(head, *screens->format); lines && !lines->parser->clock_is_relative())
        return fail("the prefix is the clock");
  }
  if (unread) prefix = std::move(found);
  return unread;
}

/// kubectl logs --timestamps and docker logs -t put a time before each line of a table. Below titles with a time or a
/// count of their own, that is the clock; before rows that a tool prints without titles ("10:00:00 4000 MiB, 24576
/// MiB") the time becomes their first column. `is_read`: the log is recognised as it is. Sets `prefix` if so.
Result<RecognisedText> recognise_table_behind_time(const LogHead& head, bool is_read,
                                                   std::optional<LinePrefix>& prefix) {
  auto found = LinePrefix::find_time(head.text);
  if (!found) return fail("no time before the lines");
  std::string text = found->strip_lines(head.text);
  if (const auto header = find_header(text)) {
    if (is_read || header->time < 0) return fail("no table behind the time");
  } else {
    std::string_view first = text;
    first = logtext::take_line(first);
    if (first.empty() || !logtext::is_digit(first.front()) || find_delimiter(first) == '\0') return fail("no rows");
    found->make_column();
    text = found->strip_lines(head.text);
    std::vector<std::string> ignored;
    const auto plan = infer_from_head(text, ignored);
    if (!plan || plan->time != 0) return fail("no time in the first column");
  }
  LogHead stripped = head;
  stripped.text = text;
  auto table = recognise_text(stripped);
  if (!table || count_readings(*table->format, stripped) == 0) return fail("no reading behind the time");
  prefix = std::move(found);
  return table;
}

}  // namespace

Result<std::unique_ptr<PlannedFile>> recognise_log(const std::string& path, const LogOptions& options,
                                                   const Zone& zone) {
  auto planned = std::make_unique<PlannedFile>();
  planned->path = path;
  planned->shown = path == "-" ? "standard input" : path;
  planned->options = options;
  planned->zone = zone;
  auto lines = LineInput::open(path);
  if (!lines) return fail(std::move(lines.error()));
  std::string_view text = (*lines)->head();
  planned->is_empty = std::all_of(text.begin(), text.end(), [](char c) { return logtext::is_space(c) || c == '\n'; });
  if (planned->is_empty || (options.format.empty() && no_processes_log_format.recognise(text) != Evidence::none)) {
    planned->probe.format = &no_processes_log_format;
    planned->probe.processes_only = true;
    if (!is_readable_again(path)) planned->input = std::move(*lines);
    return planned;
  }
  if (looks_binary(text))
    return fail(fmt::format("{}: holds binary data, not a text log; see docs/formats/logs.md for what can be read",
                            planned->shown));
  LogHead head{text, planned->shown, &planned->options, &planned->zone};
  auto found = recognise_text(head);
  if (options.format.empty() && options.line_pattern.empty()) {
    auto behind = recognise_behind_prefix(head, planned->prefix);
    if (!behind) behind = recognise_table_behind_time(head, found.has_value(), planned->prefix);
    if (behind) {
      found = std::move(*behind);
      if (auto ok = (*lines)->take_off(*planned->prefix); !ok) return fail(std::move(ok.error()));
      head.text = text = (*lines)->head();
    }
  }
  if (!found && options.format.empty() && options.line_pattern.empty() && is_readable_again(path))
    if (auto later = recognise_later(*planned)) {
      found = std::move(*later);
      text = planned->later_head;
    }
  if (!found) return fail(fmt::format("{}: {}", planned->shown, found.error().message));

  if (const auto* const silent = dynamic_cast<const RowsWithoutFigures*>(found->parser.get())) {
    planned->probe.format = found->format;
    planned->probe.not_reported =
        fmt::format("{}: as a {} log: {}", planned->shown, found->format->name, silent->why());
    return planned;
  }
  auto first = std::make_unique<FirstLook>(planned->shown);
  first->look(*found->parser, text);
  // Only at the end of a dump is it known to be complete. Screens have been compared with the surrounding text by now.
  if (first->rows.samples.empty() && is_screen(*found->format)) found->parser->finish(first->rows);
  if (first->rows.samples.empty() && options.format.empty() && options.line_pattern.empty() &&
      found->format->may_be_text)
    if (auto prose = recognise_prose(head, *found->format)) {
      auto again = std::make_unique<FirstLook>(planned->shown);
      again->look(*prose->parser, text);
      if (!again->rows.samples.empty()) {
        found = std::move(*prose);
        first = std::move(again);
      }
    }
  if (first->rows.samples.empty()) found->parser->finish(first->rows);
  Probe& probe = planned->probe;
  probe.format = found->format;
  probe.processes_only = found->parser->processes_only();
  probe.relative = found->parser->clock_is_relative();
  probe.scale = found->parser->scale();
  probe.has_long_lines = found->parser->has_long_lines();
  if (const auto wrong = found->parser->misfit())
    return fail(fmt::format("{}: as a {} log: {}", planned->shown, probe.format->name, *wrong));
  for (std::size_t i = 0; i < first->roster.size(); ++i) probe.devices.push_back(first->roster.device(i));
  if (!first->rows.series_follow_one_another()) probe.disorder = first->rows.disorder();
  if (!is_readable_again(path)) {
    const OrderSurvey survey = survey_head(*planned, text);
    if (!survey.steps_back() && !survey.in_blocks()) {
      planned->times.period = survey.period();
      if (found->parser->clock_wraps() && survey.samples() > 0)
        planned->times.begins_at = begin_of_day_times(survey, LogOrder::as_written);
      if (probe.has_long_lines) (*lines)->allow_long_lines();
      planned->input = std::move(*lines);
      return planned;
    }
    if (auto ok = copy(*planned, **lines); !ok) return fail(fmt::format("{}: {}", planned->shown, ok.error().message));
  }
  auto times = survey_log(*planned);
  if (!times) return fail(std::move(times.error()));
  planned->times = std::move(*times);
  probe.devices = planned->times.devices;
  return planned;
}

Result<std::unique_ptr<LineInput>> open_lines(const PlannedFile& planned) {
  auto lines = LineInput::open(planned.opened_as());
  if (lines && planned.prefix && !planned.spool)
    if (auto ok = (*lines)->take_off(*planned.prefix); !ok) return fail(std::move(ok.error()));
  if (lines && planned.probe.has_long_lines) (*lines)->allow_long_lines();
  return lines;
}

Result<LogText> open_text(PlannedFile& planned, LogRows& rows) {
  LogText text;
  if (planned.is_stream()) {
    text.lines = std::move(planned.input);
    rows.watch_order(StretchSurvey(planned.times.period, !planned.probe.relative));
  } else {
    auto opened = open_lines(planned);
    if (!opened) return fail(std::move(opened.error()));
    text.lines = std::move(*opened);
  }
  auto parser = planned.probe.format->make({planned.head(*text.lines), planned.shown, &planned.options, &planned.zone});
  if (!parser) return fail(fmt::format("{}: {}", planned.shown, parser.error().message));
  text.parser = std::move(*parser);
  rows.express_by(text.parser->scale());
  for (const std::string& assumption : text.parser->assumptions()) rows.warn(assumption);
  if (planned.prefix)
    rows.warn(fmt::format("each line is read behind its prefix, which is '{}' in the first one",
                          logtext::trim(planned.prefix->example())));
  const LogTimes& times = planned.times;
  if (times.order == LogOrder::as_written) return text;
  if (times.order == LogOrder::newest_first)
    rows.warn(
        fmt::format("{}:{}: the log lists its newest rows first: it is read from its end", planned.shown, times.line));
  else if (times.line > 0)
    rows.warn(
        fmt::format("{}:{}: time goes back to a period in which the log has no other rows: its rows are sorted by "
                    "time; if a clock was "
                    "set here, analyse the rows before and after it separately",
                    planned.shown, times.line));
  auto records = sort_log(planned, times, rows);
  if (!records) return fail(std::move(records.error()));
  text.records = std::move(*records);
  text.lines.reset();
  return text;
}

}  // namespace vramtrack
