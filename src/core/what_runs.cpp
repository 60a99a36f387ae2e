#include "core/what_runs.hpp"

#include <algorithm>
#include <cctype>

#include "core/ascii.hpp"

namespace vramtrack {
namespace {

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

bool name_fits(std::string_view name, std::string_view pattern) {
  const bool any_front = !pattern.empty() && pattern.front() == '*';
  const bool any_back = !pattern.empty() && pattern.back() == '*';
  if (any_front) pattern.remove_prefix(1);
  if (any_back) pattern.remove_suffix(1);
  const auto same = [](char x, char y) { return lower(x) == lower(y); };
  if (any_front && any_back)
    return std::search(name.begin(), name.end(), pattern.begin(), pattern.end(), same) != name.end();
  if (name.size() < pattern.size()) return false;
  if (any_front) return equals_ignoring_case(name.substr(name.size() - pattern.size()), pattern);
  if (any_back) return name.size() > pattern.size() && equals_ignoring_case(name.substr(0, pattern.size()), pattern);
  return equals_ignoring_case(name, pattern);
}

std::string_view without_suffix(std::string_view text, std::string_view suffix) {
  if (text.size() > suffix.size() && equals_ignoring_case(text.substr(text.size() - suffix.size()), suffix))
    text.remove_suffix(suffix.size());
  return text;
}

/// The last part of a path.
std::string_view file_of(std::string_view path) {
  const std::size_t slash = path.find_last_of("/\\");
  return slash == std::string_view::npos || slash + 1 == path.size() ? path : path.substr(slash + 1);
}

/// "/opt/bin/vllm" -> "vllm", "C:\\x\\ollama.exe" -> "ollama", "VLLM::Worker_TP0" -> "VLLM".
std::string_view program_of(std::string_view word) {
  if (const std::size_t title = word.find("::"); title != std::string_view::npos) return word.substr(0, title);
  word = file_of(word);
  while (!word.empty() && word.back() == ':') word.remove_suffix(1);
  return without_suffix(without_suffix(word, ".exe"), ".py");
}

/// The Python package that a script inside site-packages belongs to; empty for other paths.
std::string_view package_of(std::string_view path) {
  for (const std::string_view folder : {"/site-packages/", "/dist-packages/"}) {
    const std::size_t at = path.rfind(folder);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = path.substr(at + folder.size());
    return rest.substr(0, rest.find('/'));
  }
  return {};
}

bool is_interpreter(std::string_view program) {
  return name_fits(program, "python") || name_fits(program, "python*") || name_fits(program, "pypy*");
}

/// What an interpreter runs; an empty name if no file or module states it (-c, standard input).
struct Script {
  std::string_view name;
  bool is_module = false;
};

/// Of an interpreter's arguments, only the first that is not an option names what runs. `rest`: what follows it.
Script script_of(std::string_view& rest) {
  for (std::string_view word = take_word(rest); !word.empty(); word = take_word(rest)) {
    if (word == "-m") return {take_word(rest), true};
    if (word == "-c") break;
    if (word == "-X" || word == "-W")
      take_word(rest);
    else if (word.front() != '-')
      return {word, false};
  }
  return {};
}

}  // namespace

void WhatRuns::add(std::string_view name) {
  if (!name.empty() && count_ < names_.size()) names_[count_++] = name;
}

WhatRuns::WhatRuns(std::string_view command, std::string_view name) {
  add(program_of(name));
  std::string_view rest = command;
  const std::string_view first = program_of(take_word(rest));
  add(first);
  if (!is_interpreter(first)) return;
  const Script script = script_of(rest);
  add(script.is_module ? script.name : program_of(script.name));
  add(script.is_module ? script.name.substr(0, script.name.find('.')) : package_of(script.name));
}

std::string short_command(std::string_view command) {
  std::string_view rest = command;
  const std::string_view first = take_word(rest);
  if (is_interpreter(program_of(first))) {
    std::string_view after = rest;
    if (const Script script = script_of(after); !script.name.empty())
      return std::string(script.is_module ? script.name : file_of(script.name)).append(after);
  }
  return std::string(file_of(first)).append(rest);
}

bool WhatRuns::fits(std::string_view patterns) const {
  return any_part(patterns, [&](std::string_view pattern) {
    return std::any_of(names_.begin(), names_.begin() + count_,
                       [&](std::string_view name) { return name_fits(name, pattern); });
  });
}

}  // namespace vramtrack
