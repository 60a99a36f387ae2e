// Pattern: the wording of one message, written almost as the program prints it. Matching never backtracks, so its cost
// is bounded by the length of the message; there are no regular expressions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.hpp"
#include "explain/figure.hpp"

namespace vramtrack::explain {

/// A size may be this far from the words around it, and a message is at most this many bytes long.
inline constexpr std::size_t kGapBytes = 400;
inline constexpr std::size_t kMessageBytes = 8192;

/// The result of a match, in text order.
struct Captured {
  Figure figure = Figure::skipped;
  double value = 0;  ///< of sizes: bytes
};

struct Match {
  std::size_t end = 0;  ///< offset after the last byte of the message
  std::vector<Captured> captured;
};

/// Search results for the gaps of one pattern in one text: matches at rising offsets search no byte twice, so that a
/// text with many beginnings of a message costs no more than any other. Each text needs a new object.
struct GapSearches {
  struct Search {
    std::size_t from = 0;   ///< [from, until) contains the text after the gap only at its end, if `is_found`
    std::size_t until = 0;  ///< the offset of the match, or the first offset not tried
    bool is_found = false;
  };
  struct Gap {
    Search text;
    Search line_end;
  };
  std::vector<Gap> gaps;
};

/// The syntax of wordings.def:
///   text      itself; upper and lower case are the same
///   blank     one or more blanks, also line breaks with the quote marks ("> ", "| ") that follow them
///   {name}    a figure: a size with its unit ("1.12 GiB", "6.03G", "25,600,000 bytes"; bytes without a unit),
///             a number, a shape. All units count in 1024s: that is how these programs compute them.
///   {name:MiB} a number whose unit is elsewhere
///   ...       up to kGapBytes of anything, as little as possible, before the text that follows
///   ..        the same, within the line
///   [ ]       an optional part, not nested; [ ]* any number of times
///   ^ and $   at the beginning and the end: the line's
class Pattern {
 public:
  /// The error names the fault in `text`, which must begin with literal text (after ^).
  static Result<Pattern> compile(std::string_view text);

  /// The text at the start of every match: in lower case, one space for blanks, no trailing space.
  [[nodiscard]] const std::string& anchor() const { return anchor_; }

  /// Whether the message is at `begin` of `text`, where the anchor was found. `searches`: from earlier calls with this
  /// pattern and text.
  bool match(std::string_view text, std::size_t begin, Match& out, GapSearches& searches) const;
  /// The same if the anchor was found to end at `anchor_end`.
  bool match_behind_anchor(std::string_view text, std::size_t begin, std::size_t anchor_end, Match& out,
                           GapSearches& searches) const;

 private:
  enum class Kind : std::uint8_t { literal, blank, figure, gap, group, line_end };
  struct Element {
    Kind kind = Kind::literal;
    std::string literal;  ///< in lower case
    Figure figure = Figure::skipped;
    double unit_bytes = 0;       ///< of a figure whose unit is elsewhere; 0: next to the number
    bool in_line = false;        ///< of a gap
    std::uint32_t gap = 0;       ///< its number in the pattern
    bool repeats = false;        ///< of a group
    std::vector<Element> group;  ///< contains no groups itself
  };

  Result<std::vector<Element>> parse(std::string_view text, std::size_t& at, bool in_group);
  static bool match_all(std::span<const Element> elements, std::string_view text, std::size_t& at, Match& out,
                        GapSearches& searches);
  bool match_from(std::size_t element, std::string_view text, std::size_t begin, Match& out,
                  GapSearches& searches) const;
  static bool match_one(const Element& element, const Element* next, std::string_view text, std::size_t& at, Match& out,
                        GapSearches& searches);

  std::vector<Element> elements_;
  std::string anchor_;
  std::size_t anchor_elements_ = 0;  ///< elements_ that it consists of
  std::uint32_t gap_count_ = 0;
  bool from_line_begin_ = false;
};

/// A byte as the anchors store it: lower case, and a space for every blank.
char normal(char c);
/// The end of the blanks at `at` of `text`, including quote marks at the beginning of a line; `at` if there are none.
std::size_t skip_blanks(std::string_view text, std::size_t at);
/// A number: "12", "1.5", "25,600,000", "1900,00": a comma before exactly three digits separates thousands, any other
/// is a decimal comma.
std::optional<double> read_number(std::string_view text, std::size_t& at);
/// A size at `at` of `text`, which moves past it: "1.12 GiB", "1900,00 MiB", "25,600,000 bytes", "6.03G", "786432".
std::optional<double> read_size(std::string_view text, std::size_t& at);

}  // namespace vramtrack::explain
