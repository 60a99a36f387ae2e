#include "core/program_kind.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "core/ascii.hpp"
#include "core/what_runs.hpp"

namespace vramtrack {
namespace {

enum class Where : std::uint8_t { command, program, runs };

struct Line {
  Where where;
  std::string_view text;
  ProgramKind kind;
  std::string_view what;
};

#define VRAMTRACK_PROGRAM(where, text, kind, what) Line{Where::where, text, ProgramKind::kind, what},
constexpr auto kLines = std::to_array<Line>({
#include "core/program_kind.def"
});
#undef VRAMTRACK_PROGRAM

}  // namespace

ProgramFound program_of(std::string_view command, std::string_view name, std::string_view kind) {
  const std::string text = lower(command);
  const std::string short_name = lower(name);
  const std::string_view first = std::string_view(text).substr(0, text.find(' '));
  const std::string_view program = first.substr(first.rfind('/') + 1);
  const WhatRuns runs(command, name);
  const auto fits = [&](const Line& line) {
    switch (line.where) {
      case Where::command:
        return text.find(line.text) != std::string::npos;
      case Where::program:
        return short_name == line.text || program == line.text;
      case Where::runs:
        return runs.fits(line.text);
    }
    return false;
  };
  if (const auto* const line = std::find_if(kLines.begin(), kLines.end(), fits); line != kLines.end())
    return {line->kind, line->what};
  // Every Jupyter kernel, in whatever language, is given such a file.
  if (const auto file = text.find("kernel-");
      file != std::string::npos && text.find(".json", file) != std::string::npos)
    return {ProgramKind::notebook, "Jupyter kernel"};
  if (kind == "G" || kind == "C+G") return {ProgramKind::desktop, "graphical program"};
  return {};
}

}  // namespace vramtrack
