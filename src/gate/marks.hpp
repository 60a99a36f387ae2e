// Marks: the lines that a program writes, one at the end of each iteration (docs/leak-gate.md, "The protocol").
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vramtrack::gate {

/// One line: "NAME", "NAME BYTES" or "NAME BYTES KEY".
struct Mark {
  std::string name;
  std::optional<double> used_bytes;  ///< as measured by the program; nullopt if the reader has to measure it
  std::string key;                   ///< distinguishes several writers on one pipe; empty if there is only one
  friend bool operator==(const Mark&, const Mark&) = default;
};

/// Splits the bytes from a pipe into marks. Counts and skips lines that are not marks, because the other side may write
/// anything. Uses bounded memory. Not thread-safe.
class MarkReader {
 public:
  /// The marks in `bytes`, which continue an incomplete line from the previous call.
  std::vector<Mark> read(std::string_view bytes);
  [[nodiscard]] std::size_t skipped_lines() const { return skipped_; }

 private:
  std::string rest_;
  bool too_long_ = false;
  std::size_t skipped_ = 0;
};

/// Parses one line without its newline; nullopt if it is not a mark. Pure.
std::optional<Mark> parse_mark(std::string_view line);

}  // namespace vramtrack::gate
