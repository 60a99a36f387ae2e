#include "core/framework.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>

namespace vramtrack {
namespace {

enum class Purpose : std::uint8_t { any, inference };

struct Framework {
  std::string_view name;
  Purpose purpose;
  std::string_view programs;
  std::string_view libraries;
  std::string_view causes;
  std::string_view next;
};

constexpr std::array kFrameworks = {
#define VRAMTRACK_FRAMEWORK(name, purpose, programs, libraries, causes, next) \
  Framework{name, Purpose::purpose, programs, libraries, causes, next},
#include "core/framework.def"
#undef VRAMTRACK_FRAMEWORK
};

constexpr std::string_view kAnyCauses =
    "memory allocated on every iteration or request and kept: buffers, streams, events, graphs or contexts without "
    "their free|a cache without a bound|failed requests whose memory is not released on the error path";
constexpr std::string_view kAnyNext =
    "run one iteration or request many times with the same input: a cache stops growing, a leak does not|"
    "compute-sanitizer --tool memcheck --leak-check full names CUDA allocations that are never freed|"
    "restart the process as a stop-gap before the time predicted for running out";

/// Calls `use` with each part of the '|'-separated `list` until it returns true; returns whether one did.
template <class Use>
bool any_part(std::string_view list, Use use) {
  while (!list.empty()) {
    const std::size_t bar = list.find('|');
    if (use(list.substr(0, bar))) return true;
    if (bar == std::string_view::npos) break;
    list.remove_prefix(bar + 1);
  }
  return false;
}

char lower(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

bool program_matches(std::string_view program, std::string_view pattern) {
  if (!pattern.empty() && pattern.back() == '*') {
    pattern.remove_suffix(1);
    return program.size() > pattern.size() && equals_ignoring_case(program.substr(0, pattern.size()), pattern);
  }
  return equals_ignoring_case(program, pattern);
}

std::string_view without_suffix(std::string_view text, std::string_view suffix) {
  if (text.size() > suffix.size() && equals_ignoring_case(text.substr(text.size() - suffix.size()), suffix))
    text.remove_suffix(suffix.size());
  return text;
}

/// "/opt/bin/vllm" -> "vllm", "C:\\x\\ollama.exe" -> "ollama", "VLLM::Worker_TP0" -> "VLLM".
std::string_view program_of(std::string_view word) {
  if (const std::size_t title = word.find("::"); title != std::string_view::npos) return word.substr(0, title);
  if (const std::size_t slash = word.find_last_of("/\\"); slash != std::string_view::npos)
    word.remove_prefix(slash + 1);
  while (!word.empty() && word.back() == ':') word.remove_suffix(1);
  return without_suffix(without_suffix(word, ".exe"), ".py");
}

/// The Python package a script inside site-packages belongs to; empty for other paths.
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
  return program_matches(program, "python") || program_matches(program, "python*") || program_matches(program, "pypy*");
}

/// What a command line runs: at most a program, a module with its package, and a script with its package.
struct Programs {
  std::array<std::string_view, 6> names;
  std::size_t count = 0;
  void add(std::string_view name) {
    if (!name.empty() && count < names.size()) names[count++] = name;
  }
};

std::string_view next_word(std::string_view& text) {
  const std::size_t start = std::min(text.find_first_not_of(' '), text.size());
  text.remove_prefix(start);
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

Programs programs_of(std::string_view command, std::string_view name) {
  Programs programs;
  programs.add(program_of(name));
  std::string_view rest = command;
  const std::string_view first = program_of(next_word(rest));
  programs.add(first);
  if (!is_interpreter(first)) return programs;
  // Of an interpreter's arguments, only the first that is not an option says what runs.
  for (std::string_view word = next_word(rest); !word.empty(); word = next_word(rest)) {
    if (word == "-m") {
      const std::string_view module = next_word(rest);
      programs.add(module);
      programs.add(module.substr(0, module.find('.')));
      break;
    }
    if (word == "-c") break;
    if (word == "-X" || word == "-W") {
      next_word(rest);
      continue;
    }
    if (word.front() == '-') continue;
    programs.add(program_of(word));
    programs.add(package_of(word));
    break;
  }
  return programs;
}

std::vector<std::string> lines_of(std::string_view list) {
  std::vector<std::string> lines;
  any_part(list, [&](std::string_view part) {
    lines.emplace_back(part);
    return false;
  });
  return lines;
}

/// nullptr: nothing specific is known about it.
const Framework* find_framework(std::string_view name) {
  for (const Framework& entry : kFrameworks)
    if (entry.name == name && !entry.causes.empty()) return &entry;
  return nullptr;
}

}  // namespace

std::string_view recognise_framework(std::string_view command, std::string_view name,
                                     std::span<const std::string> mapped_library_names) {
  const Programs programs = programs_of(command, name);
  for (const Framework& framework : kFrameworks) {
    const bool runs = any_part(framework.programs, [&](std::string_view pattern) {
      return std::any_of(programs.names.begin(), programs.names.begin() + programs.count,
                         [&](std::string_view program) { return program_matches(program, pattern); });
    });
    const bool maps = any_part(framework.libraries, [&](std::string_view pattern) {
      return std::any_of(mapped_library_names.begin(), mapped_library_names.end(), [&](const std::string& library) {
        return std::string_view(library).substr(0, pattern.size()) == pattern;
      });
    });
    if (runs || maps) return framework.name;
  }
  return {};
}

bool is_for_inference(std::string_view framework) {
  const Framework* const known = find_framework(framework);
  return known != nullptr && known->purpose == Purpose::inference;
}

std::vector<std::string> framework_causes(std::string_view framework) {
  const Framework* const known = find_framework(framework);
  return lines_of(known != nullptr ? known->causes : kAnyCauses);
}

std::vector<std::string> framework_advice(std::string_view framework) {
  const Framework* const known = find_framework(framework);
  return lines_of(known != nullptr ? known->next : kAnyNext);
}

}  // namespace vramtrack
