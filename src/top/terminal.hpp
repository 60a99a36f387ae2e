// Terminal: a Screen copied to the terminal, and its keys. The only part that knows curses.
#pragma once

#include <chrono>
#include <optional>

#include "core/result.hpp"
#include "top/keys.hpp"
#include "top/screen.hpp"
#include "top/theme.hpp"

struct screen;  // curses' SCREEN

namespace vramtrack::top {

/// At most one at a time, on standard input and output. While it lives nothing else may write there. Not thread-safe.
class Terminal {
 public:
  /// Errors: not a terminal, or one whose TERM is not known here.
  static Result<Terminal> open();
  Terminal(Terminal&& other) noexcept;
  Terminal& operator=(Terminal&&) = delete;
  /// Gives the terminal back as it was.
  ~Terminal();

  [[nodiscard]] int width() const;
  [[nodiscard]] int height() const;

  /// Only what differs from the last time goes to the terminal.
  void show(const Screen& screen, const Theme& theme);
  /// The next show() sends everything.
  void redraw();

  /// Whether we receive mouse events; otherwise the terminal keeps the mouse, for selecting text.
  void listen_to_mouse(bool on);
  /// What the mouse did, after key() said kPointer; nullopt: nothing that means something here.
  std::optional<Pointer> pointer();

  /// Waits for a key until `timeout` has passed; nullopt: none came, or a signal did.
  std::optional<Key> key(std::chrono::milliseconds timeout);

 private:
  Terminal() = default;
  ::screen* curses_ = nullptr;    ///< curses' own SCREEN; null: moved from
  const Theme* theme_ = nullptr;  ///< whose colours are set up
  bool utf8_ = true;
  bool mouse_ = false;
  Pointer last_;  ///< press, for telling a double one
  std::chrono::steady_clock::time_point pressed_{};
};

/// What stands for a character on a terminal without UTF-8.
char ascii_for(char32_t code);

}  // namespace vramtrack::top
