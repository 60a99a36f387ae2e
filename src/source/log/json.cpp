#include "source/log/json.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/json.hpp"
#include "core/json_text.hpp"
#include "source/log/messages.hpp"
#include "source/log/text.hpp"

namespace vramtrack {

struct JsonValue::Reader {
  static JsonValue take(const Json& from) {
    JsonValue to;
    if (from.is_object()) {
      to.kind_ = Kind::object;
      to.members_.reserve(from.size());
      for (const auto& [key, value] : from.items()) to.members_.emplace_back(key, take(value));
      std::sort(to.members_.begin(), to.members_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    } else if (from.is_array()) {
      to.kind_ = Kind::array;
      to.members_.reserve(from.size());
      for (const Json& value : from) to.members_.emplace_back(std::string(), take(value));
    } else if (from.is_string()) {
      to.kind_ = Kind::string;
      to.text_ = from.text();
    } else if (from.is_number()) {
      to.kind_ = Kind::number;
      to.number_ = from.get<double>();
      to.text_ = from.is_number_integer() ? json_text(from) : fmt::format("{:.6f}", to.number_);
    } else if (from.is_boolean()) {
      to.kind_ = Kind::boolean;
    }
    return to;
  }
};

std::optional<JsonValue> JsonValue::parse(std::string_view text) {
  const auto read = Json::parse(text);
  return read ? std::optional(Reader::take(*read)) : std::nullopt;
}

std::optional<std::int64_t> JsonValue::whole() const {
  return is_number() ? logtext::whole_number<std::int64_t>(text_) : std::nullopt;
}

const JsonValue* JsonValue::find(std::string_view key) const {
  if (!is_object()) return nullptr;
  const auto it = std::find_if(members_.begin(), members_.end(), [key](const auto& m) { return m.first == key; });
  return it == members_.end() ? nullptr : &it->second;
}

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

std::string json_line(const std::map<std::string, double>& numbers) {
  Json line = Json::object();
  for (const auto& [name, number] : numbers) line[name] = number;
  return json_text(line) + '\n';
}

namespace {

constexpr std::size_t kMostKeyBytes = 64;
constexpr std::size_t kMostTextBytes = 64 * kBytesPerKiB;

/// Tracks a string, which does not span lines. Returns whether `c` is one of its plain characters.
bool is_in_string(char c, bool& in_string, bool& escaped) {
  if (escaped) {
    escaped = false;
  } else if (c == '\\') {
    escaped = true;
  } else if (c == '"' || c == '\n') {
    in_string = false;
  } else {
    return true;
  }
  return false;
}

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
  if (reports_out_of_memory(text)) return rows.out_of_memory(text);
  if (reports_lost_gpu(text)) return rows.device_lost(text);
  if (reports_end(text)) rows.program_ended(text);
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

/// Outside the array, only the last key matters.
void JsonParser::take_around(char c) {
  if (in_string_) {
    if (is_in_string(c, in_string_, escaped_) && last_string_.size() < kMostKeyBytes) last_string_ += c;
  } else if (c == '"') {
    in_string_ = true;
    last_string_.clear();
  } else if (c == '[') {
    in_array_ = last_string_ == array_key_;
    last_string_.clear();
  }
}

/// Whether an object that starts on a separate line cannot be part of the current one, because a value can only follow
/// one of three characters. The current object was then truncated.
bool JsonParser::begins_another(char c) const {
  if (c != '{' || in_string_ || object_.back() != '\n') return false;
  const char before = object_[object_.find_last_not_of(" \t\r\n")];
  return before != ',' && before != '[' && before != ':';
}

/// Tracks braces and strings to find the end of an object.
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
    is_in_string(c, in_string_, escaped_);
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
