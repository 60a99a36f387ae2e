// Detects a log's format from its first 256 KiB.
#pragma once

#include <memory>
#include <string>

#include "core/result.hpp"
#include "core/zone.hpp"
#include "source/log/log_file.hpp"
#include "source/log/recording.hpp"
#include "source/log/reorder.hpp"

namespace vramtrack {

/// A file that was recognised, and everything needed to open it again.
struct PlannedFile {
  std::string path;
  std::string shown;              ///< path, for messages
  std::vector<std::string> logs;  ///< logs of the program, next to the recording of its run
  LogOptions options;
  Zone zone;
  DetectedLog detected;
  LogTimes times;                    ///< for a stream: the times that its head shows
  std::unique_ptr<LineInput> input;  ///< for a stream (standard input, a pipe), which cannot be opened twice
  std::optional<Spool> spool;        ///< for a stream out of order: a copy
  std::optional<LinePrefix> prefix;  ///< prefix of each line, if a screen follows it
  bool is_empty = false;             ///< has no text at all: allowed for a process log among others
  std::string beside;                ///< note about logs that lack a figure beside it, or that it has no log beside it
  std::string later_head;            ///< if the format was recognised only later: that part; else empty
  std::size_t head_reads = 0;        ///< how often formats have read the head, to compare the results

  [[nodiscard]] bool is_stream() const { return input != nullptr; }
  /// The text from which parsers are made.
  [[nodiscard]] std::string_view head(LineInput& lines) const {
    return later_head.empty() ? lines.head() : std::string_view(later_head);
  }
  [[nodiscard]] std::string opened_as() const { return spool ? spool->path() : path; }
};

/// Recognises `path`; errors name it.
Result<std::unique_ptr<PlannedFile>> recognise_log(const std::string& path, const LogOptions& options,
                                                   const Zone& zone);

/// Opens a planned file that can be read again.
Result<std::unique_ptr<LineInput>> open_lines(const PlannedFile& planned);

/// A log while it is read: its text in order, and its parser.
struct LogText {
  std::unique_ptr<LineInput> lines;
  std::unique_ptr<RecordSorter> records;  ///< instead of `lines`, if the log was out of order
  std::unique_ptr<LogParser> parser;
};
/// Opens a planned file for reading from its start, into `rows`.
Result<LogText> open_text(PlannedFile& planned, LogRows& rows);

}  // namespace vramtrack
