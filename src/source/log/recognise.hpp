// Finds out what a log is from its first 256 KiB.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/result.hpp"
#include "source/log/log_file.hpp"
#include "source/log/recording.hpp"
#include "source/log/reorder.hpp"
#include "source/log/zone.hpp"

namespace vramtrack {

/// The formats whose screens may stand between the lines of other programs, in the order of formats.def.
std::span<const LogFormatInfo* const> screen_formats();

/// A file that was recognised, and everything needed to open it again.
struct PlannedFile {
  std::string path;
  std::string shown;  ///< path for messages
  std::string log;    ///< of the program, beside the recording of its run; empty: there is none
  LogOptions options;
  Zone zone;
  Probe probe;
  LogTimes times;                    ///< for a stream: what its head shows
  std::unique_ptr<LineInput> input;  ///< for a stream (standard input, a pipe), which cannot be opened twice
  std::optional<Spool> spool;        ///< for a stream out of order: a copy
  std::optional<LinePrefix> prefix;  ///< of each line, where a screen stands behind it
  bool is_empty = false;             ///< has no text at all: a process log beside others may
  std::string beside;                ///< what is said of logs that it was given beside, and that hold no figure
  std::string later_head;            ///< where the format was recognised only later: that stretch; else empty

  [[nodiscard]] bool is_stream() const { return input != nullptr; }
  /// The text that parsers are made from.
  [[nodiscard]] std::string_view head(const LineInput& lines) const {
    return later_head.empty() ? lines.head() : std::string_view(later_head);
  }
  [[nodiscard]] std::string opened_as() const { return spool ? spool->path() : path; }
};

/// Recognises `path`; errors name it.
Result<std::unique_ptr<PlannedFile>> recognise_log(const std::string& path, const LogOptions& options,
                                                   const Zone& zone);

/// Opens a planned file that can be read again.
Result<std::unique_ptr<LineInput>> open_lines(const PlannedFile& planned);

/// Recognises text that is already in memory (the fuzzer's entry point): the format and its parser.
struct RecognisedText {
  const LogFormatInfo* format = nullptr;
  std::unique_ptr<LogParser> parser;
};
Result<RecognisedText> recognise_text(const LogHead& head);

/// A log as it is read: its text in order, and the parser for it.
struct LogText {
  std::unique_ptr<LineInput> lines;
  std::unique_ptr<RecordSorter> records;  ///< instead of `lines`, for a log that was out of order
  std::unique_ptr<LogParser> parser;
};
/// Opens a planned file for reading from its start, into `rows`.
Result<LogText> open_text(PlannedFile& planned, LogRows& rows);

}  // namespace vramtrack
