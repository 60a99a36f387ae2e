#include "core/command.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace vramtrack {
namespace {

std::span<const std::string_view> g_left_out;

}  // namespace

std::string command_hint(std::string_view line) {
  constexpr std::string_view kProgram = "vramtrack ";
  const std::string_view words = line.substr(line.find(kProgram) + kProgram.size());
  const bool is_left_out = std::ranges::find(g_left_out, words.substr(0, words.find(' '))) != g_left_out.end();
  return fmt::format("'{}'{}", line, is_left_out ? " ('make build' adds it)" : "");
}

void set_commands_left_out(std::span<const std::string_view> names) {
  g_left_out = names;
}

}  // namespace vramtrack
