#include "core/regex.hpp"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>

namespace vramtrack {
namespace {

using re2::RE2;

constexpr std::size_t kLongestPattern = 4096;

/// Truncated, since an invalid pattern may be of any length.
std::string quoted(std::string_view text) {
  constexpr std::size_t kMost = 80;
  if (text.size() <= kMost) return fmt::format("'{}'", text);
  std::size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80) --end;  // no half of a character
  return fmt::format("'{}...'", text.substr(0, end));
}

/// In our own words: the library's messages differ between its versions.
std::string fault(const RE2& regex) {
  switch (regex.error_code()) {
    case RE2::ErrorMissingParen:
      return "a parenthesis is not closed";
    case RE2::ErrorUnexpectedParen:
      return "a parenthesis is closed that was not opened";
    case RE2::ErrorMissingBracket:
      return "a bracket is not closed";
    case RE2::ErrorRepeatSize:
      return "a {repetition} is out of order, or above 1000";
    case RE2::ErrorRepeatArgument:
      return "there is nothing for *, + or ? to repeat";
    case RE2::ErrorRepeatOp:
      return "*, + or ? directly follows another";
    case RE2::ErrorBadCharRange:
      return "a [range] is out of order, or its [:class:] is unknown";
    case RE2::ErrorBadNamedCapture:
      return "the name of a group is not made of letters, digits and _, or does not end in '>'";
    case RE2::ErrorBadPerlOp:
      return "a group that begins with '(?' is of an unknown kind";
    case RE2::ErrorTrailingBackslash:
      return "it ends in a backslash";
    case RE2::ErrorPatternTooLarge:
      return "its repetitions make it too large";
    case RE2::ErrorBadEscape:
      return fmt::format("the escape '{}' is unknown", regex.error_arg());
    default:
      return "a class or an escape is unknown";
  }
}

/// `text` as every version of RE2 reads it (the older ones know named groups only as (?P<name>...)); with our own
/// messages for syntax that other dialects have and RE2 does not.
Result<std::string> in_syntax_of_re2(std::string_view text) {
  std::string out;
  std::size_t class_begins = std::string_view::npos;  // where the members of an open [class] begin
  while (!text.empty()) {
    std::size_t taken = 1;
    if (text.starts_with("\\Q")) {  // a literal, up to \E
      taken = std::min(text.find("\\E", 2), text.size());
    } else if (text[0] == '\\') {
      taken = std::min<std::size_t>(2, text.size());
      const char escaped = text.back() == '\\' && text.size() == 1 ? '\0' : text[1];
      if ((escaped >= '1' && escaped <= '9') || escaped == 'k')
        return fail(fmt::format("'{}' refers back to a group, which is not supported", text.substr(0, taken)));
    } else if (class_begins != std::string_view::npos) {
      if (text.starts_with("[:"))
        taken = std::min(text.find(":]", 2), text.size() - 2) + 2;
      else if (text[0] == ']' && out.size() > class_begins)
        class_begins = std::string_view::npos;
    } else if (text[0] == '[') {
      taken = text.starts_with("[^") ? 2 : 1;
      class_begins = out.size() + taken;
    } else if (text.starts_with("(?=") || text.starts_with("(?!")) {
      return fail("look-ahead ('(?=' and '(?!') is not supported; match what follows, too, outside the group");
    } else if (text.starts_with("(?<=") || text.starts_with("(?<!")) {
      return fail("look-behind ('(?<=' and '(?<!') is not supported; match what comes before, too, outside the group");
    } else if (text.starts_with("(?<")) {
      out += "(?P<";
      text.remove_prefix(3);
      continue;
    }
    out += text.substr(0, taken);
    text.remove_prefix(taken);
  }
  return out;
}

}  // namespace

Result<Regex> Regex::compile(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return fail(fmt::format("{} is not a regular expression: {}", quoted(text), why));
  };
  if (text.size() > kLongestPattern)
    return fail(fmt::format("{} is too long for a regular expression: {} characters, and the limit is {}", quoted(text),
                            text.size(), kLongestPattern));
  const auto plain = in_syntax_of_re2(text);
  if (!plain) return wrong(plain.error().message);
  RE2::Options options(RE2::Latin1);  // bytes: lines of logs and commands need not be UTF-8
  options.set_log_errors(false);
  auto regex = std::make_shared<const RE2>(*plain, options);
  if (!regex->ok()) return wrong(fault(*regex));
  return Regex(std::move(regex));
}

bool Regex::found_in(std::string_view text) const {
  return RE2::PartialMatch({text.data(), text.size()}, *compiled_);
}

bool Regex::find(std::string_view text, std::vector<std::string_view>& groups) const {
  std::vector<re2::StringPiece> found(static_cast<std::size_t>(compiled_->NumberOfCapturingGroups()) + 1);
  groups.clear();
  if (!compiled_->Match({text.data(), text.size()}, 0, text.size(), RE2::UNANCHORED, found.data(),
                        static_cast<int>(found.size())))
    return false;
  for (const re2::StringPiece& group : found) groups.emplace_back(group.data(), group.size());
  return true;
}

std::vector<std::string> Regex::group_names() const {
  std::vector<std::string> names(static_cast<std::size_t>(compiled_->NumberOfCapturingGroups()));
  for (const auto& [number, name] : compiled_->CapturingGroupNames())
    names[static_cast<std::size_t>(number) - 1] = name;
  return names;
}

}  // namespace vramtrack
