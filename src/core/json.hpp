// Json: a JSON value, to build, write and read. nlohmann's takes seconds to compile in each file that includes it, so
// it is used for parsing only, in json.cpp alone.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <ranges>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/result.hpp"

namespace vramtrack {

class JsonItem;

/// Thrown by get() and at() when a member is missing or has another type.
class JsonMismatch : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Null, true or false, a number, a text, an array, or an object whose members keep their order. Finding a member of an
/// object costs O(members).
class Json {
 public:
  using Members = std::vector<std::pair<std::string, Json>>;

  Json() = default;
  Json(std::nullptr_t) {}                              // NOLINT(google-explicit-constructor): as the values themselves
  Json(std::string text) : value_(std::move(text)) {}  // NOLINT(google-explicit-constructor)
  template <class T>
  requires std::same_as<T, bool> Json(T yes) : value_(yes) {}  // NOLINT(google-explicit-constructor)
  template <class T>
  requires(std::integral<T> && !std::same_as<T, bool>) Json(T whole)  // NOLINT(google-explicit-constructor)
      : value_(static_cast<std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>(whole)) {}
  template <class T>
  requires std::floating_point<T> Json(T number)  // NOLINT(google-explicit-constructor)
      : value_(static_cast<double>(number)) {}
  template <class T>
  requires(std::convertible_to<const T&, std::string_view> && !std::same_as<T, std::string>)
      Json(const T& text)  // NOLINT(google-explicit-constructor)
      : value_(std::string(std::string_view(text))) {}
  /// An array of the values of a list.
  template <class T>
  requires(std::ranges::range<const T> && !std::convertible_to<const T&, std::string_view> && !std::same_as<T, Json>)
      Json(const T& list)  // NOLINT(google-explicit-constructor)
      : value_(std::vector<Json>()) {
    for (const auto& one : list) push_back(Json(one));
  }
  Json(const std::map<std::string, std::string>& texts);  // NOLINT(google-explicit-constructor)
  /// {{"a", 1}, {"b", {1, 2}}}: an object if each item is a pair that begins with a text, otherwise an array.
  Json(std::initializer_list<JsonItem> items);  // NOLINT(google-explicit-constructor)
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();

  static Json array();
  static Json object();
  /// An error if `text`, which may be untrusted, is not JSON or is nested more than 64 deep. It names the offset,
  /// counted from `begin`, where the text begins in its file. Of members with one name, the last counts. O(n log n).
  static Result<Json> parse(std::string_view text, std::size_t begin = 0);

  [[nodiscard]] bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  [[nodiscard]] bool is_boolean() const { return std::holds_alternative<bool>(value_); }
  [[nodiscard]] bool is_number() const { return is_number_integer() || std::holds_alternative<double>(value_); }
  /// Whether it was written without a decimal point.
  [[nodiscard]] bool is_number_integer() const {
    return is_number_unsigned() || std::holds_alternative<std::int64_t>(value_);
  }
  /// Whether it was parsed as a whole number without a sign.
  [[nodiscard]] bool is_number_unsigned() const { return std::holds_alternative<std::uint64_t>(value_); }
  [[nodiscard]] bool is_string() const { return std::holds_alternative<std::string>(value_); }
  [[nodiscard]] bool is_array() const { return std::holds_alternative<std::vector<Json>>(value_); }
  [[nodiscard]] bool is_object() const { return std::holds_alternative<Members>(value_); }

  /// The member of that name, created if missing; null becomes an object first. REQUIRES: an object or null.
  Json& operator[](std::string_view name);
  /// REQUIRES: an array of more than `index` values.
  Json& operator[](std::size_t index) { return std::get<std::vector<Json>>(value_)[index]; }
  const Json& operator[](std::size_t index) const { return std::get<std::vector<Json>>(value_)[index]; }
  /// REQUIRES: an array or null, which becomes one.
  void push_back(Json value);
  Json& back() { return std::get<std::vector<Json>>(value_).back(); }
  /// Takes over the members of an object. REQUIRES: both are objects.
  void update(Json other);
  void erase(std::string_view name);

  /// nullptr if this is not an object, or has no such member.
  [[nodiscard]] const Json* find(std::string_view name) const;
  [[nodiscard]] const Json& at(std::string_view name) const;
  [[nodiscard]] const Json& at(std::size_t index) const;
  /// The number of elements of an array or members of an object; 0 for other types.
  [[nodiscard]] std::size_t size() const;
  /// The values of an array; none for other types.
  [[nodiscard]] std::vector<Json>::const_iterator begin() const { return values().begin(); }
  [[nodiscard]] std::vector<Json>::const_iterator end() const { return values().end(); }
  /// The members of an object; none for other types.
  [[nodiscard]] const Members& items() const;
  /// REQUIRES: an object.
  Members& items() { return std::get<Members>(value_); }

  /// The value as a T: a text, a truth value, a number within T's range, or a list or table of texts.
  template <class T>
  [[nodiscard]] T get() const {
    if constexpr (std::same_as<T, bool>) {
      return truth();
    } else if constexpr (std::integral<T>) {
      const bool fits = std::holds_alternative<std::int64_t>(value_)
                            ? std::in_range<T>(std::get<std::int64_t>(value_))
                            : is_number_unsigned() && std::in_range<T>(std::get<std::uint64_t>(value_));
      if (!fits) mismatch("a whole number within its range");
      return is_number_unsigned() ? static_cast<T>(std::get<std::uint64_t>(value_))
                                  : static_cast<T>(std::get<std::int64_t>(value_));
    } else if constexpr (std::floating_point<T>) {
      return static_cast<T>(number());
    } else if constexpr (std::same_as<T, std::string>) {
      return text();
    } else if constexpr (std::same_as<T, std::vector<std::string>>) {
      return texts();
    } else {
      static_assert(std::same_as<T, std::map<std::string, std::string>>);
      return text_table();
    }
  }
  /// The same for the member of that name, which an error names.
  template <class T>
  [[nodiscard]] T get(std::string_view name) const {
    const Json& member = at(name);
    try {
      return member.get<T>();
    } catch (const JsonMismatch& why) {
      throw JsonMismatch('"' + std::string(name) + "\": " + why.what());
    }
  }
  /// The same; `otherwise` if there is no such member.
  [[nodiscard]] std::string value(std::string_view name, std::string_view otherwise) const {
    return find(name) != nullptr ? get<std::string>(name) : std::string(otherwise);
  }
  [[nodiscard]] const std::string& text() const;
  [[nodiscard]] const std::vector<Json>& list() const;

 private:
  class Builder;
  class Writer;
  friend std::string json_text(const Json& value, int indent);

  [[noreturn]] static void mismatch(const char* expected);
  [[nodiscard]] const std::vector<Json>& values() const;
  [[nodiscard]] bool truth() const;
  [[nodiscard]] double number() const;
  [[nodiscard]] std::vector<std::string> texts() const;
  [[nodiscard]] std::map<std::string, std::string> text_table() const;

  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, std::vector<Json>, Members>
      value_;
};

/// One value in braces, which is moved out of it.
class JsonItem {
 public:
  template <class T>
  requires(!std::same_as<std::remove_cvref_t<T>, JsonItem> && std::convertible_to<T, Json>)
      JsonItem(T&& value)  // NOLINT(google-explicit-constructor)
      : value_(std::forward<T>(value)) {}
  JsonItem(std::initializer_list<JsonItem> items) : value_(items) {}

 private:
  friend class Json;
  mutable Json value_;
};

/// The text of that member; empty if there is none or it is not a text.
std::string text_in(const Json& object, std::string_view name);
/// Adds the member if its text is not empty.
void add_nonempty(Json& object, std::string_view name, const std::string& text);

/// A value as the text of a document that leaves the program: printable (core/printable.hpp), on one line, or indented
/// by this many spaces. Numbers have the fewest digits that are read back as the same number; one that is not finite
/// becomes null.
std::string json_text(const Json& value, int indent = -1);

}  // namespace vramtrack
