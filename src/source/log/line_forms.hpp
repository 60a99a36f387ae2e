// The results for earlier lines of free text, by the form of the line. Most lines of a log differ from earlier ones
// only in digits: the meaning of their words is found once, and only the numbers are read again. Private to the reader
// of free text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "source/log/line_numbers.hpp"
#include "source/log/line_start.hpp"
#include "source/log/memory_words.hpp"

namespace vramtrack {

/// find_figures() without memory of earlier lines. `cut` and `start` describe the line, for LineForms.
void find_figures_anew(std::string_view line, LineFigures& out, Grouping open, CutLine& cut, LineStart& start);

/// Two lines have the same form if they differ only in digits that find_figures() does not examine individually: it
/// examines how many digits are adjacent, whether the first is 0 or 1, and whether a whole number is small enough for a
/// GPU index. If anything else matters, the line is not remembered (CutLine::by_value), or the deciding values are
/// compared again. Not thread-safe.
class LineForms {
 public:
  /// Fills `out` as find_figures() does, if a line of this form is known and applies to this one; else returns
  /// false.
  bool recall(std::string_view line, LineFigures& out);
  /// Remembers the result for the line last passed to recall(); `cut` and `start` describe that line.
  void remember(const CutLine& cut, const LineStart& start, const LineFigures& found);

 private:
  /// A part of the line; length 0: none.
  struct Part {
    std::size_t begin = 0, length = 0;
    friend bool operator==(const Part&, const Part&) = default;
    [[nodiscard]] std::string_view of(std::string_view line) const { return line.substr(begin, length); }
  };
  /// The positions of the parts of a LineStart.
  struct StartParts {
    Part prefix, stamp, minute, elapsed;
    friend bool operator==(const StartParts&, const StartParts&) = default;
  };
  struct Known {
    std::string line;
    LineFigures found;                 ///< its views point into `line`
    std::vector<Part> same;            ///< numbers that must have the same value as in `line`
    std::vector<Part> no_divisors;     ///< numbers that must not be divisors of memory
    std::vector<CutLine::Pair> pairs;  ///< used memory that must not exceed the total
    StartParts start;
    bool begins_anew = false;  ///< the values determine where its time is
  };

  [[nodiscard]] static StartParts parts_of(const LineStart& start, std::string_view line);
  [[nodiscard]] static bool reads_as(const Known& known, std::string_view line);
  static void fill(const Known& known, std::string_view line, LineFigures& out);

  std::string form_;  ///< form of the line last looked up
  bool has_form_ = false;
  std::unordered_map<std::string, std::deque<Known>> known_;
  std::size_t size_ = 0;
};

}  // namespace vramtrack
