#include "core/regex.hpp"

#include <regex>
#include <string_view>

namespace vramtrack {
namespace {

/// libstdc++'s matcher that tries all alternatives at once: its time is proportional to the text, whatever that
/// contains, and it supports no back-references. The other one would take for ever on (a+)+$ and forty a's.
constexpr auto kNoBacktracking = std::regex_constants::__polynomial;

/// In our own words: the standard library's words differ between its versions.
std::string_view fault(std::regex_constants::error_type code) {
  using namespace std::regex_constants;
  if (code == error_paren) return "a parenthesis is not closed";
  if (code == error_brack) return "a bracket is not closed";
  if (code == error_brace || code == error_badbrace) return "a {repetition} is wrong";
  if (code == error_badrepeat) return "there is nothing for *, + or ? to repeat";
  if (code == error_range) return "a [range] is out of order";
  if (code == error_complexity || code == error_stack || code == error_space)
    return "it is too large, or refers back to a group";
  return "an escape or a class is unknown";
}

}  // namespace

struct Regex::Compiled {
  std::regex regex;
};

Result<Regex> Regex::compile(const std::string& text) {
  try {
    return Regex(std::make_shared<const Compiled>(
        Compiled{std::regex(text, std::regex::ECMAScript | std::regex::optimize | kNoBacktracking)}));
  } catch (const std::regex_error& e) {
    return fail(std::string(fault(e.code())));
  }
}

bool Regex::found_in(const std::string& text) const {
  return std::regex_search(text, compiled_->regex);
}

bool Regex::find(std::string_view text, std::vector<std::string_view>& groups) const {
  groups.clear();
  try {
    std::cmatch match;
    if (!std::regex_search(text.data(), text.data() + text.size(), match, compiled_->regex)) return false;
    for (const auto& group : match)
      groups.push_back(group.matched ? text.substr(static_cast<std::size_t>(group.first - text.data()),
                                                   static_cast<std::size_t>(group.length()))
                                     : std::string_view{});
    return true;
  } catch (const std::regex_error&) {
    return false;
  }
}

}  // namespace vramtrack
