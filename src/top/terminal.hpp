// Terminal: copies a Screen to the terminal and reads its keys. The only part that uses curses.
#pragma once

#include <chrono>
#include <optional>

#include "core/result.hpp"
#include "top/keys.hpp"
#include "top/screen.hpp"
#include "top/theme.hpp"

struct screen;  // curses' SCREEN

namespace vramtrack::top {

/// At most one at a time, on standard input and output. Nothing else may write there meanwhile. Not thread-safe.
class Terminal {
 public:
  /// Errors: not a terminal, or an unknown TERM.
  static Result<Terminal> open();
  Terminal(Terminal&& other) noexcept;
  Terminal& operator=(Terminal&&) = delete;
  /// Restores the terminal.
  ~Terminal();

  [[nodiscard]] int width() const;
  [[nodiscard]] int height() const;

  /// Sends only the differences from the last time to the terminal.
  void show(const Screen& screen, const Theme& theme);
  /// The next show() sends everything.
  void redraw();

  /// Whether we receive mouse events; otherwise the terminal keeps the mouse, for selecting text.
  void listen_to_mouse(bool on);
  /// The mouse event, after key() returned kPointer; nullopt if it has no meaning here.
  std::optional<Pointer> pointer();

  /// Waits for a key until `timeout` has passed; nullopt if none was pressed or a signal arrived.
  std::optional<Key> key(std::chrono::milliseconds timeout);

 private:
  Terminal() = default;
  ::screen* curses_ = nullptr;    ///< curses' own SCREEN; null: moved from
  const Theme* theme_ = nullptr;  ///< the theme that is set up
  bool utf8_ = true;
  bool mouse_ = false;
  Pointer last_;  ///< the last press, to detect a double press
  std::chrono::steady_clock::time_point pressed_{};
};

/// The replacement of a character on a terminal without UTF-8.
char ascii_for(char32_t code);

}  // namespace vramtrack::top
