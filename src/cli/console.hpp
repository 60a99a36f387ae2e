// Console: the only place that writes to the terminal.
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
  /// Ignores SIGPIPE: gone() reports a reader that has exited (`| head`).
  Console();

  /// Writes all of `text` to standard output, or nothing once gone().
  void write(std::string_view text);
  /// The same; on a terminal, breaks lines between words rather than at the edge of the screen.
  void write_prose(std::string_view text);
  /// Writes "vramtrack: <message>" to standard error. By convention the message reads "what: why; next step".
  void error(std::string_view message);
  /// The same, for a problem that does not end the command.
  void warn(std::string_view message) { error(message); }

  /// Sets the last line of the terminal, below everything written; empty: none. Any thread may call it.
  void set_progress(const std::string& line);

  /// While the object lives, text formatted by this thread has local times if standard output is a terminal; the next
  /// text written names the zone once. Not for JSON or for files.
  [[nodiscard]] LocalTimes local_times() const { return LocalTimes(terminal_); }

  /// Nobody reads standard output any more, or it cannot be written (which error() has reported): exit quietly.
  [[nodiscard]] bool gone() const { return gone_; }
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool is_terminal() const { return terminal_; }
  /// Colours on a terminal that supports them, unless NO_COLOR is set; lines as wide as the terminal is now.
  [[nodiscard]] ReportStyle style() const { return {colour_, width()}; }

 private:
  /// Columns; 0: not a terminal, or one that does not report its width.
  [[nodiscard]] std::size_t width() const;
  /// Call with the mutex held.
  void erase_progress();

  std::mutex mutex_;  ///< guards has_progress_ and the output, because the progress line has its own thread
  bool has_progress_ = false;

  bool terminal_ = false;
  bool colour_ = false;
  bool gone_ = false;
  bool failed_ = false;
};

/// A block of lines at the bottom of the terminal that is redrawn in place. Without a terminal, draw() does nothing:
/// print lines with Console::write instead.
class Block {
 public:
  explicit Block(Console& console) : console_(console) {}
  ~Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void draw(std::string_view text);
  /// Removes the block, so that lines can be written above the next one.
  void erase();
  /// Leaves the block where it is.
  void keep() { lines_ = 0; }

 private:
  Console& console_;
  std::size_t lines_ = 0;
};

}  // namespace vramtrack::cli
