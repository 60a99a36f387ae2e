// A regular expression of the configuration. <regex> takes two seconds a file to compile: regex.cpp alone includes
// it.
#pragma once

#include <memory>
#include <string>

#include "core/result.hpp"

namespace vramtrack {

/// A compiled ECMAScript regular expression. Copies share what is compiled; any thread may search.
class Regex {
 public:
  /// The error says what is wrong with `text`, in our own words: "a parenthesis is not closed".
  static Result<Regex> compile(const std::string& text);

  /// Whether the expression matches anywhere in `text`.
  [[nodiscard]] bool found_in(const std::string& text) const;

 private:
  struct Compiled;
  explicit Regex(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace vramtrack
