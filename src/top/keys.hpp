// Keys: what a key changes, and what it requests from the surrounding program.
#pragma once

#include <cstdint>
#include <optional>

#include "top/model.hpp"
#include "top/screen.hpp"

namespace vramtrack::top {

/// A character, or one of these (Unicode's private use area).
using Key = char32_t;
inline constexpr Key kUp = 0xe000;
inline constexpr Key kDown = 0xe001;
inline constexpr Key kLeft = 0xe002;
inline constexpr Key kRight = 0xe003;
inline constexpr Key kPageUp = 0xe004;
inline constexpr Key kPageDown = 0xe005;
inline constexpr Key kHome = 0xe006;
inline constexpr Key kEnd = 0xe007;
inline constexpr Key kTab = 0xe008;
inline constexpr Key kBackTab = 0xe009;
inline constexpr Key kEnter = 0xe00a;
inline constexpr Key kEscape = 0xe00b;
inline constexpr Key kBackspace = 0xe00c;
inline constexpr Key kResize = 0xe00d;
inline constexpr Key kPointer = 0xe00e;  ///< a mouse event; query the terminal for it

/// What the mouse did at a cell.
struct Pointer {
  enum class Did : std::uint8_t { press, double_press, wheel_up, wheel_down };
  Did did = Did::press;
  int x = 0;
  int y = 0;
};

enum class Play : std::uint8_t { none, toggle, slower, faster, next_alert, previous_alert, restart };

/// Actions that only the surrounding program can do.
struct Request {
  bool quit = false;
  bool redraw = false;  ///< redraw the whole terminal
  std::optional<AlertId> acknowledge;
  std::optional<SeriesKey> ask_signal;  ///< open the dialog on this process: fill Ui::target, or report why not
  std::optional<int> send_signal;       ///< confirmed: send signal kSignals[index] to Ui::target
  bool drop_signal = false;             ///< the dialog was closed
  Play play = Play::none;
};

/// Applies `key` to `model.ui`, and changes nothing else.
Request handle(Model& model, Key key);
/// The same for the mouse on `shown`, the last drawn screen. A click selects, a double click opens, the wheel moves the
/// selection or scrolls.
Request handle(Model& model, const Pointer& pointer, const Screen& shown);

}  // namespace vramtrack::top
