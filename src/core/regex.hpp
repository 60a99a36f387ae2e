// A regular expression from the configuration, a policy or the command line, or one that we suggest. RE2's header is
// slow to compile, so only regex.cpp includes it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace re2 {
class RE2;
}

namespace vramtrack {

/// A compiled regular expression in RE2 syntax, on bytes: any text can be searched, even if it is not UTF-8. The time
/// and memory of compiling and searching are proportional to pattern and text, whatever they contain, and nothing
/// recurses. Copies share the compiled form; any thread may search.
class Regex {
 public:
  /// Named groups are written (?<name>...) or (?P<name>...). The error quotes the beginning of `text` and explains what
  /// is wrong with it: "'(' is not a regular expression: a parenthesis is not closed". Look-ahead, look-behind,
  /// back-references and patterns above 4 KiB are rejected.
  static Result<Regex> compile(std::string_view text);

  /// Whether the expression matches anywhere in `text`.
  [[nodiscard]] bool found_in(std::string_view text) const;

  /// The first match in `text`: the whole match, then each group, empty if it took no part. False if nothing matches.
  /// The views are into `text`.
  bool find(std::string_view text, std::vector<std::string_view>& groups) const;

  /// The names of the groups, in the order of find(), starting with the first group; empty for a group without a name.
  [[nodiscard]] std::vector<std::string> group_names() const;

 private:
  explicit Regex(std::shared_ptr<const re2::RE2> compiled) : compiled_(std::move(compiled)) {}
  std::shared_ptr<const re2::RE2> compiled_;
};

}  // namespace vramtrack
