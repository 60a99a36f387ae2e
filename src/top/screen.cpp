#include "top/screen.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace vramtrack::top {
namespace {

using Range = std::pair<char32_t, char32_t>;

// Unicode's East Asian Wide and Fullwidth, in blocks: enough for names and command lines.
constexpr std::array<Range, 14> kWide = {{{0x1100, 0x115f},
                                          {0x2e80, 0x303e},
                                          {0x3041, 0x33ff},
                                          {0x3400, 0x4dbf},
                                          {0x4e00, 0x9fff},
                                          {0xa000, 0xa4cf},
                                          {0xac00, 0xd7a3},
                                          {0xf900, 0xfaff},
                                          {0xfe30, 0xfe6f},
                                          {0xff00, 0xff60},
                                          {0xffe0, 0xffe6},
                                          {0x1f300, 0x1f64f},
                                          {0x1f900, 0x1f9ff},
                                          {0x20000, 0x3fffd}}};

// Combining marks, joiners, directional and other invisible characters: a command line must not be able to reverse the
// row or to hide a part of itself.
constexpr std::array<Range, 10> kInvisible = {{{0x0, 0x1f},
                                               {0x7f, 0x9f},
                                               {0xad, 0xad},
                                               {0x300, 0x36f},
                                               {0x200b, 0x200f},
                                               {0x2028, 0x202e},
                                               {0x2060, 0x206f},
                                               {0xfe00, 0xfe0f},
                                               {0xfeff, 0xfeff},
                                               {0xe0000, 0xe01ef}}};

template <std::size_t N>
bool in_any(const std::array<Range, N>& ranges, char32_t code) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [code](const Range& r) { return code >= r.first && code <= r.second; });
}

/// Number of bytes after the first byte of a UTF-8 sequence; -1 if it cannot be the first.
int following(unsigned char lead) {
  if (lead < 0x80) return 0;
  if (lead >= 0xc2 && lead < 0xe0) return 1;
  if (lead >= 0xe0 && lead < 0xf0) return 2;
  return lead >= 0xf0 && lead < 0xf5 ? 3 : -1;
}

}  // namespace

int columns_of(char32_t code) {
  if (code >= 0x20 && code < 0x7f) return 1;
  if (in_any(kInvisible, code)) return 0;
  return in_any(kWide, code) ? 2 : 1;
}

int columns_of(std::string_view utf8) {
  int total = 0;
  for (const char32_t code : decode(utf8)) total += columns_of(code);
  return total;
}

std::u32string decode(std::string_view utf8) {
  std::u32string out;
  out.reserve(utf8.size());
  for (std::size_t i = 0; i < utf8.size();) {
    const auto lead = static_cast<unsigned char>(utf8[i++]);
    const int more = following(lead);
    char32_t code = more <= 0 ? lead : lead & (0x3fU >> static_cast<unsigned>(more));
    bool good = more >= 0;
    for (int k = 0; k < more; ++k) {
      good = i < utf8.size() && (static_cast<unsigned char>(utf8[i]) & 0xc0U) == 0x80U;
      if (!good) break;
      code = code << 6U | (static_cast<unsigned char>(utf8[i++]) & 0x3fU);
    }
    out += good ? code : U'\ufffd';
  }
  return out;
}

void append_utf8(std::string& out, char32_t code) {
  const auto byte = [&out](char32_t value) { out += static_cast<char>(static_cast<unsigned char>(value)); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xc0U | code >> 6U);
    byte(0x80U | (code & 0x3fU));
  } else if (code < 0x10000) {
    byte(0xe0U | code >> 12U);
    byte(0x80U | (code >> 6U & 0x3fU));
    byte(0x80U | (code & 0x3fU));
  } else {
    byte(0xf0U | code >> 18U);
    byte(0x80U | (code >> 12U & 0x3fU));
    byte(0x80U | (code >> 6U & 0x3fU));
    byte(0x80U | (code & 0x3fU));
  }
}

Screen::Screen(int width, int height)
    : width_(std::max(0, width)),
      height_(std::max(0, height)),
      cells_(static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_)) {}

int Screen::put(int x, int y, int most, std::string_view utf8, Role role) {
  if (most <= 0) return 0;
  const std::u32string codes = decode(utf8);
  int total = 0;
  for (const char32_t code : codes) total += columns_of(code);
  const int room = total <= most ? total : most - 1;  // the last column is for the truncation sign
  int taken = 0;
  for (const char32_t code : codes) {
    const int wide = columns_of(code);
    if (wide == 0) continue;
    if (taken + wide > room) break;
    put(x + taken, y, code, role);
    if (wide == 2) put(x + taken + 1, y, char32_t{0}, role);
    taken += wide;
  }
  if (total > most) put(x + taken++, y, U'…', role);
  return taken;
}

void Screen::put_right(int end, int y, int most, std::string_view utf8, Role role) {
  put(end - std::min(columns_of(utf8), std::max(0, most)), y, most, utf8, role);
}

void Screen::put(int x, int y, char32_t code, Role role) {
  if (inside(x, y) && at(x, y).written) ++overwritten_;
  over(x, y, code, role);
}

void Screen::over(int x, int y, char32_t code, Role role) {
  if (!inside(x, y)) {
    ++outside_;
    return;
  }
  Cell& cell = cells_[index(x, y)];
  cell.code = code;
  cell.role = role;
  cell.written = true;
}

void Screen::select(const Rect& rect) {
  for (int y = std::max(0, rect.y); y < std::min(height_, rect.bottom()); ++y)
    for (int x = std::max(0, rect.x); x < std::min(width_, rect.right()); ++x) cells_[index(x, y)].selected = true;
}

void Screen::link(const Rect& rect, Link link) {
  if (!rect.empty()) links_.emplace_back(rect, std::move(link));
}

const Link* Screen::link_at(int x, int y) const {
  const auto it = std::find_if(links_.rbegin(), links_.rend(), [&](const auto& l) { return l.first.holds(x, y); });
  return it == links_.rend() ? nullptr : &it->second;
}

void Screen::clear(const Rect& rect) {
  for (int y = std::max(0, rect.y); y < std::min(height_, rect.bottom()); ++y)
    for (int x = std::max(0, rect.x); x < std::min(width_, rect.right()); ++x) {
      // Do not leave half of a wide character.
      if (x == rect.x && x > 0 && cells_[index(x, y)].code == 0) cells_[index(x - 1, y)].code = U' ';
      cells_[index(x, y)] = Cell{};
      if (x + 1 == rect.right() && x + 1 < width_ && cells_[index(x + 1, y)].code == 0)
        cells_[index(x + 1, y)].code = U' ';
    }
}

std::string Screen::text() const {
  std::string out;
  for (int y = 0; y < height_; ++y) {
    int end = width_;
    while (end > 0 && at(end - 1, y).code == U' ') --end;
    for (int x = 0; x < end; ++x)
      if (at(x, y).code != 0) append_utf8(out, at(x, y).code);
    out += '\n';
  }
  return out;
}

}  // namespace vramtrack::top
