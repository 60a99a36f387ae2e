// How the numbers of a text separate thousands and fractions: "7,340.5" or "7.340,5". A number such as "4.000 MB" does
// not show that by itself; the other numbers of its log, and the language of its words, may.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace vramtrack {

enum class Grouping : std::uint8_t {
  by_comma,  ///< 7,340.5
  by_dot,    ///< 7.340,5
};

/// The number in `digits` ("7,340", "2,89", "12.5") before a unit of `unit_bytes`; negative: none. A number that shows
/// its own grouping is read by that: "2,89", "7.340.000", "2,890 GB", since no card has 2890 GB. `open` says how to
/// read one that does not: "4.000" is 4 by comma, and 4000 by dot.
double read_number(std::string_view digits, std::uint64_t unit_bytes, Grouping open = Grouping::by_comma);

/// How `digits` before a unit of `unit_bytes` (0: none is written) show that they are grouped; nullopt: they do not.
std::optional<Grouping> shown_grouping(std::string_view digits, std::uint64_t unit_bytes);

/// Whether `digits` have one separator that may stand before thousands or before a fraction: "4.000".
bool is_open_number(std::string_view digits, std::uint64_t unit_bytes);

/// An amount of memory as its log writes it.
struct WrittenAmount {
  std::string_view digits;
  std::uint64_t unit_bytes = 0;  ///< 0: none is written
  bool is_total = false;
  bool is_german = false;  ///< its label has a word of a language that groups by dots
  std::string label;       ///< the same for amounts of one kind
};

struct SettledGrouping {
  Grouping grouping = Grouping::by_comma;
  bool is_unknown = false;   ///< nothing decides, and a card could hold either
  std::string_view example;  ///< of an amount that does not show it
};

/// The warning for amounts such as `example` before a unit of `unit_bytes` of which nothing shows the grouping.
std::string unknown_grouping(std::string_view example, std::uint64_t unit_bytes);

/// Decides by all `amounts` of a log, and by the other numbers in `lines`.
SettledGrouping settle_grouping(std::span<const WrittenAmount> amounts, std::span<const std::string_view> lines);

}  // namespace vramtrack
