#include "cli/recorded.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>

#include "cli/moment.hpp"
#include "core/command.hpp"
#include "core/printable.hpp"
#include "explain/pasted.hpp"
#include "live/clock.hpp"
#include "source/log/format.hpp"
#include "store/store.hpp"
#include "trace/format.hpp"

namespace vramtrack::cli {

namespace {

/// docs/formats/logs.md says the same; a test compares them.
constexpr const char* kHowChosen =
    "Without it, the format is recognised from the first 256 KiB of the log, not by the name of the file. The most "
    "certain match wins: first the output of a known tool, by its own markers; then text in which a third of the lines "
    "have memory figures among words; then tables with column titles; then text with fewer such figures; then tables "
    "without titles. A log that does not fit the format is tried as text before it is refused. A log is read as text "
    "if --line-pattern is given.";

const std::vector<std::string> kUnits = {"B", "KiB", "MiB", "GiB", "MB", "GB", "megabytes", "gigabytes"};

}  // namespace

void add_log_arguments_without_interval(Arguments& arguments, LogArguments& into) {
  const std::size_t first = arguments.all().size();
  const std::vector<std::string> formats = names_of(log_formats());
  arguments
      .option("--input-format", "NAME", "Read the logs as this format instead of recognising it: " + joined(formats),
              text(into.format))
      .completes(formats)
      .in_manual(kHowChosen);
  arguments
      .option("--timezone", "ZONE", "Time zone of local times in the logs (default: this machine's)",
              text(into.timezone))
      .in_manual("For example Europe/Berlin.");
  arguments
      .option("--capacity", "SIZE", "Capacity of devices whose log gives none, for example 24GiB",
              capacity(into.capacity_bytes))
      .in_manual("Without a capacity, the time to out-of-memory cannot be predicted.");
  arguments.option("--start", "TIME", "When the recording began, for logs without times or dates", text(into.start));
  arguments
      .option("--unit", "UNIT", "Unit of used-memory figures that have none: " + joined(kUnits),
              one_of(kUnits, into.unit))
      .completes(kUnits)
      .in_manual("MB is 2^20 bytes, as in logs; megabytes are 10^6 bytes.");
  arguments
      .option("--line-pattern", "REGEX",
              "Read other text line by line with this regular expression; it needs the group (?<used>...), and others "
              "are optional",
              text(into.line_pattern))
      .in_manual(
          "A regular expression in RE2 syntax, with named groups: time, step, used, total, free, allocated, "
          "reserved, "
          "gpu, "
          "uuid, pid, name and user. "
          "Lines that do not match are skipped. For example '(?<used>[0-9]+) / (?<total>[0-9]+) MiB'.");
  arguments.put_in_group(Group::logs, first);
}

void add_log_arguments(Arguments& arguments, LogArguments& into) {
  add_log_arguments_without_interval(arguments, into);
  const std::size_t first = arguments.all().size();
  arguments.option("--interval", "DURATION", "Time between two readings, for logs without a clock",
                   duration(into.interval_s));
  arguments.put_in_group(Group::logs, first);
}

Result<LogOptions> log_options(const LogArguments& o) {
  LogOptions logs;
  logs.format = o.format;
  logs.timezone = o.timezone;
  logs.capacity_bytes = o.capacity_bytes;
  logs.interval_s = o.interval_s;
  logs.unit = o.unit;
  logs.line_pattern = o.line_pattern;
  if (!o.line_pattern.empty() && !o.format.empty() && o.format != "text")
    return fail("--line-pattern reads text: leave out --input-format, or pass --input-format text");
  if (!o.start.empty()) {
    const Timestamp now = time_of_day();
    const auto start = parse_moment("--start", o.start, o.timezone, now);
    if (!start) return fail(start.error());
    logs.start = *start;
  }
  return logs;
}

namespace {

/// Whether it is an HTML page, such as one written by `vramtrack report`, which has tables but is not a log.
bool is_html(const std::string& path) {
  std::error_code ec;
  if (!std::filesystem::is_regular_file(path, ec)) return false;  // a pipe would lose what is read here
  constexpr std::string_view kBegin = "<!doctype html";
  std::string begin(kBegin.size(), '\0');
  std::ifstream(path).read(begin.data(), static_cast<std::streamsize>(begin.size()));
  std::transform(begin.begin(), begin.end(), begin.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return begin == kBegin || begin.starts_with("<html");
}

}  // namespace

namespace {

/// Refuses a table of a single moment, which people paste but which is not a log.
Status refuse_pasted(const std::string& path) {
  std::error_code ec;
  if (!std::filesystem::is_regular_file(path, ec)) return {};
  std::string head(explain::kPastedBytes, '\0');
  std::ifstream file(path);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  const explain::Pasted found = explain::pasted(head);
  if (found.what.empty() || found.is_for_logs) return {};
  return fail(fmt::format("{} {}, and no log{}{}", path, printable(found.what), found.next_step.empty() ? "" : "; ",
                          found.next_step));
}

}  // namespace

Status refuse_trace(const std::string& path) {
  if (is_html(path)) return fail(path + " is an HTML page, not a log; name the log or the store that it was made from");
  const trace::TraceFormatInfo* const format = trace::recognise_trace_file(path, trace::kSure);
  if (format == nullptr) return refuse_pasted(path);
  return fail(fmt::format("{}: is an allocation trace ({}: {}); {} reads it", path, format->name, format->help,
                          command_hint("vramtrack snapshot summary")));
}

Result<std::vector<std::string>> files_or_store(const std::vector<std::string>& files, const StoreConfig& store) {
  if (!files.empty()) return files;
  const std::string path = store_path(store);
  if (std::error_code ignored; std::filesystem::status(path, ignored).type() == std::filesystem::file_type::not_found)
    return fail(path +
                ": nothing has been recorded yet; 'vramtrack watch' records this machine's GPUs, and without a GPU, "
                "'vramtrack simulate --csv gpu.csv' writes a log to name instead");
  return std::vector{path};
}

Result<const RecordedInfo*> recorded_kind(const std::vector<std::string>& files) {
  for (const std::string& file : files)
    if (const Status other = refuse_trace(file); !other) return fail(other.error());
  return files.empty() ? find_recorded("store") : &recorded_at(files.front());
}

}  // namespace vramtrack::cli
