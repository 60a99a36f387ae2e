// Console: the one place that writes to the terminal.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "core/local_time.hpp"
#include "report/report.hpp"

namespace vramtrack::cli {

/// Standard output and standard error of this process. Not thread-safe, except for set_progress().
class Console {
 public:
  /// Ignores SIGPIPE: a reader that has gone (`| head`) is reported by gone().
  Console();

  /// Writes all of `text` to standard output, or nothing once gone().
  void write(std::string_view text);
  /// The same; on a terminal, lines are broken between words rather than at the edge of the screen.
  void write_prose(std::string_view text);
  /// "vramtrack: <message>" on standard error. By convention the message reads "what: why; next step".
  void error(std::string_view message);
  /// The same, for a problem that does not end the command.
  void warn(std::string_view message) { error(message); }

  /// The last line of the terminal, below all that is written; empty: none. Any thread may call it.
  void set_progress(const std::string& line);

  /// While it lives, what this thread puts into words has local times if standard output is a terminal; what is
  /// written next names the zone once. Not for JSON, nor for what goes into a file.
  [[nodiscard]] LocalTimes local_times() const { return LocalTimes(terminal_); }

  /// Nobody reads standard output any more, or it cannot be written (then error() has reported it): end quietly.
  [[nodiscard]] bool gone() const { return gone_; }
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool is_terminal() const { return terminal_; }
  /// Colours on a terminal that has them, unless NO_COLOR is set; lines as wide as the terminal is now.
  [[nodiscard]] ReportStyle style() const { return {colour_, width()}; }

 private:
  /// Columns; 0: not a terminal, or one that does not report its width.
  [[nodiscard]] std::size_t width() const;
  /// Call with the mutex held.
  void erase_progress();

  std::mutex mutex_;  ///< guards has_progress_ and of what is written: the progress line has its own thread
  bool has_progress_ = false;

  bool terminal_ = false;
  bool colour_ = false;
  bool gone_ = false;
  bool failed_ = false;
};

/// A block of lines at the bottom of the terminal that is redrawn in place. On anything but a terminal
/// draw() does nothing: print lines with Console::write instead.
class Block {
 public:
  explicit Block(Console& console) : console_(console) {}
  ~Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void draw(std::string_view text);
  /// Removes the block, so that lines can be written above the next one.
  void erase();
  /// Leaves what is drawn where it is.
  void keep() { lines_ = 0; }

 private:
  Console& console_;
  std::size_t lines_ = 0;
};

}  // namespace vramtrack::cli
