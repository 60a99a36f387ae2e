// One log: its bytes are split into lines, passed to its parser, and put in order of time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "core/units.hpp"
#include "source/log/format.hpp"
#include "source/log/line_prefix.hpp"
#include "source/log/record_sorter.hpp"
#include "source/log/rows.hpp"
#include "source/log/text_input.hpp"

namespace vramtrack {

/// The result of probing a file.
struct DetectedLog {
  const LogFormatInfo* format = nullptr;
  std::vector<LogDevice> devices;  ///< the devices that the head names
  bool processes_only = false;
  bool relative = false;  ///< its times are not dates
  Scale scale;            ///< the unit in which its figures are counted
  Duration disorder{};    ///< how far interleaved series are out of order
  bool has_long_lines = false;
  std::string not_reported;  ///< why it has no figure (RowsWithoutFigures), and its name; empty: it may have some
};

/// Splits a file into chunks of whole lines. Lines above 1 MiB are dropped with a note, or split if that is allowed;
/// NUL bytes (left by a crash of the machine that wrote the log) end the line they are in.
class LineInput {
 public:
  static constexpr std::size_t kHeadBytes = 256 * 1024;
  static constexpr std::size_t kLongestLine = kBytesPerMiB;

  static Result<std::unique_ptr<LineInput>> open(const std::string& path);

  /// The first 256 KiB, cut to whole lines unless the file ends earlier; NUL bytes end a line. Call only before the
  /// first next().
  [[nodiscard]] std::string_view head();
  /// The next chunk; empty at the end. REQUIRES set_line() after each one that ends in a newline. `complete` is false
  /// for a last line without a newline. Valid until the next call. Malformed lines are reported to `rows`.
  struct Stretch {
    std::string_view text;
    std::uint64_t first_line = 1;
    bool complete = true;
  };
  Result<Stretch> next(LogRows& rows);
  /// Removes `prefix` from every line. Call only before the first next().
  Status take_off(LinePrefix prefix);
  /// Lines above 1 MiB are split into incomplete chunks instead of being dropped.
  void allow_long_lines() { cuts_long_lines_ = true; }
  /// Number of the first line of the next chunk, as counted by the parser.
  void set_line(std::uint64_t line) { line_ = line; }

  /// Writes the whole text. Call only before the first next(), and instead of it.
  Status copy_to(Spool& spool);

  [[nodiscard]] TextInput& bytes() { return *input_; }

 private:
  Status fill();
  Status fill_without_prefix();

  std::unique_ptr<TextInput> input_;
  std::optional<LinePrefix> prefix_;
  std::string begun_;  ///< with a prefix: the start of a line that is not yet complete
  std::string head_;   ///< used if the buffer has NUL bytes
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;
  std::uint64_t line_ = 1;
  bool done_ = false;
  bool dropping_ = false;  ///< inside a line that is too long
  bool cuts_long_lines_ = false;
};

struct LogText;
struct PlannedFile;

/// A log being read: one file, or several that continue one another.
class LogFile {
 public:
  /// Opens the first of `parts` (at least one, in order of time), and each of the others when the previous one ends.
  static Result<std::unique_ptr<LogFile>> open(std::vector<std::unique_ptr<PlannedFile>> parts,
                                               std::unique_ptr<LogRows> rows);
  ~LogFile();

  /// Makes at least one sample ready, unless the log has ended. Errors: reading failed, or the log is out of order.
  Status fill();
  [[nodiscard]] bool ended() const { return ended_; }

  /// Samples and events in order of time, ready to be taken from the front.
  std::vector<Sample> samples;
  std::size_t taken_samples = 0;
  std::vector<Event> events;
  std::size_t taken_events = 0;
  /// No further sample will be earlier than this.
  [[nodiscard]] Timestamp complete_until() const { return complete_until_; }
  [[nodiscard]] LogRows& rows() { return *rows_; }

 private:
  LogFile(std::vector<std::unique_ptr<PlannedFile>> parts, std::unique_ptr<LogRows> rows);
  Status begin_part();
  Status read_some();
  Result<bool> read_lines();
  Result<bool> read_records();
  void order();

  std::vector<std::unique_ptr<PlannedFile>> parts_;
  std::size_t part_ = 0;
  std::unique_ptr<LogText> text_;  ///< text of the current part
  std::unique_ptr<LogRows> rows_;
  Duration hold_{};  ///< samples less than this older than the newest one wait for late ones
  std::vector<Sample> waiting_;
  std::vector<Event> waiting_events_;
  Timestamp complete_until_ = LogRows::kNever;
  bool ended_ = false;
};

}  // namespace vramtrack
