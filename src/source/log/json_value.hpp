// A JSON value as a tree of our own: including the JSON library costs seconds of compile time in each file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vramtrack {

/// Read as a whole and never changed.
class JsonValue {
 public:
  enum class Kind : std::uint8_t { null, boolean, number, string, array, object };

  /// nullopt when `text` is not JSON, or is nested more than 64 deep.
  static std::optional<JsonValue> parse(std::string_view text);

  [[nodiscard]] bool is_null() const { return kind_ == Kind::null; }
  [[nodiscard]] bool is_number() const { return kind_ == Kind::number; }
  [[nodiscard]] bool is_string() const { return kind_ == Kind::string; }
  [[nodiscard]] bool is_array() const { return kind_ == Kind::array; }
  [[nodiscard]] bool is_object() const { return kind_ == Kind::object; }
  /// 0 when it is not a number.
  [[nodiscard]] double number() const { return number_; }
  /// The characters of a string, the digits of a number (six places after the point); empty for others.
  [[nodiscard]] const std::string& text() const { return text_; }
  /// The number if it is whole and written without a point.
  [[nodiscard]] std::optional<std::int64_t> whole() const;
  /// The members of an object (by key) or array (in order); the keys of an array are empty.
  [[nodiscard]] const std::vector<std::pair<std::string, JsonValue>>& members() const { return members_; }
  /// The member of an object; nullptr when it has none of this name.
  [[nodiscard]] const JsonValue* find(std::string_view key) const;

 private:
  struct Reader;

  Kind kind_ = Kind::null;
  double number_ = 0;
  std::string text_;
  std::vector<std::pair<std::string, JsonValue>> members_;
};

/// An object of numbers, written on one line with its newline.
std::string json_line(const std::map<std::string, double>& numbers);

}  // namespace vramtrack
