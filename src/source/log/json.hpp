// JSON in logs: values as trees of our own, since the JSON library costs seconds of compile time per file, and the
// common parts of the formats based on it. A log is a stream of objects, one per line, pretty-printed, in an array or
// as consecutive documents, possibly with lines of plain text between them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/units.hpp"
#include "source/log/format.hpp"
#include "source/log/rows.hpp"

namespace vramtrack {

/// A value that is read completely and never changed.
class JsonValue {
 public:
  enum class Kind : std::uint8_t { null, boolean, number, string, array, object };

  /// nullopt if `text` is not JSON, or is nested more than 64 levels deep.
  static std::optional<JsonValue> parse(std::string_view text);

  [[nodiscard]] bool is_null() const { return kind_ == Kind::null; }
  [[nodiscard]] bool is_number() const { return kind_ == Kind::number; }
  [[nodiscard]] bool is_string() const { return kind_ == Kind::string; }
  [[nodiscard]] bool is_array() const { return kind_ == Kind::array; }
  [[nodiscard]] bool is_object() const { return kind_ == Kind::object; }
  /// 0 if it is not a number.
  [[nodiscard]] double number() const { return number_; }
  /// The characters of a string, the digits of a number (six decimal places); empty for others.
  [[nodiscard]] const std::string& text() const { return text_; }
  /// The number if it is whole and written without a point.
  [[nodiscard]] std::optional<std::int64_t> whole() const;
  /// The members of an object (by key) or array (in order); the keys of an array are empty.
  [[nodiscard]] const std::vector<std::pair<std::string, JsonValue>>& members() const { return members_; }
  /// The member of an object with this name; nullptr if there is none.
  [[nodiscard]] const JsonValue* find(std::string_view key) const;

 private:
  struct Reader;

  Kind kind_ = Kind::null;
  double number_ = 0;
  std::string text_;
  std::vector<std::pair<std::string, JsonValue>> members_;
};

/// Whether nothing but times and brackets precedes the first object of `head`.
bool is_json(std::string_view head);

/// Whether `head` is nothing but times and objects, at least one of which is in an array or spans lines: its lines have
/// no meaning of their own.
bool is_json_document(std::string_view head);

/// `text` as a JSON string (core/json_text.hpp).
std::string json_string(std::string_view text);

/// An object of numbers, written on one line with its newline.
std::string json_line(const std::map<std::string, double>& numbers);

/// Passes on one object after another, regardless of line breaks, so that a log of any size takes only the memory of
/// its largest object: at most 16 MiB.
class JsonParser : public LogParser {
 public:
  static constexpr std::size_t kMostObjectBytes = 16 * kBytesPerMiB;

  std::uint64_t parse(std::string_view lines, std::uint64_t first_line, bool complete, LogRows& rows) final;
  void finish(LogRows& rows) override;
  [[nodiscard]] bool has_long_lines() const final { return true; }

 protected:
  /// Passes on only the elements of the array under this key, and skips everything outside it: a complete result may be
  /// one object that is too large for memory.
  void read_array(std::string_view key) { array_key_ = key; }
  /// Receives a complete object, which began on `line`.
  virtual void read_object(const JsonValue& object, std::uint64_t line, LogRows& rows) = 0;
  /// Receives a line, or its part outside objects; never blank or only brackets and commas. `whole` is false for a last
  /// line without a newline.
  virtual void read_text(std::string_view text, std::uint64_t line, bool whole, LogRows& rows);
  /// Called at a bracket that closes an array of objects.
  virtual void end_array(LogRows& /*rows*/) {}
  /// Repairs an object that is not valid JSON, if its writer is known to make mistakes; empty if it cannot be repaired.
  [[nodiscard]] virtual std::string mended(std::string_view /*object*/) const { return {}; }
  /// Whether a malformed object belongs to this format, not to another program.
  [[nodiscard]] virtual bool is_own(std::string_view /*object*/) const { return true; }
  /// Whether objects always start their own line: then a brace after other text on its line belongs to that text.
  [[nodiscard]] virtual bool begins_lines() const { return false; }

 private:
  void take_outside(char c, std::uint64_t line, LogRows& rows);
  void take_around(char c);
  [[nodiscard]] bool begins_another(char c) const;
  void take_inside(char c, std::uint64_t line, LogRows& rows);
  void begin_object(std::uint64_t line);
  [[nodiscard]] bool has_text() const;
  void end_text(std::uint64_t line, bool whole, LogRows& rows);

  std::string array_key_;
  bool in_array_ = false;    ///< inside the brackets of that array
  std::string last_string_;  ///< outside the array: the last key
  std::string text_;         ///< outside of objects: the current line
  std::string object_;
  std::uint64_t object_line_ = 0;
  std::uint64_t last_line_ = 1;
  int depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
};

}  // namespace vramtrack
