#include "source/log/recognise.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "source/log/text.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kTailBytes = 64 * 1024;
constexpr std::string_view kPatternFormat = "text";

/// NUL bytes alone do not make a log binary: a crash leaves runs of them.
bool looks_binary(std::string_view head) {
  const std::string_view start = head.substr(0, 8192);
  // No text begins in the middle of a character; a Python pickle begins with 0x80.
  if (!start.empty() && (static_cast<unsigned char>(start.front()) & 0xc0U) == 0x80) return true;
  std::size_t nuls = 0;
  std::size_t controls = 0;
  for (const char c : start) {
    if (c == '\0')
      ++nuls;
    else if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f' && c != '\x1b')
      ++controls;
  }
  return controls * 25 > start.size() || nuls * 2 > start.size();
}

std::string format_names() {
  std::string names;
  for (const LogFormatInfo* format : log_formats()) names += (names.empty() ? "" : ", ") + std::string(format->name);
  return names;
}

/// Whether the end of a plain file has other device series than its head: it lists one series after another.
bool tail_has_other_series(const LogFormatInfo& format, const LogHead& head, LineInput& lines, const Catalog& seen,
                           std::size_t device_series) {
  TextInput& bytes = lines.bytes();
  if (device_series != 1 || bytes.plain_size() < LineInput::kHeadBytes + kTailBytes ||
      !bytes.seek(bytes.plain_size() - kTailBytes))
    return false;
  std::string tail(kTailBytes, '\0');
  std::size_t size = 0;
  while (size < tail.size()) {
    const auto n = bytes.read(tail.data() + size, tail.size() - size);
    if (!n || *n == 0) break;
    size += *n;
    if (tail.size() - size < 4) break;
  }
  std::string_view text = std::string_view(tail).substr(0, size);
  text.remove_prefix(std::min(text.size(), text.find('\n') + 1));
  auto parser = format.make(head);
  if (!parser) return false;
  Catalog catalog;
  DeviceRoster roster;
  LogRows rows(catalog, roster, head.file, std::nullopt);
  (*parser)->parse(text, 1, false, rows);
  for (const SeriesId id : rows.device_series_seen())
    if (!seen.find(catalog.key(id))) return true;
  return false;
}

}  // namespace

Result<RecognisedText> recognise_text(const LogHead& head) {
  RecognisedText out;
  // A pattern is for text alone.
  const std::string_view named = head.options->line_pattern.empty() ? head.options->format : kPatternFormat;
  if (!named.empty()) {
    out.format = find_log_format(named);
    if (out.format == nullptr)
      return fail(
          fmt::format("log format '{}' is not known; the formats are {}", head.options->format, format_names()));
  } else {
    int best = 0;
    for (const LogFormatInfo* format : log_formats()) {
      const int sure = format->recognise(head.text);
      if (sure > best) {
        best = sure;
        out.format = format;
      }
    }
    if (out.format == nullptr) {
      std::string_view rest = head.text;
      std::string_view line;
      while (!rest.empty() && logtext::trim(line).empty()) line = logtext::take_line(rest);
      return fail(
          fmt::format("the log format of '{}' is not recognised ({}); docs/formats/logs.md shows how to record each "
                      "format, --input-format names one, and --line-pattern reads lines of any text",
                      logtext::excerpt(line), format_names()));
    }
  }
  auto parser = out.format->make(head);
  if (!parser) return fail(fmt::format("as a {} log: {}", out.format->name, parser.error().message));
  out.parser = std::move(*parser);
  return out;
}

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
  if (std::all_of(text.begin(), text.end(), [](char c) { return logtext::is_space(c) || c == '\n'; }))
    return fail(fmt::format("{}: is empty; was the recording started?", planned->shown));
  if (looks_binary(text))
    return fail(fmt::format("{}: holds binary data, not a text log; see docs/formats/logs.md for what can be read",
                            planned->shown));
  const LogHead head{text, planned->shown, &planned->options, &planned->zone};
  auto found = recognise_text(head);
  if (!found) return fail(fmt::format("{}: {}", planned->shown, found.error().message));

  Probe& probe = planned->probe;
  probe.format = found->format;
  probe.processes_only = found->parser->processes_only();
  probe.relative = found->parser->clock_is_relative();
  Catalog catalog;
  DeviceRoster roster;
  LogRows rows(catalog, roster, planned->shown, std::nullopt);
  found->parser->parse(text, 1, true, rows);
  if (const auto wrong = found->parser->misfit())
    return fail(fmt::format("{}: as a {} log: {}", planned->shown, probe.format->name, *wrong));
  for (std::size_t i = 0; i < roster.size(); ++i) probe.devices.push_back(roster.device(i));
  probe.blocks = rows.series_follow_one_another();
  probe.disorder = probe.blocks ? Duration{} : rows.disorder();
  if (path == "-") {
    planned->input = std::move(*lines);
  } else if (!probe.blocks && !probe.processes_only) {
    probe.blocks = tail_has_other_series(*probe.format, head, **lines, catalog, rows.device_series_seen().size());
  }
  return planned;
}

Result<std::unique_ptr<LogFile>> open_log(PlannedFile& planned, Catalog& catalog, DeviceRoster& roster) {
  std::unique_ptr<LineInput> input = std::move(planned.input);
  if (input == nullptr) {
    auto opened = LineInput::open(planned.path);
    if (!opened) return fail(std::move(opened.error()));
    input = std::move(*opened);
  }
  auto parser = planned.probe.format->make({input->head(), planned.shown, &planned.options, &planned.zone});
  if (!parser) return fail(fmt::format("{}: {}", planned.shown, parser.error().message));
  auto rows = std::make_unique<LogRows>(catalog, roster, planned.shown, planned.options.capacity_bytes);
  return std::make_unique<LogFile>(std::move(input), std::move(*parser), std::move(rows), planned.probe);
}

}  // namespace vramtrack
