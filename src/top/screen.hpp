// Screen: a grid of characters with roles. The content of a terminal, without a terminal: screens are functions that
// fill one, tests compare its text, and terminal.cpp copies it out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/series.hpp"
#include "core/time.hpp"

namespace vramtrack::top {

/// The meaning of a cell; a theme gives it a colour. Words and glyphs carry the meaning without one.
enum class Role : std::uint8_t {
  plain,
  faint,     ///< labels, rules, least important
  title,     ///< headings
  key,       ///< a key to press
  good,      ///< healthy
  notice,    ///< growing, but undecided
  bad,       ///< a leak
  critical,  ///< a leak that will soon exhaust memory
  bar,       ///< used memory
  busy,      ///< activity: kernels, power, the fan
  history,   ///< memory over time
  trend,     ///< the verdict's trend line
  band,      ///< the forecast of memory
  mark,      ///< an instant on a chart
};
inline constexpr std::size_t kRoles = 14;

struct Rect {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
  [[nodiscard]] int right() const { return x + width; }
  [[nodiscard]] int bottom() const { return y + height; }
  [[nodiscard]] bool holds(int column, int row) const {
    return column >= x && column < right() && row >= y && row < bottom();
  }
  [[nodiscard]] bool empty() const { return width <= 0 || height <= 0; }
};

struct Cell {
  char32_t code = U' ';  ///< 0: the right half of the wide character before it
  Role role = Role::plain;
  bool selected = false;
  bool written = false;
};

/// The meaning of a click on a part of the screen.
struct Link {
  enum class To : std::uint8_t { key, device, process, alert, sort };
  To to = To::key;
  char32_t key = 0;             ///< if `to` is key: the key to press
  SeriesKey series{};           ///< if `to` is device (only its id), process or alert
  std::optional<Timestamp> at;  ///< if `to` is alert: when it was raised
  int sort = 0;                 ///< if `to` is sort: the column
};

/// Columns that `code` takes: 0 (control, combining), 1 or 2 (East Asian wide, emoji).
int columns_of(char32_t code);
/// Columns that `utf8` takes, which is not its number of code points: some are wide and some invisible.
int columns_of(std::string_view utf8);
/// Code points of `utf8`; invalid bytes become U+FFFD.
std::u32string decode(std::string_view utf8);
/// Appends `code` as UTF-8.
void append_utf8(std::string& out, char32_t code);

class Screen {
 public:
  Screen(int width, int height);

  [[nodiscard]] int width() const { return width_; }
  [[nodiscard]] int height() const { return height_; }
  [[nodiscard]] Rect all() const { return {0, 0, width_, height_}; }
  /// REQUIRES: (x, y) is inside.
  [[nodiscard]] const Cell& at(int x, int y) const { return cells_[index(x, y)]; }

  /// Writes `utf8` from (x, y) in at most `most` columns, truncated with "…". Control and combining characters are left
  /// out. Returns the columns used.
  int put(int x, int y, int most, std::string_view utf8, Role role = Role::plain);
  /// The same, ending before column `end`.
  void put_right(int end, int y, int most, std::string_view utf8, Role role = Role::plain);
  void put(int x, int y, char32_t code, Role role);
  /// Like put(), but deliberately overwrites a cell: a line over a filled chart.
  void over(int x, int y, char32_t code, Role role);
  /// Shows a row or a part of it as selected, including blank cells.
  void select(const Rect& rect);
  /// Adds a clickable part. Later ones cover earlier ones.
  void link(const Rect& rect, Link link);
  /// The meaning of a click at that cell; nullptr: none.
  [[nodiscard]] const Link* link_at(int x, int y) const;
  /// Clears a rectangle for an overlay.
  void clear(const Rect& rect);

  /// Number of cells written twice, and of cells outside the screen. Tests check that both are 0 for every screen.
  [[nodiscard]] int overwritten() const { return overwritten_; }
  [[nodiscard]] int outside() const { return outside_; }

  /// The rows, each ended by a newline and without trailing blanks.
  [[nodiscard]] std::string text() const;

 private:
  [[nodiscard]] std::size_t index(int x, int y) const {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) + static_cast<std::size_t>(x);
  }
  [[nodiscard]] bool inside(int x, int y) const { return x >= 0 && y >= 0 && x < width_ && y < height_; }

  int width_;
  int height_;
  std::vector<Cell> cells_;
  std::vector<std::pair<Rect, Link>> links_;
  int overwritten_ = 0;
  int outside_ = 0;
};

}  // namespace vramtrack::top
