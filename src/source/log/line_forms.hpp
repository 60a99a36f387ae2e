// What was found in earlier lines of free text, by the form of the line. Most lines of a log differ from earlier ones
// in the digits alone: what their words mean is found once, and only the numbers are read again. Private to the reader
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

/// find_figures() without anything remembered. `cut` and `start`: of the line, for LineForms.
void find_figures_anew(std::string_view line, LineFigures& out, Grouping open, CutLine& cut, LineStart& start);

/// Two lines have one form if they differ in digits only, and in none that find_figures() asks about by itself: how
/// many stand together, whether the first is 0 or 1, whether a whole number is small enough for the index of a GPU.
/// Where more than that decides, the line is not remembered (CutLine::by_value), or what decides is compared again. Not
/// for several threads.
class LineForms {
 public:
  /// Fills `out` as find_figures() does, if a line of this form is known and says that it reads as this one; else
  /// false.
  bool recall(std::string_view line, LineFigures& out);
  /// Remembers what was found in the line that recall() was last asked about; `cut` and `start` are of that line.
  void remember(const CutLine& cut, const LineStart& start, const LineFigures& found);

 private:
  /// A part of the line; of length 0: none.
  struct Part {
    std::size_t begin = 0, length = 0;
    friend bool operator==(const Part&, const Part&) = default;
    [[nodiscard]] std::string_view of(std::string_view line) const { return line.substr(begin, length); }
  };
  /// Where the parts of a LineStart lie.
  struct StartParts {
    Part prefix, stamp, minute, elapsed;
    friend bool operator==(const StartParts&, const StartParts&) = default;
  };
  struct Known {
    std::string line;
    LineFigures found;                 ///< its views are into `line`
    std::vector<Part> same;            ///< numbers whose value decides: as in `line`
    std::vector<Part> no_divisors;     ///< numbers that must not be ones that memory is divided by
    std::vector<CutLine::Pair> pairs;  ///< used memory that must not be above the total
    StartParts start;
    bool begins_anew = false;  ///< the values decide where its time is
  };

  [[nodiscard]] static StartParts parts_of(const LineStart& start, std::string_view line);
  [[nodiscard]] static bool reads_as(const Known& known, std::string_view line);
  static void fill(const Known& known, std::string_view line, LineFigures& out);

  std::string form_;  ///< of the line asked about last
  bool has_form_ = false;
  std::unordered_map<std::string, std::deque<Known>> known_;
  std::size_t size_ = 0;
};

}  // namespace vramtrack
