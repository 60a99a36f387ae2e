#include "gate/marks.hpp"

#include <algorithm>

#include "core/number_text.hpp"

namespace vramtrack::gate {
namespace {

constexpr std::size_t kMostLine = 512;

bool is_word(std::string_view word) {
  return !word.empty() && word.size() <= 64 && std::all_of(word.begin(), word.end(), [](char c) {
    return static_cast<unsigned char>(c) > ' ' && c != '\x7f';
  });
}

std::string_view take_word(std::string_view& line) {
  const std::size_t end = line.find(' ');
  const std::string_view word = line.substr(0, end);
  line = end == std::string_view::npos ? std::string_view() : line.substr(end + 1);
  return word;
}

}  // namespace

std::optional<Mark> parse_mark(std::string_view line) {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  Mark mark;
  const std::string_view name = take_word(line);
  if (!is_word(name)) return std::nullopt;
  mark.name = name;
  if (line.empty()) return mark;
  const auto bytes = parse_number<std::uint64_t>(take_word(line));
  if (!bytes) return std::nullopt;
  mark.used_bytes = static_cast<double>(*bytes);
  if (line.empty()) return mark;
  if (!is_word(line)) return std::nullopt;
  mark.key = line;
  return mark;
}

std::vector<Mark> MarkReader::read(std::string_view bytes) {
  std::vector<Mark> marks;
  for (std::size_t newline = bytes.find('\n'); newline != std::string_view::npos; newline = bytes.find('\n')) {
    rest_ += bytes.substr(0, newline);
    bytes.remove_prefix(newline + 1);
    auto mark = too_long_ || rest_.size() > kMostLine ? std::nullopt : parse_mark(rest_);
    if (mark)
      marks.push_back(std::move(*mark));
    else
      ++skipped_;
    rest_.clear();
    too_long_ = false;
  }
  if (rest_.size() + bytes.size() > kMostLine) {
    too_long_ = true;
    rest_.clear();
  } else if (!too_long_) {
    rest_ += bytes;
  }
  return marks;
}

}  // namespace vramtrack::gate
