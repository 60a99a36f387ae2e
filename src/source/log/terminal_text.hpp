// The text that a terminal would show: converts escape sequences (ECMA-48, xterm) to plain text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vramtrack {

/// Removes colours and similar codes from a stream of text. If the stream moves a cursor around the screen, like that
/// of `watch` (which writes only the characters that differ after the first picture), it keeps the screen and returns
/// each picture as lines. Holds one screen of at most 300 rows with 500 characters each.
class TerminalText {
 public:
  /// Whether `start`, the beginning of a stream, moves a cursor around the screen.
  static bool draws_screen(std::string_view start);

  /// The stream draws a screen. Call only before the first feed().
  void keep_screen() { screen_ = true; }
  /// Whether text without escape sequences would pass unchanged.
  [[nodiscard]] bool passes_text() const { return !screen_ && state_ == State::text; }

  /// Reads `bytes`, which may be cut anywhere, and appends the plain text to `out`.
  void feed(std::string_view bytes, std::string& out);
  /// Notes that `bytes`, which have no escape sequence, were passed on unchanged. REQUIRES passes_text().
  void pass(std::string_view bytes) { line_begun_ = !bytes.empty() && bytes.back() != '\n'; }
  /// The stream has ended: appends the last picture if it is complete.
  void finish(std::string& out);

 private:
  enum class State : std::uint8_t { text, escape, sequence, title, title_escape, skip_one };
  using Cell = std::string;  ///< one character; empty: never written

  void take_text(char c, std::string& out);
  void take_escape(char c);
  void run(char command, std::string& out);
  void run_on_screen(char command, std::string& out);
  void erase_display(std::size_t how, std::string& out);
  void move_to(std::size_t row, std::size_t column, std::string& out);
  void put(char c);
  void line_feed();
  void give_picture(std::string& out);
  [[nodiscard]] std::size_t number(std::size_t at, std::size_t missing) const;
  std::vector<Cell>& row();

  State state_ = State::text;
  std::string parameters_;
  bool screen_ = false;
  bool line_begun_ = false;  ///< a line of plain text is incomplete

  std::vector<std::vector<Cell>> rows_;
  std::size_t at_row_ = 0, at_column_ = 0;
  std::size_t height_ = 300;
  bool changed_ = false;  ///< changed since the last picture
  bool parked_ = true;    ///< nothing has been written since the cursor moved
  std::string last_picture_;
};

}  // namespace vramtrack
