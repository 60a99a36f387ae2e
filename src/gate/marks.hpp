// Marks: what a program writes at the end of each iteration, one line each (docs/leak-gate.md, "The protocol").
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vramtrack::gate {

/// "NAME", "NAME BYTES" or "NAME BYTES KEY".
struct Mark {
  std::string name;
  std::optional<double> used_bytes;  ///< as measured by the program; nullopt: the reader of the mark measures
  std::string key;                   ///< distinguishes several writers on one pipe; empty: there is one
  friend bool operator==(const Mark&, const Mark&) = default;
};

/// Splits the bytes from a pipe into marks. Lines that are not marks are counted and skipped: the other side may write
/// anything. Bounded memory. Not thread-safe.
class MarkReader {
 public:
  /// Marks of `bytes`, together with the beginning of a line left over from before.
  std::vector<Mark> read(std::string_view bytes);
  [[nodiscard]] std::size_t skipped_lines() const { return skipped_; }

 private:
  std::string rest_;
  bool too_long_ = false;
  std::size_t skipped_ = 0;
};

/// Parses one line without its newline; nullopt: not a mark. Pure.
std::optional<Mark> parse_mark(std::string_view line);

}  // namespace vramtrack::gate
