// Marks: what a program says at the end of each iteration, one line each (docs/leak-gate.md, "The protocol").
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
  std::optional<double> used_bytes;  ///< by the program's own measure; none: whoever reads the mark measures
  std::string key;                   ///< tells several writers on one pipe apart; empty: there is one
  friend bool operator==(const Mark&, const Mark&) = default;
};

/// Cuts what comes through a pipe into marks. Lines that are none are counted and skipped: the other side may be
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

/// One line without its newline; nullopt: no mark. Pure.
std::optional<Mark> parse_mark(std::string_view line);

}  // namespace vramtrack::gate
