// JsonText: writes JSON as a string, including commas and escapes. For exports of any size; no tree is built.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace vramtrack {

/// Appends `text` in quotes. Control characters other than \n and \t become '?': as escapes they would control a
/// terminal once they are decoded. Bytes that are not UTF-8 stay. O(n).
void append_json_string(std::string& out, std::string_view text);

/// begin/end calls must match; inside an object, each value follows a key(). Bytes that are not UTF-8 become U+FFFD.
class JsonText {
 public:
  JsonText& begin_object() { return open('{'); }
  JsonText& end_object() { return close('}'); }
  JsonText& begin_array() { return open('['); }
  JsonText& end_array() { return close(']'); }
  JsonText& key(std::string_view name);
  JsonText& value(std::string_view text);
  JsonText& value(const char* text) { return value(std::string_view(text)); }
  JsonText& value(bool yes);
  /// "null" for NaN and infinity.
  JsonText& value(double number);
  template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) JsonText& value(T number) {
    separate();
    text_ += std::to_string(number);
    return *this;
  }
  JsonText& null();
  template <class T>
  JsonText& field(std::string_view name, const T& its_value) {
    return key(name).value(its_value);
  }
  /// Inserts a line break here, for people.
  JsonText& newline();

  [[nodiscard]] const std::string& text() const { return text_; }
  std::string take() { return std::move(text_); }

 private:
  JsonText& open(char bracket);
  JsonText& close(char bracket);
  void separate();

  std::string text_;
  bool needs_comma_ = false;
};

}  // namespace vramtrack
