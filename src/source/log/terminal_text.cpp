#include "source/log/terminal_text.hpp"

#include <algorithm>

#include "source/log/text.hpp"

namespace vramtrack {
namespace {

constexpr char kEscape = '\x1b';
constexpr std::size_t kMostRows = 300;
constexpr std::size_t kMostColumns = 500;
/// `watch` writes the time into the first row: moving the cursor there begins a new picture.
constexpr std::size_t kHeaderRows = 3;

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xc0U) == 0x80;
}

}  // namespace

bool TerminalText::draws_screen(std::string_view start) {
  for (std::size_t at = start.find("\x1b["); at != std::string_view::npos; at = start.find("\x1b[", at + 1)) {
    std::size_t end = at + 2;
    while (end < start.size() && (logtext::is_digit(start[end]) || start[end] == ';' || start[end] == '?')) ++end;
    if (end == start.size()) return false;
    const std::string_view parameters = start.substr(at + 2, end - at - 2);
    if (start[end] == 'h' && (parameters == "?1049" || parameters == "?47")) return true;
    // Moving home is not enough: `clear` moves home and clears between texts.
    const bool home = parameters.empty() || parameters == "1;1" || parameters == "0;0" || parameters == "1";
    if ((start[end] == 'H' || start[end] == 'f' || start[end] == 'd') && !home) return true;
  }
  return false;
}

void TerminalText::feed(std::string_view bytes, std::string& out) {
  for (const char c : bytes) switch (state_) {
      case State::text:
        take_text(c, out);
        break;
      case State::escape:
        take_escape(c);
        break;
      case State::sequence:
        if (c >= 0x40 && c <= 0x7e) {
          state_ = State::text;
          run(c, out);
        } else if (parameters_.size() < 64) {
          parameters_ += c;
        }
        break;
      case State::title:
        if (c == '\a' || c == '\n') state_ = State::text;
        if (c == kEscape) state_ = State::title_escape;
        break;
      case State::title_escape:
        state_ = c == '\\' ? State::text : State::title;
        break;
      case State::skip_one:
        state_ = State::text;
        break;
    }
}

void TerminalText::finish(std::string& out) {
  if (screen_ && parked_) give_picture(out);
}

void TerminalText::take_text(char c, std::string& out) {
  if (c == kEscape) {
    state_ = State::escape;
  } else if (!screen_) {
    out += c;
    line_begun_ = c != '\n';
  } else if (c == '\r') {
    at_column_ = 0;
  } else if (c == '\n') {
    line_feed();
  } else if (c == '\b') {
    if (at_column_ > 0) --at_column_;
  } else if (c == '\t') {
    at_column_ = std::min((at_column_ / 8 + 1) * 8, kMostColumns - 1);
  } else if (static_cast<unsigned char>(c) >= 0x20) {
    put(c);
  }
}

void TerminalText::take_escape(char c) {
  state_ = State::text;
  if (c == '[') {
    state_ = State::sequence;
    parameters_.clear();
  } else if (c == ']' || c == 'P' || c == '^' || c == '_') {
    state_ = State::title;
  } else if (c == '(' || c == ')' || c == '*' || c == '+' || c == '#' || c == '%') {
    state_ = State::skip_one;
  } else if (c == 'M' && at_row_ > 0) {
    --at_row_;
  }
}

/// The parameter at `at`, counted from 0.
std::size_t TerminalText::number(std::size_t at, std::size_t missing) const {
  std::string_view rest = parameters_;
  for (; at > 0; --at) {
    const std::size_t semicolon = rest.find(';');
    if (semicolon == std::string_view::npos) return missing;
    rest.remove_prefix(semicolon + 1);
  }
  const auto value = logtext::whole_number<unsigned>(rest.substr(0, rest.find(';')));
  return value ? std::min<std::size_t>(*value, kMostColumns) : missing;
}

void TerminalText::run(char command, std::string& out) {
  if (screen_) return run_on_screen(command, out);
  const std::string_view moves = "HfdABEFJ";
  if (command == 'C') {
    out.append(std::min<std::size_t>(number(0, 1), 200), ' ');
  } else if (command == 'G') {
    out += ' ';
  } else if (moves.find(command) != std::string_view::npos && line_begun_) {
    out += '\n';  // the following text is elsewhere on the screen
    line_begun_ = false;
  }
}

void TerminalText::run_on_screen(char command, std::string& out) {
  const std::size_t n = std::max<std::size_t>(number(0, 1), 1);
  std::vector<Cell>* cells = nullptr;
  const auto here = [&]() -> std::vector<Cell>& {
    if (cells == nullptr) cells = &row();
    if (cells->size() < at_column_) cells->resize(at_column_);
    changed_ = true;
    return *cells;
  };
  switch (command) {
    case 'H':
    case 'f':
      return move_to(n - 1, std::max<std::size_t>(number(1, 1), 1) - 1, out);
    case 'd':
      return move_to(n - 1, at_column_, out);
    case 'A':
    case 'F':
      return move_to(at_row_ - std::min(at_row_, n), command == 'F' ? 0 : at_column_, out);
    case 'B':
    case 'E':
      return move_to(at_row_ + n, command == 'E' ? 0 : at_column_, out);
    case 'C':
      return move_to(at_row_, at_column_ + n, out);
    case 'D':
      return move_to(at_row_, at_column_ - std::min(at_column_, n), out);
    case 'G':
    case '`':
      return move_to(at_row_, n - 1, out);
    case 'J':
      return erase_display(number(0, 0), out);
    case 'K': {
      const std::size_t how = number(0, 0);
      auto& line = here();
      if (how == 0 && line.size() > at_column_) line.resize(at_column_);
      if (how == 2) line.clear();
      if (how == 1) std::fill_n(line.begin(), std::min(line.size(), at_column_ + 1), Cell());
      return;
    }
    case 'X':
    case 'P':
    case '@': {
      auto& line = here();
      const auto from = line.begin() + static_cast<std::ptrdiff_t>(at_column_);
      const auto count = static_cast<std::ptrdiff_t>(std::min(n, line.size() - at_column_));
      if (command == 'X') std::fill(from, from + count, Cell());
      if (command == 'P') line.erase(from, from + count);
      if (command == '@') line.insert(from, n, Cell());
      if (line.size() > kMostColumns) line.resize(kMostColumns);
      return;
    }
    case 'b': {
      const Cell last = at_column_ > 0 && at_column_ <= row().size() ? row()[at_column_ - 1] : Cell();
      if (last.size() == 1)
        for (std::size_t i = 0; i < n; ++i) put(last.front());
      return;
    }
    case 'L':
    case 'M': {
      here();
      const auto from = rows_.begin() + static_cast<std::ptrdiff_t>(at_row_);
      if (command == 'L')
        rows_.insert(from, std::min(n, kMostRows), {});
      else
        rows_.erase(from, from + static_cast<std::ptrdiff_t>(std::min(n, rows_.size() - at_row_)));
      if (rows_.size() > kMostRows) rows_.resize(kMostRows);
      return;
    }
    case 'r':
      height_ = std::clamp<std::size_t>(number(1, kMostRows), 1, kMostRows);
      return;
    case 'l':
      if (parameters_ == "?1049" || parameters_ == "?47") erase_display(2, out);
      return;
    default:
      return;
  }
}

void TerminalText::erase_display(std::size_t how, std::string& out) {
  if (how >= 2) {
    give_picture(out);
    rows_.clear();
  } else if (how == 0) {
    if (row().size() > at_column_) row().resize(at_column_);
    rows_.resize(at_row_ + 1);
    changed_ = true;
  }
}

/// A picture ends when the cursor moves up again: from where it was parked, or to the first rows.
void TerminalText::move_to(std::size_t to_row, std::size_t to_column, std::string& out) {
  if (to_row < at_row_ && (parked_ || to_row < kHeaderRows)) give_picture(out);
  at_row_ = std::min(to_row, kMostRows - 1);
  at_column_ = std::min(to_column, kMostColumns - 1);
  parked_ = true;
}

std::vector<TerminalText::Cell>& TerminalText::row() {
  if (rows_.size() <= at_row_) rows_.resize(at_row_ + 1);
  return rows_[at_row_];
}

void TerminalText::put(char c) {
  std::vector<Cell>& line = row();
  if (is_continuation(c)) {
    if (at_column_ > 0 && at_column_ <= line.size() && line[at_column_ - 1].size() < 4) line[at_column_ - 1] += c;
    return;
  }
  if (at_column_ >= kMostColumns) return;
  if (line.size() <= at_column_) line.resize(at_column_ + 1);
  line[at_column_++] = c;
  changed_ = true;
  parked_ = false;
}

void TerminalText::line_feed() {
  if (at_row_ + 1 < height_) {
    ++at_row_;
  } else if (!rows_.empty()) {
    rows_.erase(rows_.begin());
    changed_ = true;
  }
}

void TerminalText::give_picture(std::string& out) {
  if (!changed_) return;
  changed_ = false;
  std::string picture;
  for (const std::vector<Cell>& line : rows_) {
    for (const Cell& cell : line) picture += cell.empty() ? " " : cell;
    picture.erase(picture.find_last_not_of(' ') + 1);
    picture += '\n';
  }
  if (picture == last_picture_) return;
  out += picture;
  last_picture_ = std::move(picture);
}

}  // namespace vramtrack
