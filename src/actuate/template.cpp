#include "actuate/template.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/printable.hpp"

namespace vramtrack::actuate {
namespace {

constexpr std::size_t kLongestName = 253;  ///< of a host name (RFC 1035)

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_of_address(const std::string& value) {
  return !value.empty() && value.size() <= kLongestName + 10 && std::all_of(value.begin(), value.end(), [](char c) {
    return is_letter_or_digit(c) || std::string_view(".:_-[]").find(c) != std::string_view::npos;
  });
}

}  // namespace

Result<std::string> filled(const std::string& text, const Labels& labels) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t end = text[i] == '{' ? text.find('}', i) : std::string::npos;
    if (end == std::string::npos) {
      out += text[i++];
      continue;
    }
    const std::string name = text.substr(i + 1, end - i - 1);
    const auto at = labels.find(name);
    if (at == labels.end())
      return fail(fmt::format("the alert has no label '{}', which '{}' needs", printable(name), printable(text)));
    if (!is_of_address(at->second))
      return fail(fmt::format("the alert's label {}=\"{}\" is not a name or an address", printable(name),
                              printable(at->second.substr(0, 80))));
    out += at->second;
    i = end + 1;
  }
  return out;
}

Result<std::string> node_name(const std::string& text, const Labels& labels) {
  auto name = filled(text, labels);
  if (!name) return name;
  std::string upper = *name;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  const bool is_name = !name->empty() && name->size() <= kLongestName && is_letter_or_digit(name->front()) &&
                       upper != "ALL" && std::all_of(name->begin(), name->end(), [](char c) {
                         return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-';
                       });
  if (is_name) return name;
  return fail(fmt::format("'{}' is not the name of one node; set actuate.node to a template that gives one",
                          printable(name->substr(0, 80))));
}

}  // namespace vramtrack::actuate
