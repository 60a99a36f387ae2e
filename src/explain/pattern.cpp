#include "explain/pattern.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/units.hpp"

namespace vramtrack::explain {
namespace {

/// A group matches at most this often: a message names some dozens of processes.
constexpr std::size_t kMostRepeats = 64;

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/// The bytes of one element of a tensor, by the type name that TensorFlow and XLA print; 0: unknown.
double element_bytes(std::string_view name) {
  static constexpr struct {
    std::string_view name;
    double bytes;
  } kTypes[] = {{"double", 8}, {"int64", 8}, {"float64", 8}, {"complex64", 8}, {"float", 4},      {"float32", 4},
                {"int32", 4},  {"half", 2},  {"float16", 2}, {"bfloat16", 2},  {"int16", 2},      {"int8", 1},
                {"uint8", 1},  {"bool", 1},  {"uint16", 2},  {"uint32", 4},    {"complex128", 16}};
  for (const auto& type : kTypes)
    if (type.name == name) return type.bytes;
  return 0;
}

/// The product of the numbers in brackets: "[2048,436631]", "(176351, 176460)".
std::optional<double> read_shape(std::string_view text, std::size_t& at) {
  if (at >= text.size() || (text[at] != '[' && text[at] != '(')) return std::nullopt;
  const std::size_t close = text.substr(0, std::min(text.size(), at + kGapBytes)).find_first_of("])", at);
  if (close == std::string_view::npos) return std::nullopt;
  double product = 1;
  for (std::size_t i = at + 1; i < close;) {
    if (text[i] < '0' || text[i] > '9') {
      ++i;
      continue;
    }
    double number = 0;
    for (; i < close && text[i] >= '0' && text[i] <= '9'; ++i) number = number * 10 + (text[i] - '0');
    product = std::min(product * number, 1e30);
  }
  at = close + 1;
  return product;
}

std::string read_word(std::string_view text, std::size_t& at) {
  std::string word;
  while (at < text.size() && word.size() < 64 && !is_blank(text[at]) && text[at] != ',' && text[at] != ')' &&
         text[at] != ':')
    word += normal(text[at++]);
  return word;
}

bool literal_at(std::string_view text, std::size_t at, std::string_view literal) {
  if (text.size() - at < literal.size()) return false;
  for (std::size_t i = 0; i < literal.size(); ++i)
    if (normal(text[at + i]) != literal[i]) return false;
  return true;
}

/// The first offset in [at, end) at which `is_there`, unless an earlier search has covered it.
template <class IsThere>
std::optional<std::size_t> search(GapSearches::Search& known, std::size_t at, std::size_t end, IsThere is_there) {
  if (at < known.from || at > known.until) known = {at, at, false};
  while (!known.is_found && known.until < end) {
    known.is_found = is_there(known.until);
    if (!known.is_found) ++known.until;
  }
  if (known.is_found && known.until < end) return known.until;
  return std::nullopt;
}

}  // namespace

char normal(char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<char>(c - 'A' + 'a');
  return is_blank(c) ? ' ' : c;
}

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  bool at_line_begin = false;
  while (at < text.size()) {
    const char c = text[at];
    if (is_blank(c)) {
      at_line_begin = at_line_begin || c == '\n';
      ++at;
    } else if (at_line_begin && (c == '>' || c == '|')) {
      ++at;
    } else if (at_line_begin && text.substr(at, 3) == "\xe2\x94\x82") {  // the frame that rich draws
      at += 3;
    } else {
      break;
    }
  }
  return at;
}

Result<std::vector<Pattern::Element>> Pattern::parse(std::string_view text, std::size_t& at, bool in_group) {
  std::vector<Element> out;
  const auto add = [&out](Kind kind) -> Element& {
    out.emplace_back();
    out.back().kind = kind;
    return out.back();
  };
  while (at < text.size()) {
    const char c = text[at];
    if (c == '[') {
      if (in_group) return fail("a group stands in a group");
      ++at;
      auto group = parse(text, at, true);
      if (!group) return fail(group.error());
      if (at >= text.size()) return fail("a group is not closed");
      ++at;
      Element& element = add(Kind::group);
      element.group = std::move(*group);
      if (at < text.size() && text[at] == '*') {
        element.repeats = true;
        ++at;
      }
    } else if (c == ']' && in_group) {
      return out;
    } else if (c == '{') {
      const std::size_t close = text.find('}', at);
      if (close == std::string_view::npos) return fail("a placeholder is not closed");
      const std::string_view inside = text.substr(at + 1, close - at - 1);
      const std::size_t colon = std::min(inside.find(':'), inside.size());
      const auto figure = figure_of(inside.substr(0, colon));
      if (!figure) return fail(fmt::format("there is no figure {}", inside.substr(0, colon)));
      Element& element = add(Kind::figure);
      element.figure = *figure;
      if (colon < inside.size()) {
        const std::string one = fmt::format("1 {}", inside.substr(colon + 1));
        std::size_t end = 0;
        const auto unit = read_size(one, end);
        if (!unit || end != one.size()) return fail(fmt::format("there is no unit {}", inside.substr(colon + 1)));
        element.unit_bytes = *unit;
      }
      at = close + 1;
    } else if (c == '.' && text.substr(at, 2) == "..") {
      const bool in_line = text.substr(at, 3) != "...";
      at += in_line ? 2 : 3;
      Element& gap = add(Kind::gap);
      gap.in_line = in_line;
      gap.gap = gap_count_++;
    } else if (c == '$' && at + 1 == text.size()) {
      add(Kind::line_end);
      ++at;
    } else if (is_blank(c)) {
      add(Kind::blank);
      ++at;
    } else {
      if (out.empty() || out.back().kind != Kind::literal) add(Kind::literal);
      if (c == '\\' && at + 1 < text.size()) ++at;
      out.back().literal += normal(text[at++]);
    }
  }
  if (in_group) return fail("a group is not closed");
  return out;
}

Result<Pattern> Pattern::compile(std::string_view text) {
  Pattern pattern;
  std::size_t at = 0;
  if (!text.empty() && text.front() == '^') {
    pattern.from_line_begin_ = true;
    at = 1;
  }
  auto elements = pattern.parse(text, at, false);
  if (!elements) return fail(elements.error().during(fmt::format("the wording \"{}\"", text)));
  pattern.elements_ = std::move(*elements);
  for (std::size_t i = 0; i < pattern.elements_.size(); ++i) {
    const Element& element = pattern.elements_[i];
    if (element.kind == Kind::blank) {
      pattern.anchor_ += ' ';
      continue;
    }
    if (element.kind != Kind::literal) break;
    pattern.anchor_ += element.literal;
    pattern.anchor_elements_ = i + 1;  // without trailing blanks
  }
  while (!pattern.anchor_.empty() && pattern.anchor_.back() == ' ') pattern.anchor_.pop_back();
  if (pattern.anchor_.size() < 3) return fail(fmt::format("the wording \"{}\" does not begin with text", text));
  return pattern;
}

bool Pattern::match_one(const Element& element, const Element* next, std::string_view text, std::size_t& at, Match& out,
                        GapSearches& searches) {
  switch (element.kind) {
    case Kind::literal:
      if (!literal_at(text, at, element.literal)) return false;
      at += element.literal.size();
      return true;
    case Kind::blank: {
      const std::size_t end = skip_blanks(text, at);
      if (end == at) return false;
      at = end;
      return true;
    }
    case Kind::figure: {
      std::optional<double> value;
      if (element.figure == Figure::shape) {
        value = read_shape(text, at);
      } else if (element.figure == Figure::element) {
        value = element_bytes(read_word(text, at));
      } else if (element.figure == Figure::skipped) {
        if (read_word(text, at).empty()) return false;
        return true;
      } else {
        value = element.unit_bytes > 0 ? read_number(text, at) : read_size(text, at);
        if (value && element.unit_bytes > 0) *value *= element.unit_bytes;
      }
      if (!value) return false;
      out.captured.push_back({element.figure, *value});
      return true;
    }
    case Kind::gap: {
      if (next == nullptr || next->kind != Kind::literal) return false;
      GapSearches::Gap& known = searches.gaps[element.gap];
      // A truncated text, such as one cut at the maximum message length, is not searched where it may continue.
      std::size_t end = std::min(text.size() - std::min(text.size(), next->literal.size()), at + kGapBytes) + 1;
      const auto is_line_end = [text](std::size_t i) { return text[i] == '\n'; };
      if (element.in_line)
        if (const auto line_end = search(known.line_end, at, std::min(end, text.size()), is_line_end)) end = *line_end;
      const auto found = search(known.text, at, end, [&](std::size_t i) { return literal_at(text, i, next->literal); });
      if (found) at = *found;
      return found.has_value();
    }
    case Kind::line_end: {
      std::size_t end = at;
      while (end < text.size() && (text[end] == ' ' || text[end] == '\t' || text[end] == '\r')) ++end;
      return end >= text.size() || text[end] == '\n';
    }
    case Kind::group:
      for (std::size_t n = 0; n < (element.repeats ? kMostRepeats : 1); ++n) {
        std::size_t then = at;
        const std::size_t captured = out.captured.size();
        if (!match_all(element.group, text, then, out, searches) || then == at) {
          out.captured.resize(captured);
          break;
        }
        at = then;
      }
      return true;
  }
  return false;
}

bool Pattern::match_all(std::span<const Element> elements, std::string_view text, std::size_t& at, Match& out,
                        GapSearches& searches) {
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const Element* const next = i + 1 < elements.size() ? &elements[i + 1] : nullptr;
    if (!match_one(elements[i], next, text, at, out, searches)) return false;
  }
  return true;
}

bool Pattern::match(std::string_view text, std::size_t begin, Match& out, GapSearches& searches) const {
  out.end = begin;
  return match_from(0, text, begin, out, searches);
}

bool Pattern::match_behind_anchor(std::string_view text, std::size_t begin, std::size_t anchor_end, Match& out,
                                  GapSearches& searches) const {
  out.end = anchor_end;
  return match_from(anchor_elements_, text, begin, out, searches);
}

/// Starting at out.end.
bool Pattern::match_from(std::size_t element, std::string_view text, std::size_t begin, Match& out,
                         GapSearches& searches) const {
  if (from_line_begin_) {
    std::size_t line = begin;
    while (line > 0 && (text[line - 1] == ' ' || text[line - 1] == '\t')) --line;
    if (line > 0 && text[line - 1] != '\n') return false;
  }
  out.captured.clear();
  searches.gaps.resize(gap_count_);
  return match_all(std::span(elements_).subspan(element), text.substr(0, std::min(text.size(), begin + kMessageBytes)),
                   out.end, out, searches);
}

}  // namespace vramtrack::explain
