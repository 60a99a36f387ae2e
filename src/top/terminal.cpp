#include "top/terminal.hpp"

#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <fmt/format.h>
#include <langinfo.h>
#include <term.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <clocale>
#include <cstdlib>
#include <cstring>

// curses defines macros with common names.
#undef timeout
#undef columns
#undef lines

namespace vramtrack::top {
namespace {

/// Escape is a key here, and also the first byte of other keys, so curses waits this long for the rest.
constexpr int kEscapeDelay_ms = 25;
/// Two presses on one row within this time are a double press. Curses could detect them, but would wait for the second.
constexpr std::chrono::milliseconds kDoublePress{400};

std::optional<Key> special_key(wint_t code) {
  switch (code) {
    case KEY_UP:
      return kUp;
    case KEY_DOWN:
      return kDown;
    case KEY_LEFT:
      return kLeft;
    case KEY_RIGHT:
      return kRight;
    case KEY_PPAGE:
      return kPageUp;
    case KEY_NPAGE:
      return kPageDown;
    case KEY_HOME:
      return kHome;
    case KEY_END:
      return kEnd;
    case KEY_BTAB:
      return kBackTab;
    case KEY_ENTER:
      return kEnter;
    case KEY_BACKSPACE:
    case KEY_DC:
      return kBackspace;
    case KEY_RESIZE:
      return kResize;
    case KEY_MOUSE:
      return kPointer;
    default:
      return std::nullopt;
  }
}

Key plain_key(wint_t code) {
  switch (code) {
    case '\n':
    case '\r':
      return kEnter;
    case '\t':
      return kTab;
    case 27:
      return kEscape;
    case 8:
    case 127:
      return kBackspace;
    default:
      return static_cast<Key>(code);
  }
}

/// Colours of `theme` as curses' pairs, the role's number plus one.
void set_up_colours(const Theme& theme) {
  if (has_colors() != TRUE) return;
  for (std::size_t i = 0; i < kRoles; ++i) {
    const Look& look = theme.looks[i];
    const short colour = COLORS >= 256 ? look.colour : look.colour8;
    init_pair(static_cast<short>(i + 1), colour < COLORS ? colour : static_cast<short>(-1), -1);
  }
}

attr_t attributes(const Look& look, bool selected) {
  attr_t attributes = A_NORMAL;
  if (look.bold) attributes |= A_BOLD;
  if (look.dim) attributes |= A_DIM;
  if (look.underline) attributes |= A_UNDERLINE;
  if (look.reverse != selected) attributes |= A_REVERSE;
  return attributes;
}

}  // namespace

char ascii_for(char32_t code) {
  if (code < 0x80) return static_cast<char>(code);
  if (code >= 0x2800 && code <= 0x28ff) {  // Braille: by the number of dots set, out of eight
    constexpr std::string_view kDensity = " ..::*##@";
    return kDensity[static_cast<std::size_t>(std::popcount(static_cast<unsigned>(code - 0x2800)))];
  }
  switch (code) {
    case U'█':
      return '#';
    case U'░':
      return ':';
    case U'•':
      return 'o';
    case U'─':
    case U'▔':
    case U'–':
      return '-';
    case U'▁':
      return '_';
    case U'│':
      return '|';
    case U'┌':
    case U'┐':
    case U'└':
    case U'┘':
      return '+';
    case U'…':
      return '~';
    case U'≤':
      return '<';
    case U'²':
      return '2';
    case U'·':
      return '-';
    case U'°':
      return ' ';
    case U'←':
      return '<';
    case U'→':
      return '>';
    case U'↑':
      return '^';
    case U'↓':
      return 'v';
    default:
      return '?';
  }
}

Result<Terminal> Terminal::open() {
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1)
    return fail("this is not a terminal; 'vramtrack watch' prints lines, and 'vramtrack watch --json' is for programs");
  const char* term = std::getenv("TERM");
  int code = 0;
  if (term == nullptr || setupterm(term, STDOUT_FILENO, &code) != OK)
    return fail(fmt::format(
        "the terminal '{}' is not known on this machine; set TERM, for example TERM=xterm-256color (or install "
        "ncurses-term)",
        term == nullptr ? "" : term));
  del_curterm(cur_term);  // checked only to report an error, because newterm would end the program
  // Set the locale only for characters: we format numbers ourselves, independently of the locale.
  std::setlocale(LC_CTYPE, "");
  Terminal terminal;
  terminal.utf8_ = std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
  terminal.curses_ = newterm(term, stdout, stdin);
  if (terminal.curses_ == nullptr) return fail("the terminal cannot be set up; try TERM=xterm");
  cbreak();
  noecho();
  nonl();
  intrflush(stdscr, FALSE);
  keypad(stdscr, TRUE);
  curs_set(0);
  set_escdelay(kEscapeDelay_ms);
  if (has_colors() == TRUE) {
    start_color();
    use_default_colors();
  }
  return terminal;
}

Terminal::Terminal(Terminal&& other) noexcept
    : curses_(other.curses_), theme_(other.theme_), utf8_(other.utf8_), mouse_(other.mouse_) {
  other.curses_ = nullptr;
}

Terminal::~Terminal() {
  if (curses_ == nullptr) return;
  listen_to_mouse(false);
  endwin();
  delscreen(curses_);
}

int Terminal::width() const {
  return getmaxx(stdscr);
}
int Terminal::height() const {
  return getmaxy(stdscr);
}

void Terminal::show(const Screen& screen, const Theme& theme) {
  if (theme_ != &theme) {
    set_up_colours(theme);
    theme_ = &theme;
    clearok(stdscr, TRUE);
  }
  erase();
  for (int y = 0; y < std::min(screen.height(), height()); ++y) {
    for (int x = 0; x < std::min(screen.width(), width()); ++x) {
      const Cell& cell = screen.at(x, y);
      const bool paints = cell.selected || theme.look(cell.role).reverse;  // so that a blank is visible, too
      if (cell.code == 0 || (cell.code == U' ' && !paints)) continue;
      wchar_t text[2] = {static_cast<wchar_t>(cell.code), 0};
      if (!utf8_) text[0] = static_cast<wchar_t>(ascii_for(cell.code));
      const auto pair = static_cast<short>(has_colors() == TRUE ? static_cast<int>(cell.role) + 1 : 0);
      cchar_t c;
      setcchar(&c, text, attributes(theme.look(cell.role), cell.selected), pair, nullptr);
      mvadd_wch(y, x, &c);
    }
  }
  refresh();
}

void Terminal::redraw() {
  clearok(stdscr, TRUE);
}

void Terminal::listen_to_mouse(bool on) {
  if (on == mouse_) return;
  mouse_ = on;
  mousemask(on ? BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED : 0, nullptr);
  mouseinterval(0);
}

std::optional<Pointer> Terminal::pointer() {
  MEVENT event{};
  if (getmouse(&event) != OK) return std::nullopt;
  Pointer out{Pointer::Did::press, event.x, event.y};
  if ((event.bstate & BUTTON4_PRESSED) != 0) {
    out.did = Pointer::Did::wheel_up;
  } else if ((event.bstate & BUTTON5_PRESSED) != 0) {
    out.did = Pointer::Did::wheel_down;
  } else if ((event.bstate & BUTTON1_PRESSED) != 0) {
    const auto now = std::chrono::steady_clock::now();
    const bool again = last_.did == Pointer::Did::press && last_.y == out.y && now - pressed_ < kDoublePress;
    if (again) out.did = Pointer::Did::double_press;
    last_ = out;
    pressed_ = now;
  } else {
    return std::nullopt;
  }
  return out;
}

std::optional<Key> Terminal::key(std::chrono::milliseconds wait) {
  wtimeout(stdscr, static_cast<int>(std::clamp<std::int64_t>(wait.count(), 0, 3600000)));
  wint_t code = 0;
  const int got = get_wch(&code);
  if (got == KEY_CODE_YES) return special_key(code);
  if (got == OK) return plain_key(code);
  return std::nullopt;
}

}  // namespace vramtrack::top
