// JsonCursor: reads JSON from front to back, as far as the caller knows its form and skipping the rest.
#pragma once

#include <string>
#include <string_view>

namespace vramtrack::fleet {

/// Each function skips white space first, and returns false, without a move, where something else stands than it reads.
class JsonCursor {
 public:
  explicit JsonCursor(std::string_view text) : text_(text) {}

  bool take(char c);
  /// A text, with its escapes resolved. Bytes that are no UTF-8 stay as they are.
  bool text(std::string& out);
  /// A number; null counts as NaN (so VictoriaMetrics writes what has no value).
  bool number(double& out);
  bool truth(bool& out);
  /// Any value, not deeper than 64 arrays and objects.
  bool skip(int depth = 0);
  bool at_end();
  [[nodiscard]] std::size_t offset() const { return at_; }

  /// Calls member(key) for each member of an object, which has to read the value. False: no object, or a member failed.
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
  /// The same of an array: element().
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
