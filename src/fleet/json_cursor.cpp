#include "fleet/json_cursor.hpp"

#include <charconv>
#include <cstdint>
#include <limits>

namespace vramtrack::fleet {
namespace {

constexpr int kDeepest = 64;

void put_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&out](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) return put(code);
  if (code < 0x800) return put(0xc0 | code >> 6), put(0x80 | (code & 0x3f));
  if (code < 0x10000) return put(0xe0 | code >> 12), put(0x80 | (code >> 6 & 0x3f)), put(0x80 | (code & 0x3f));
  put(0xf0 | code >> 18);
  put(0x80 | (code >> 12 & 0x3f));
  put(0x80 | (code >> 6 & 0x3f));
  put(0x80 | (code & 0x3f));
}

bool hex4(std::string_view text, std::size_t at, std::uint32_t& out) {
  if (at + 4 > text.size()) return false;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + at + 4, out, 16);
  return error == std::errc{} && end == text.data() + at + 4;
}

}  // namespace

void JsonCursor::skip_space() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
    ++at_;
}

bool JsonCursor::take(char c) {
  skip_space();
  if (at_ == text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}

bool JsonCursor::word(std::string_view word) {
  if (text_.substr(at_, word.size()) != word) return false;
  at_ += word.size();
  return true;
}

bool JsonCursor::text(std::string& out) {
  skip_space();
  out.clear();
  if (at_ == text_.size() || text_[at_] != '"') return false;
  for (std::size_t at = at_ + 1; at < text_.size(); ++at) {
    const char c = text_[at];
    if (c == '"') {
      at_ = at + 1;
      return true;
    }
    if (c != '\\') {
      out.push_back(c);
      continue;
    }
    if (++at == text_.size()) return false;
    constexpr std::string_view kEscapes = "\"\\/bfnrt";
    constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";
    if (const std::size_t known = kEscapes.find(text_[at]); known != std::string_view::npos) {
      out.push_back(kMeant[known]);
      continue;
    }
    std::uint32_t code = 0;
    if (text_[at] != 'u' || !hex4(text_, at + 1, code)) return false;
    at += 4;
    std::uint32_t low = 0;  // the second half of a surrogate pair
    if (code >= 0xd800 && code < 0xdc00 && text_.substr(at + 1, 2) == "\\u" && hex4(text_, at + 3, low) &&
        low >= 0xdc00 && low < 0xe000) {
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      at += 6;
    }
    put_utf8(out, code >= 0xd800 && code < 0xe000 ? 0xfffd : code);
  }
  return false;
}

bool JsonCursor::number(double& out) {
  skip_space();
  if (word("null")) {
    out = std::numeric_limits<double>::quiet_NaN();
    return true;
  }
  const char* const begin = text_.data() + at_;
  const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), out);
  if (error == std::errc::invalid_argument || end == begin) return false;
  if (error != std::errc{}) out = std::numeric_limits<double>::quiet_NaN();  // out of range: no amount of memory
  at_ += static_cast<std::size_t>(end - begin);
  return true;
}

bool JsonCursor::truth(bool& out) {
  skip_space();
  out = word("true");
  return out || word("false");
}

bool JsonCursor::skip(int depth) {
  if (depth > kDeepest) return false;
  skip_space();
  if (at_ == text_.size()) return false;
  std::string ignored;
  double unused = 0;
  bool either = false;
  switch (text_[at_]) {
    case '{':
      return object([&](const std::string&) { return skip(depth + 1); });
    case '[':
      return array([&] { return skip(depth + 1); });
    case '"':
      return text(ignored);
    case 't':
    case 'f':
      return truth(either);
    default:
      return number(unused);
  }
}

bool JsonCursor::at_end() {
  skip_space();
  return at_ == text_.size();
}

}  // namespace vramtrack::fleet
