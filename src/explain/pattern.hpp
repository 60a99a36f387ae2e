// Pattern: the wording of one message, written almost as the program prints it. Matching never goes back, so its cost
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

/// A size may be this far from the words around it, and a message goes on for at most this many bytes.
inline constexpr std::size_t kGapBytes = 400;
inline constexpr std::size_t kMessageBytes = 8192;

/// What a match took, in the order of the text.
struct Captured {
  Figure figure = Figure::skipped;
  double value = 0;  ///< of sizes: bytes
};

struct Match {
  std::size_t end = 0;  ///< offset behind the last byte of the message
  std::vector<Captured> captured;
};

/// What the gaps of one pattern have found so far in one text: matches at rising offsets search no byte twice, so that
/// a text of many beginnings of a message costs no more than another. A new text needs a new one.
struct GapSearches {
  struct Search {
    std::size_t from = 0;   ///< [from, until) has the text behind the gap at its end alone, if `is_found`
    std::size_t until = 0;  ///< the offset of what was found, or the first that was not tried
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
///   {name}    a figure: a size with its unit ("1.12 GiB", "6.03G", "25,600,000 bytes"; bytes without a unit), a
///   number,
///             a shape. All units count in 1024s: that is how these programs compute them.
///   {name:MiB} a number whose unit stands elsewhere
///   ...       up to kGapBytes of anything, as little as possible, before the text that follows
///   ..        the same, within the line
///   [ ]       what need not be there, not nested; [ ]* as often as it is there
///   ^ and $   at the beginning and the end: the line's
class Pattern {
 public:
  /// The error names what is wrong with `text`, which must begin with text (after ^).
  static Result<Pattern> compile(std::string_view text);

  /// The text with which every match begins: in lower case, one space for blanks, none at its end.
  [[nodiscard]] const std::string& anchor() const { return anchor_; }

  /// Whether the message stands at `begin` of `text`, where the anchor does. `searches`: of earlier calls with this
  /// pattern and text.
  bool match(std::string_view text, std::size_t begin, Match& out, GapSearches& searches) const;
  /// The same where the anchor was found to end at `anchor_end`.
  bool match_behind_anchor(std::string_view text, std::size_t begin, std::size_t anchor_end, Match& out,
                           GapSearches& searches) const;

 private:
  enum class Kind : std::uint8_t { literal, blank, figure, gap, group, line_end };
  struct Element {
    Kind kind = Kind::literal;
    std::string literal;  ///< in lower case
    Figure figure = Figure::skipped;
    double unit_bytes = 0;       ///< of a figure whose unit stands elsewhere; 0: with the number
    bool in_line = false;        ///< of a gap
    std::uint32_t gap = 0;       ///< its number in the pattern
    bool repeats = false;        ///< of a group
    std::vector<Element> group;  ///< has no groups itself
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
  std::size_t anchor_elements_ = 0;  ///< of elements_, those that it is made of
  std::uint32_t gap_count_ = 0;
  bool from_line_begin_ = false;
};

/// A byte as the anchors have it: lower case, and a space for every blank.
char normal(char c);
/// The end of the blanks at `at` of `text`, with the quote marks at the begin of a line; `at` when there are none.
std::size_t skip_blanks(std::string_view text, std::size_t at);
/// A number: "12", "1.5", "25,600,000", "1900,00": a comma before exactly three digits parts thousands, any other is
/// the decimal's.
std::optional<double> read_number(std::string_view text, std::size_t& at);
/// A size at `at` of `text`, which moves behind it: "1.12 GiB", "1900,00 MiB", "25,600,000 bytes", "6.03G", "786432".
std::optional<double> read_size(std::string_view text, std::size_t& at);

}  // namespace vramtrack::explain
