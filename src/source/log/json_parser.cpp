#include "source/log/json_parser.hpp"

#include "source/log/end_message.hpp"
#include "source/log/lost_message.hpp"
#include "source/log/oom_message.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kMostKeyBytes = 64;
constexpr std::size_t kMostTextBytes = 64 * kBytesPerKiB;

}  // namespace

std::uint64_t JsonParser::parse(std::string_view lines, std::uint64_t first_line, bool /*complete*/, LogRows& rows) {
  std::uint64_t line = first_line;
  for (const char c : lines) {
    if (depth_ > 0)
      take_inside(c, line, rows);
    else if (!array_key_.empty() && !in_array_)
      take_around(c);
    else
      take_outside(c, line, rows);
    if (c == '\n') ++line;
  }
  last_line_ = line;
  return line;
}

void JsonParser::finish(LogRows& rows) {
  if (depth_ > 0 && is_own(object_)) rows.skip(object_line_, "a JSON object that does not end (the log was cut off)");
  depth_ = 0;
  end_text(last_line_, false, rows);
}

void JsonParser::read_text(std::string_view text, std::uint64_t line, bool /*whole*/, LogRows& rows) {
  if (tells_out_of_memory(text)) return rows.out_of_memory(text);
  if (tells_lost_gpu(text)) return rows.device_lost(text);
  if (tells_end(text)) rows.program_ended(text);
  rows.skip(line, "text outside the JSON objects");
}

void JsonParser::begin_object(std::uint64_t line) {
  object_ = "{";
  object_line_ = line;
  depth_ = 1;
  in_string_ = escaped_ = false;
}

void JsonParser::take_outside(char c, std::uint64_t line, LogRows& rows) {
  if (c == '{' && !(begins_lines() && has_text())) {
    end_text(line, true, rows);
    return begin_object(line);
  }
  if (!array_key_.empty()) {
    if (c == ']') in_array_ = false;
    return;
  }
  if (c == '\n') return end_text(line, true, rows);
  if (c == ']' && !has_text()) end_array(rows);
  if (text_.size() < kMostTextBytes) text_ += c;
}

bool JsonParser::has_text() const {
  return text_.find_first_not_of(" \t\r,[]") != std::string::npos;
}

void JsonParser::end_text(std::uint64_t line, bool whole, LogRows& rows) {
  if (has_text()) {
    std::string_view text = logtext::trim(text_);
    read_text(text, line, whole, rows);
  }
  text_.clear();
}

/// Around the array, only the last key matters.
void JsonParser::take_around(char c) {
  if (in_string_) {
    if (escaped_)
      escaped_ = false;
    else if (c == '\\')
      escaped_ = true;
    else if (c == '"' || c == '\n')
      in_string_ = false;
    else if (last_string_.size() < kMostKeyBytes)
      last_string_ += c;
  } else if (c == '"') {
    in_string_ = true;
    last_string_.clear();
  } else if (c == '[') {
    in_array_ = last_string_ == array_key_;
    last_string_.clear();
  }
}

/// Whether an object that begins on a line of its own cannot be part of the present one, because a value can only
/// follow one of three characters. Then the present object was cut off.
bool JsonParser::begins_another(char c) const {
  if (c != '{' || in_string_ || object_.back() != '\n') return false;
  const char before = object_[object_.find_last_not_of(" \t\r\n")];
  return before != ',' && before != '[' && before != ':';
}

/// Follows braces and strings to find the end of an object.
void JsonParser::take_inside(char c, std::uint64_t line, LogRows& rows) {
  if (begins_another(c)) {
    if (is_own(object_)) rows.skip(object_line_, "a JSON object that does not end");
    return begin_object(line);
  }
  object_ += c;
  if (object_.size() > kMostObjectBytes) {
    rows.skip(object_line_, "a JSON object of more than 16 MiB");
    depth_ = 0;
    object_.clear();
    return;
  }
  if (in_string_) {
    if (escaped_)
      escaped_ = false;
    else if (c == '\\')
      escaped_ = true;
    else if (c == '"' || c == '\n')
      in_string_ = false;  // JSON strings end before the line does
    return;
  }
  if (c == '"') {
    in_string_ = true;
  } else if (c == '{') {
    ++depth_;
  } else if (c == '}' && --depth_ == 0) {
    rows.line = object_line_;
    auto object = JsonValue::parse(object_);
    if (!object) object = JsonValue::parse(mended(object_));
    if (object)
      read_object(*object, object_line_, rows);
    else if (is_own(object_))
      rows.skip(object_line_, "not valid JSON");
    object_.clear();
  }
}

}  // namespace vramtrack
