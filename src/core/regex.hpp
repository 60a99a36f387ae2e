// A regular expression from the configuration or the command line. <regex> takes two seconds per file to compile, so
// only regex.cpp includes it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace vramtrack {

/// A compiled ECMAScript regular expression. Copies share the compiled form; any thread may search.
class Regex {
 public:
  /// The error says what is wrong with `text`, in our own words: "a parenthesis is not closed".
  static Result<Regex> compile(const std::string& text);

  /// Whether the expression matches anywhere in `text`.
  [[nodiscard]] bool found_in(const std::string& text) const;

  /// The first match in `text`: the whole match, then each group, empty if it took no part. False if nothing matches,
  /// or if that would cost too much. The views are into `text`, which should be a line: the cost may grow fast with it.
  bool find(std::string_view text, std::vector<std::string_view>& groups) const;

 private:
  struct Compiled;
  explicit Regex(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace vramtrack
