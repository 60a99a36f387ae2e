// JsonCursor: reads JSON from front to back. The caller reads the members it expects and skips the rest.
#pragma once

#include <string>
#include <string_view>

namespace vramtrack::fleet {

/// Each function skips white space first. If the next value is of another type, it returns false and does not advance.
class JsonCursor {
 public:
  explicit JsonCursor(std::string_view text) : text_(text) {}

  bool take(char c);
  /// Reads a string and resolves its escapes. Invalid UTF-8 is kept.
  bool text(std::string& out);
  /// Reads a number; null counts as NaN (VictoriaMetrics writes it for a missing value).
  bool number(double& out);
  bool truth(bool& out);
  /// Skips any value, nested in at most 64 arrays and objects.
  bool skip(int depth = 0);
  bool at_end();
  [[nodiscard]] std::size_t offset() const { return at_; }

  /// Calls member(key), which must read the value, for each member of an object. False: no object, or a member failed.
  template <class Member>
  bool object(Member member) {
    if (!take('{')) return false;
    if (take('}')) return true;
    std::string key;
    do {
      if (!text(key) || !take(':') || !member(key)) return false;
    } while (take(','));
    return take('}');
  }
  /// Calls element() for each element of an array, likewise.
  template <class Element>
  bool array(Element element) {
    if (!take('[')) return false;
    if (take(']')) return true;
    do {
      if (!element()) return false;
    } while (take(','));
    return take(']');
  }

 private:
  void skip_space();
  bool word(std::string_view word);

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace vramtrack::fleet
