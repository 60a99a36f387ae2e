#include "source/log/recognise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "source/log/csv_rows.hpp"
#include "source/log/format_choice.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

/// Recognises logs that repeat only this message; `head` has at least one non-blank line.
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

/// A head, its format, and how its lines are changed before they are read.
struct Found {
  std::unique_ptr<Trials> trials;
  const LogFormatInfo* format = nullptr;
  std::optional<LinePrefix> prefix{};
};

/// Screens are not searched for beyond this; reading this far takes a second or two.
constexpr std::uint64_t kFurthestBytes = 64 * kBytesPerMiB;

/// A job may write a lot before a tool prints its first screen: recognises the first later part of the file that
/// contains a screen, and keeps it as the head.
std::optional<Found> find_later(PlannedFile& planned) {
  auto lines = LineInput::open(planned.opened_as());
  if (!lines) return std::nullopt;
  Catalog catalog;
  DeviceRoster roster;
  LogRows unread(catalog, roster, planned.shown, planned.options.capacity_bytes);
  for (std::uint64_t seen = 0; seen < kFurthestBytes;) {
    const auto stretch = (*lines)->next(unread);
    if (!stretch || stretch->text.empty()) break;
    seen += stretch->text.size();
    const LogFormatInfo* const format = screen_in(stretch->text);
    if (format == nullptr) continue;
    planned.later_head = stretch->text;
    const LogHead head{planned.later_head, planned.shown, &planned.options, &planned.zone};
    Found found{std::make_unique<Trials>(head, planned.head_reads), format};
    if (!found.trials->of(*format).parser) return std::nullopt;
    return found;
  }
  return std::nullopt;
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

/// A screen may follow a prefix that a logger put before each of its lines; screens are recognised by how their lines
/// begin. A screen without the prefix, between lines with it, is left to choose_format().
std::optional<Found> find_screen_behind_prefix(Trials& as_is) {
  const std::string_view text = as_is.head().text;
  auto prefix = LinePrefix::find(text);
  if (!prefix) return std::nullopt;
  auto trials = std::make_unique<Trials>(as_is, prefix->strip_lines(text));
  const LogFormatInfo* const screen = screen_in(trials->head().text);  // it tries five formats instead of all
  if (screen == nullptr) return std::nullopt;
  // A screen without its own time gets the time in the prefix.
  const auto& untimed = trials->of(*screen).parser;
  if (prefix->has_time() && untimed && untimed->clock_is_relative()) {
    prefix->keep_times();
    trials = std::make_unique<Trials>(as_is, prefix->strip_lines(text));
  }
  const auto chosen = choose_format(*trials);
  if (!chosen || !(*chosen)->is_screen) return std::nullopt;
  const LogFormatInfo& format = **chosen;
  const std::size_t readings = trials->readings_of(format);
  const bool is_also_as_is = format.recognise(text) != Evidence::none && as_is.readings_of(format) >= readings;
  if (readings == 0 || is_also_as_is) return std::nullopt;
  // If it still has no time, it is read as lines with the time in the prefix.
  if (prefix->has_time() && trials->of(format).parser->clock_is_relative())
    if (const Trial* const lines = as_prose(as_is, format); lines != nullptr && !lines->parser->clock_is_relative())
      return std::nullopt;
  return Found{std::move(trials), &format, std::move(prefix)};
}

/// kubectl logs --timestamps and docker logs -t put a time before each line of a table. Titles with a time or a count
/// of their own have the clock; before rows that a tool prints without titles ("10:00:00 4000 MiB, 24576 MiB"), the
/// time becomes their first column. `is_read`: the log is recognised without changes.
std::optional<Found> find_table_behind_time(const Trials& as_is, bool is_read) {
  const std::string_view text = as_is.head().text;
  auto prefix = LinePrefix::find_time(text);
  if (!prefix) return std::nullopt;
  std::string stripped = prefix->strip_lines(text);
  if (const auto header = find_header(stripped)) {
    if (is_read || header->time < 0) return std::nullopt;
  } else {
    std::string_view first = stripped;
    first = logtext::take_line(first);
    if (first.empty() || !logtext::is_digit(first.front()) || find_delimiter(first) == '\0') return std::nullopt;
    prefix->make_column();
    stripped = prefix->strip_lines(text);
    std::vector<std::string> ignored;
    const auto plan = infer_from_head(stripped, ignored);
    if (!plan || plan->time != 0) return std::nullopt;
  }
  auto trials = std::make_unique<Trials>(as_is, std::move(stripped));
  const auto format = choose_format(*trials);
  if (!format || trials->readings_of(**format) == 0) return std::nullopt;
  return Found{std::move(trials), *format, std::move(prefix)};
}

/// The format of a file that begins with `text`: of its lines as they are, or after a prefix, or only further on.
Result<Found> find_format(std::string_view text, PlannedFile& planned) {
  const LogHead head{text, planned.shown, &planned.options, &planned.zone};
  auto as_is = std::make_unique<Trials>(head, planned.head_reads);
  const bool is_open = is_format_open(planned.options);
  if (is_open)
    if (auto screen = find_screen_behind_prefix(*as_is)) return std::move(*screen);
  auto format = choose_format(*as_is);
  if (is_open)
    if (auto table = find_table_behind_time(*as_is, format.has_value())) return std::move(*table);
  if (format) return Found{std::move(as_is), *format};
  if (is_open && is_readable_again(planned.path))
    if (auto later = find_later(planned)) return std::move(*later);
  return fail(fmt::format("{}: {}", planned.shown, format.error().message));
}

/// The trial that read the head. If the format reads nothing from it, the lines may be text, with figures that are read
/// by the words beside them.
Trial& read_head(const Found& found, const LogOptions& options) {
  Trial& trial = found.trials->of(*found.format);
  // A dump is known to be complete only at its end. Screens have been compared with the surrounding text by now.
  const bool is_silent = dynamic_cast<const RowsWithoutFigures*>(trial.parser.get()) != nullptr;
  const bool has_reading =
      is_silent || (found.format->is_screen ? !trial.rows().samples.empty() : trial.has_complete_reading());
  if (has_reading || !is_format_open(options) || !found.format->may_be_text) return trial;
  Trial* const prose = as_prose(*found.trials, *found.format);
  return prose != nullptr && prose->has_complete_reading() ? *prose : trial;
}

/// What the head shows about the whole log. Error: it cannot be read.
Result<DetectedLog> detected_log(Trial& trial, const std::string& shown) {
  const LogParser& parser = *trial.parser;
  DetectedLog detected;
  detected.format = &trial.format;
  if (const auto* const silent = dynamic_cast<const RowsWithoutFigures*>(&parser)) {
    detected.not_reported = fmt::format("{}: as a {} log: {}", shown, detected.format->name, silent->why());
    return detected;
  }
  const LogRows& rows = trial.rows(true);
  detected.processes_only = parser.processes_only();
  detected.relative = parser.clock_is_relative();
  detected.scale = parser.scale();
  if (rows.counts_percent()) detected.scale.count_percent();
  detected.has_long_lines = parser.has_long_lines();
  if (const auto wrong = parser.misfit())
    return fail(fmt::format("{}: as a {} log: {}", shown, detected.format->name, *wrong));
  if (!detected.scale.counts_steps())
    if (const std::string merged = rows.merged(LogRows::MergedOf::gpus); !merged.empty())
      return fail(fmt::format("{}: as a {} log: {}", shown, detected.format->name, merged));
  for (std::size_t i = 0; i < trial.devices.size(); ++i) detected.devices.push_back(trial.devices.device(i));
  if (!rows.series_follow_one_another()) detected.disorder = rows.disorder();
  return detected;
}

/// Finds the order in which the log must be read. A stream in order is kept, since it cannot be opened again.
Status find_order(PlannedFile& planned, std::unique_ptr<LineInput> lines, std::string_view head, bool clock_wraps) {
  if (!is_readable_again(planned.path)) {
    const OrderSurvey survey = survey_head(planned, head);
    if (!survey.steps_back() && !survey.in_blocks()) {
      planned.times.period = survey.period();
      if (clock_wraps && survey.samples() > 0)
        planned.times.begins_at = begin_of_day_times(survey, LogOrder::as_written);
      if (planned.detected.has_long_lines) lines->allow_long_lines();
      planned.input = std::move(lines);
      return {};
    }
    if (auto ok = copy(planned, *lines); !ok) return fail(fmt::format("{}: {}", planned.shown, ok.error().message));
  }
  auto times = survey_log(planned);
  if (!times) return fail(std::move(times.error()));
  planned.times = std::move(*times);
  planned.detected.devices = planned.times.devices;
  return {};
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
  const std::string_view text = (*lines)->head();
  planned->is_empty = std::all_of(text.begin(), text.end(), [](char c) { return logtext::is_space(c) || c == '\n'; });
  if (planned->is_empty || (options.format.empty() && no_processes_log_format.recognise(text) != Evidence::none)) {
    planned->detected.format = &no_processes_log_format;
    planned->detected.processes_only = true;
    if (!is_readable_again(path)) planned->input = std::move(*lines);
    return planned;
  }
  if (looks_binary(text))
    return fail(fmt::format("{}: holds binary data, not a text log; see docs/formats/logs.md for what can be read",
                            planned->shown));
  auto found = find_format(text, *planned);
  if (!found) return fail(std::move(found.error()));
  planned->prefix = std::move(found->prefix);
  if (planned->prefix)
    if (auto ok = (*lines)->take_off(*planned->prefix); !ok) return fail(std::move(ok.error()));
  Trial& trial = read_head(*found, options);
  auto detected = detected_log(trial, planned->shown);
  if (!detected) return fail(std::move(detected.error()));
  planned->detected = std::move(*detected);
  if (!planned->detected.not_reported.empty()) return planned;
  if (Status ok = find_order(*planned, std::move(*lines), found->trials->head().text, trial.parser->clock_wraps()); !ok)
    return fail(std::move(ok.error()));
  return planned;
}

Result<std::unique_ptr<LineInput>> open_lines(const PlannedFile& planned) {
  auto lines = LineInput::open(planned.opened_as());
  if (lines && planned.prefix && !planned.spool)
    if (auto ok = (*lines)->take_off(*planned.prefix); !ok) return fail(std::move(ok.error()));
  if (lines && planned.detected.has_long_lines) (*lines)->allow_long_lines();
  return lines;
}

Result<LogText> open_text(PlannedFile& planned, LogRows& rows) {
  LogText text;
  if (planned.is_stream()) {
    text.lines = std::move(planned.input);
    rows.watch_order(StretchSurvey(planned.times.period, !planned.detected.relative));
  } else {
    auto opened = open_lines(planned);
    if (!opened) return fail(std::move(opened.error()));
    text.lines = std::move(*opened);
  }
  auto parser =
      planned.detected.format->make({planned.head(*text.lines), planned.shown, &planned.options, &planned.zone});
  if (!parser) return fail(fmt::format("{}: {}", planned.shown, parser.error().message));
  text.parser = std::move(*parser);
  rows.express_by(planned.detected.scale);
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
