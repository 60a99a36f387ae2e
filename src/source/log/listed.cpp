#include "source/log/listed.hpp"

#include <algorithm>

#include "source/log/text.hpp"

namespace vramtrack {

using logtext::trim;

std::vector<std::string_view> parts_of_list(std::string_view text) {
  constexpr std::size_t kLongest = 1024;
  text = trim(text);
  if (text.size() < 3 || text.size() > kLongest) return {};
  const bool in_brackets = text.front() == '[' && text.back() == ']';
  if (in_brackets) text = trim(text.substr(1, text.size() - 2));
  const auto is_amount = [](std::string_view part) {
    std::uint64_t bytes = 0;
    return logtext::read_amount(part, 1, bytes) == logtext::Amount::read;
  };
  if (in_brackets && is_amount(text)) return {text};
  // A comma or a space may also be part of a number, so each separates only within brackets, or both together.
  for (const std::string_view separator : {";", "|", ", ", ",", " "}) {
    if (text.find(separator) == std::string_view::npos || (separator == "," && !in_brackets) ||
        (separator == " " && !in_brackets))
      continue;
    std::vector<std::string_view> parts;
    std::string_view rest = text;
    for (bool more = true; more;) {
      const std::size_t end = rest.find(separator);
      parts.push_back(trim(rest.substr(0, end)));
      more = end != std::string_view::npos;
      if (more) rest.remove_prefix(end + separator.size());
    }
    if (std::all_of(parts.begin(), parts.end(), is_amount)) return parts;
  }
  return {};
}

}  // namespace vramtrack
