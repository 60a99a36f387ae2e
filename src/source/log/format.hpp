// Log formats: how each is recognised and how its parser is made. A format consists of one file that defines a `const
// LogFormatInfo <name>_log_format`, one line in formats.def, which also declares it, and a section in
// docs/formats/logs.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "core/scale.hpp"

namespace vramtrack {

class LogRows;
class Zone;
struct LogOptions;

/// The beginning of a log, from which a parser is made. Valid only during make().
struct LogHead {
  std::string_view text;  ///< whole lines, at most 256 KiB, UTF-8
  std::string file;       ///< for messages
  const LogOptions* options = nullptr;
  const Zone* zone = nullptr;
};

/// Reads one log, piece by piece. This is the only interface besides Source and Detector, because a format is chosen at
/// run time, too. Pure: no I/O; the same text gives the same rows however it is split into pieces.
class LogParser {
 public:
  LogParser() = default;
  LogParser(const LogParser&) = delete;
  LogParser& operator=(const LogParser&) = delete;
  virtual ~LogParser() = default;

  /// Reads `lines` (whole lines; the first is line `first_line` of the file, counting from 1) into `rows`. `complete`
  /// is false only for a last line without a newline. Returns the number of the line after the last: counting lines is
  /// free here; elsewhere it would need another pass over the text.
  virtual std::uint64_t parse(std::string_view lines, std::uint64_t first_line, bool complete, LogRows& rows) = 0;
  /// The log has ended.
  virtual void finish(LogRows& /*rows*/) {}

  /// Whether times are offsets from the epoch rather than dates.
  [[nodiscard]] virtual bool clock_is_relative() const = 0;
  /// The unit in which the log's figures are counted.
  [[nodiscard]] virtual Scale scale() const { return {}; }
  /// Whether the log contains only processes, so that it may be joined to a device log.
  [[nodiscard]] virtual bool processes_only() const { return false; }
  /// Why the rows read so far make sense only in file order, such as "its rows do not name the GPU"; empty if each
  /// record can be read independently.
  [[nodiscard]] virtual std::string_view needs_file_order() const { return {}; }
  /// Whether times have no dates and pass midnight.
  [[nodiscard]] virtual bool clock_wraps() const { return false; }
  /// Whether a line may be as long as the log (a JSON document on one line): if so, parse() also gets parts of lines,
  /// which are not `complete`.
  [[nodiscard]] virtual bool has_long_lines() const { return false; }
  /// If too many lines did not fit: how the log was interpreted, why that cannot be trusted, and what to do. nullopt
  /// otherwise.
  [[nodiscard]] virtual std::optional<std::string> misfit() const { return std::nullopt; }
  /// Assumptions made from the head, as warnings that end with the next step.
  [[nodiscard]] const std::vector<std::string>& assumptions() const { return assumptions_; }

 protected:
  std::vector<std::string> assumptions_;
};

/// The evidence that a head has a format, from the weakest to the strongest. Of the formats with the strongest
/// evidence, the one that reads most of the head is chosen, and of several that read as much, the earliest in
/// formats.def.
enum class Evidence : std::uint8_t {
  none,          ///< it does not have this format
  syntax,        ///< lines can be split, but nothing shows GPU memory: the format reports what the log lacks
  values,        ///< columns without titles, recognised by their values
  prose,         ///< some lines have figures beside words that words.def knows
  traces,        ///< the tool's own comments or ids of GPUs, but no figure that is surely memory
  titles,        ///< a table with titles that words.def knows, perhaps among other lines
  mostly_prose,  ///< a third of the lines have figures beside words
  named_rows,    ///< names that words.def knows, and every line is a row or a JSON object
  own_rows,      ///< rows that only its tool writes: their cells, or their titles together
  own_names,     ///< titles, keys or metric names of its tool, or JSON with names for a time and for memory
  own_mark       ///< the line or key at the start of each document or screen of its tool
};

/// A registered format.
struct LogFormatInfo {
  std::string_view name;  ///< as passed to --input-format
  std::string_view help;  ///< the command that records such a log
  Evidence (*recognise)(std::string_view head);
  /// Errors say what this log lacks, without the file name (the caller adds it).
  Result<std::unique_ptr<LogParser>> (*make)(const LogHead& head);
  /// Whether a record (lines that the parser needs together for one reading) begins with `line`; `before` is the last
  /// non-blank line before it. nullptr: records cannot be separated, and a log out of order is refused.
  bool (*begins_record)(std::string_view line, std::string_view before) = nullptr;
  /// Whether a log that make() refuses, or whose head contains nothing readable, is tried as text: its figures may have
  /// words next to them.
  bool may_be_text = true;
  /// For a format that reads much of the head for weak evidence: like recognise(), but may return `none` once its
  /// evidence must be weaker than `least`, another format's evidence. nullptr: recognise() is cheap.
  Evidence (*recognise_from)(std::string_view head, Evidence least) = nullptr;
  /// Whether this is the format for text of any kind, read by the words beside its figures, which is tried if no other
  /// can be read.
  bool is_prose = false;
  /// Whether these are screens of a tool, which may occur among the lines of other programs.
  bool is_screen = false;
};

/// A log with lines that are rewritten for the parser of another format: without thousands separators, with tabs
/// between cells, or as JSON objects.
struct Rewriting {
  /// Rewrites whole lines for the other parser, keeping their number.
  std::function<std::string(std::string_view lines)> lines;
  std::string assumption{};  ///< an assumption to report; empty: none
  /// Why the log cannot be read although its rewritten lines can; empty if it can.
  std::function<std::string()> doubt{};
};

/// The parser that `make` creates from the rewritten head, fed with rewritten lines.
Result<std::unique_ptr<LogParser>> make_rewritten(
    const LogHead& head, Rewriting rewriting,
    const std::function<Result<std::unique_ptr<LogParser>>(const LogHead&)>& make);

#define VRAMTRACK_LOG_FORMAT(name) extern const LogFormatInfo name##_log_format;
#include "source/log/formats.def"
#undef VRAMTRACK_LOG_FORMAT

/// For formats with lines that can each be read independently.
inline bool each_line_is_a_record(std::string_view /*line*/, std::string_view /*before*/) {
  return true;
}

}  // namespace vramtrack
