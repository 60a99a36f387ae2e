#include "core/wrap.hpp"

#include <algorithm>

namespace vramtrack {
namespace {

constexpr std::size_t kMostLabel = 24;  ///< a moment and the gap after it take 22 columns
constexpr std::size_t kIndent = 4;      ///< for lines indented below a line without a label

bool is_blank(char c) {
  return c == ' ';
}

/// The length in bytes of the colour code that begins at `at`; 0 if there is none.
std::size_t colour_code(std::string_view text, std::size_t at) {
  if (text.substr(at, 2) != "\033[") return 0;
  const std::size_t end = text.find('m', at);
  return end == std::string_view::npos ? 0 : end + 1 - at;
}

/// Calls `see(at, column)` for each character until it returns false; continuation bytes belong to their character.
template <class See>
void each_character(std::string_view text, See see) {
  std::size_t column = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (const std::size_t code = colour_code(text, at); code > 0) {
      at += code;
      continue;
    }
    const bool begins = (static_cast<unsigned char>(text[at]) & 0xc0U) != 0x80U;
    if (begins && !see(at, column)) return;
    if (begins) ++column;
    ++at;
  }
}

/// The column at which the continuation of `line` begins: after its label, which ends with a gap of two spaces.
std::size_t hanging_indent(std::string_view line) {
  const auto first = static_cast<std::size_t>(std::find_if_not(line.begin(), line.end(), is_blank) - line.begin());
  std::size_t behind_label = 0;
  std::size_t spaces = 0;
  each_character(line.substr(first), [&](std::size_t at, std::size_t column) {
    if (is_blank(line[first + at])) {
      ++spaces;
      return true;
    }
    if (spaces > 1) behind_label = first + column;
    spaces = 0;
    return behind_label == 0 && first + column <= kMostLabel;
  });
  return behind_label > 0 && behind_label <= kMostLabel ? behind_label : first + kIndent;
}

/// How many bytes of `rest` fit on a line of `room` columns: all, or up to a space between two words.
std::size_t bytes_that_fit(std::string_view rest, std::size_t room) {
  std::size_t space = 0;
  bool in_text = false;
  bool overflows = false;
  each_character(rest, [&](std::size_t at, std::size_t column) {
    if (is_blank(rest[at])) {
      if (in_text) space = at;
    } else {
      in_text = true;
      overflows = overflows || column >= room;
    }
    return !overflows || space == 0;
  });
  return overflows && space > 0 ? space : rest.size();
}

void wrap_line(std::string_view line, std::size_t width, std::string& out) {
  const std::size_t indent = std::min(hanging_indent(line), width / 2);
  for (std::size_t room = width;;) {
    const std::size_t taken = bytes_that_fit(line, room);
    std::string_view part = line.substr(0, taken);
    line.remove_prefix(taken);
    while (part.ends_with(' ')) part.remove_suffix(1);
    out += part;
    while (line.starts_with(' ')) line.remove_prefix(1);
    if (line.empty()) return;
    out += '\n' + std::string(indent, ' ');
    room = width - indent;
  }
}

}  // namespace

std::string wrap(std::string_view text, std::size_t width) {
  if (width == 0) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    wrap_line(text.substr(0, end), width, out);
    if (end == std::string_view::npos) break;
    out += '\n';
    text.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace vramtrack
