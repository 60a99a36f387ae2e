// Console: the one place that writes to the terminal.
#pragma once

#include <string>
#include <string_view>

#include "report/report.hpp"

namespace vramtrack::cli {

/// Standard output and standard error of this process. Not thread-safe.
class Console {
 public:
  /// Ignores SIGPIPE: a reader that has gone (`| head`) shows as gone().
  Console();

  /// Writes all of `text` to standard output. Nothing once gone().
  void write(std::string_view text);
  /// The same; on a terminal its lines are broken between words, and not where the screen ends.
  void write_prose(std::string_view text);
  /// "vramtrack: <message>" on standard error. By convention the message reads "what: why; next step".
  void error(std::string_view message);
  /// The same, for what does not end the command.
  void warn(std::string_view message) { error(message); }

  /// Nobody reads standard output any more, or it cannot be written (then error() has said so): end quietly.
  [[nodiscard]] bool gone() const { return gone_; }
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool is_terminal() const { return terminal_; }
  /// Colours on a terminal that has them, unless NO_COLOR is set; lines as wide as the terminal is now.
  [[nodiscard]] ReportStyle style() const { return {colour_, width()}; }

 private:
  /// Columns; 0: not a terminal, or one that does not tell.
  [[nodiscard]] std::size_t width() const;

  bool terminal_ = false;
  bool colour_ = false;
  bool gone_ = false;
  bool failed_ = false;
};

/// A block of lines at the end of the terminal that is drawn again in place. On anything but a terminal
/// draw() does nothing: print lines with Console::write instead.
class Block {
 public:
  explicit Block(Console& console) : console_(console) {}
  ~Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void draw(std::string_view text);
  /// Takes the block away, so that lines can be written above the next one.
  void erase();
  /// Leaves what is drawn where it is.
  void keep() { lines_ = 0; }

 private:
  Console& console_;
  std::size_t lines_ = 0;
};

}  // namespace vramtrack::cli
